"""What PyTorch Geometric saved: a ``Data`` object, its dict, or a processed dataset."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.chunks import chunks
from sgcn.data.checks import check_ids
from sgcn.data.draft import Draft
from sgcn.data.importers.base import Importer
from sgcn.data.importers.rows import about, checked_edges, labels_of, write_features
from sgcn.data.importers.splits import PART, split_of_parts
from sgcn.data.readers.files import check_size, checked, unreadable
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, integer, option

_WHAT = "a homogeneous graph that PyTorch Geometric saved (.pt)"
_USED = ("edge_index", "x", "y", "train_mask", "val_mask", "test_mask")
_MOST = np.iinfo(np.int32).max  # nodes are numbered in int32


@dataclass(frozen=True)
class Pyg(Importer):
    """Loaded without running anything: tensors, plain containers and PyG's own classes."""

    name: ClassVar[str] = "pyg"
    summary: ClassVar[str] = "file.pt with a Data object, its dict, or processed/data.pt"

    split: int = option(0, integer(0), "which split, where masks have a column for each")
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")
    weighted: bool = option(False, flag(), "use edge_weight")

    def read(self, source: Path, draft: Draft) -> Graph:
        used = (*_USED, "edge_weight") if self.weighted else _USED
        data = _tensors(_load(source, self.limit), source, used)
        edges, n = data["edge_index"], _nodes(data, source)
        if "x" in data:
            write_features(draft, data["x"], n, f"x in {source}")
        if "y" in data:
            draft.write("y", labels_of(data["y"], n, f"y in {source}"))
        found = ((word, f"{word}_mask") for word in PART if f"{word}_mask" in data)
        masks = ((word, self._mask(data, key, source), f"{key} in {source}") for word, key in found)
        draft.write("split", split_of_parts(n, masks))
        columns = [*edges, _edge_weight(data, source)] if self.weighted else [*edges]
        parts = (tuple(column[part] for column in columns) for part in chunks(edges.shape[1]))
        checked_parts = checked_edges(parts, n, f"edge_index in {source}")
        with about(source):
            return draft.edges(checked_parts, n, directed=self.directed)

    def _mask(self, data: Mapping[str, Any], key: str, source: Path) -> Any:
        mask = data[key]
        if mask.ndim != 2:
            return mask
        if self.split >= mask.shape[1]:
            raise SgcnError(
                f"{key} in {source} has {mask.shape[1]} columns, expected more than split = "
                f"{self.split}: columns count from 0"
            )
        return mask[:, self.split]


def _load(path: Path, limit: int) -> Any:
    """The object in ``path``; code in it is refused, never run."""
    import torch

    how: dict[str, Any] = {"map_location": "cpu", "weights_only": True}
    with unreadable(checked(path, _WHAT), _WHAT):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                members = file.infolist()
            check_size(path, sum(member.file_size for member in members), limit)
            how["mmap"] = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    try:
        with unreadable(path, _WHAT), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle versions: nothing a user can change
            try:
                return torch.load(path, **how)
            except pickle.UnpicklingError as error:
                if "torch_geometric" not in str(error):
                    raise
            with torch.serialization.safe_globals(_pyg_classes(path)):
                return torch.load(path, **how)
    except (pickle.UnpicklingError, RuntimeError) as error:
        # The line of torch's page-long message that says what was found.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        found = [line for line in lines if "GLOBAL" in line or "nsupported" in line]
        reason = (found or lines or ["no reason given"])[0][:200].rstrip(".")
        raise SgcnError(
            f"{path} cannot be read, expected {_WHAT} with nothing but tensors ({reason})"
        ) from None


def _pyg_classes(path: Path) -> list[Any]:
    """The classes of a saved ``Data`` object: holders of tensors, safe to make."""
    try:
        from torch_geometric.data import data, storage
    except ImportError:
        raise SgcnError(
            f"{path} holds a PyTorch Geometric object, expected that package to be installed: "
            "`pip install torch_geometric`, or save data.to_dict() instead"
        ) from None
    return [data.Data, data.DataEdgeAttr, data.DataTensorAttr, storage.GlobalStorage]


def _tensors(loaded: Any, path: Path, used: Collection[str]) -> dict[str, Any]:
    """What is used of the tensors, as numpy arrays; others may be anything that torch has."""
    if isinstance(loaded, tuple) and len(loaded) in (2, 3):  # a processed dataset
        _check_slices(loaded[1], path, used)
        loaded = loaded[0]
    if not isinstance(loaded, Mapping) and hasattr(loaded, "to_dict"):
        loaded = loaded.to_dict()
    if not isinstance(loaded, Mapping):
        raise SgcnError(f"{path} holds a {type(loaded).__name__}, expected {_WHAT}")
    arrays = {
        key: _array(value, key, path)
        for key, value in loaded.items()
        if key in used and hasattr(value, "detach")
    }
    if loaded.get("num_nodes") is not None:
        arrays["num_nodes"] = loaded["num_nodes"]
    edges = arrays.get("edge_index")
    if edges is None:
        raise SgcnError(f"{path} has no edge_index, expected {_WHAT}")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise SgcnError(f"edge_index in {path} has shape {edges.shape}, expected (2, E)")
    return arrays


def _check_slices(slices: Any, path: Path, used: Collection[str]) -> None:
    """Where each graph of a processed dataset begins and ends: there must be one."""
    for key, where in slices.items() if isinstance(slices, Mapping) else ():
        vector = getattr(where, "ndim", None) == 1
        if not vector and key in used:
            raise SgcnError(
                f"{path} has a {type(where).__name__} as slices of {key}, expected a vector: save "
                "data.to_dict() of the one graph instead"
            )
        if vector and len(where) > 2:
            raise SgcnError(f"{path} holds several graphs, expected one")


def _array(tensor: Any, key: str, path: Path) -> Any:
    """A tensor as numpy sees it; sparse and quantised ones, bfloat16 and others it cannot see."""
    try:
        return tensor.detach().numpy()
    except (TypeError, RuntimeError):
        kind = f"{tensor.layout} {tensor.dtype} on {tensor.device}".replace("torch.", "")
        raise SgcnError(
            f"{key} in {path} is {kind}, expected a dense tensor of a type that numpy has: save "
            f"{key}.to_dense() or {key}.float()"
        ) from None


def _count(value: Any, path: Path) -> int:
    """``num_nodes``: a number, or a tensor of one."""
    if hasattr(value, "detach"):
        value = _array(value, "num_nodes", path)
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iu":
        value = int(value.reshape(()))
    if not isinstance(value, int) or not 0 < value <= _MOST:
        raise SgcnError(
            f"num_nodes in {path} is {str(value)[:40]}, expected a whole number from 1 to {_MOST}"
        )
    return value


def _edge_weight(data: Mapping[str, Any], path: Path) -> Any:
    weights, edges = data.get("edge_weight"), data["edge_index"].shape[1]
    if weights is None:
        raise SgcnError(f"{path} has no edge_weight, expected it: set weighted=false")
    if weights.shape != (edges,):
        raise SgcnError(
            f"edge_weight in {path} has shape {weights.shape}, expected one for each of {edges} "
            "edges"
        )
    return weights


def _nodes(data: Mapping[str, Any], path: Path) -> int:
    for key in ("x", "y", "train_mask"):
        if key in data and np.ndim(data[key]):
            return len(data[key])
    if "num_nodes" in data:
        return _count(data["num_nodes"], path)
    edges = data["edge_index"]
    if edges.size == 0:
        raise SgcnError(f"{path} does not say how many nodes there are, expected num_nodes")
    for ends in edges:
        check_ids(ends, None, f"edge_index in {path}", "in edge")
    return int(edges.max()) + 1
