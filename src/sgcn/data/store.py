"""A graph as a directory: one ``.npy`` file an array, and ``header.json``.

Opening maps the files copy-on-write: no byte is read before it is used, and no kernel is compiled a
second time for read-only memory.
"""

from __future__ import annotations

import json
import os
import tempfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from sgcn.data.draft import Draft
from sgcn.data.layout import FORMAT, HEADER, VERSION
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse

_DTYPES = {"indptr": "int64", "indices": "int32", "values": "float32", "row": "float32",
           "col": "float32", "split": "int8"}  # fmt: skip
_REQUIRED = ("indptr", "indices", "row", "col")


def save(graph: Graph, path: Path, *, overwrite: bool = False, beside: Path | None = None) -> None:
    """Write ``graph`` to a temporary directory beside ``path`` and rename it.

    ``beside`` is a saved graph of the same nodes, whose names of nodes and origin are carried over.
    """
    with Draft(path, overwrite=overwrite) as draft:
        for name, array in _rows(graph).items():
            draft.write(name, array)
        if is_sparse(graph.x):
            draft.header["x_shape"] = list(graph.x.shape)
        draft.carry(beside)
        draft.finish(graph)


def _rows(graph: Graph) -> dict[str, Any]:
    """Features, labels and split: what a node has beside its edges."""
    x = graph.x
    features = (
        {"x_indptr": x.indptr, "x_indices": x.indices, "x_data": x.data}
        if is_sparse(x)
        else {"x": x}
    )
    rows = {**features, "y": graph.y, "split": graph.split}
    return {name: array for name, array in rows.items() if array is not None}


def open_graph(path: Path, *, verify: bool = False) -> Graph:
    """The graph saved at ``path``; see `Graph.open`."""
    header = _header(path)
    arrays = {name: _map(path, name, entry) for name, entry in header["arrays"].items()}
    if verify:
        for name, array in arrays.items():
            crc = zlib.crc32(memoryview(array).cast("B") if array.size else b"")
            if crc != header["arrays"][name]["crc32"]:
                raise SgcnError(
                    f"{path / name}.npy does not have the checksum of its header, expected the "
                    "bytes that were saved: make the graph again"
                )
    n = header["nodes"]
    indptr, indices = arrays["indptr"], arrays["indices"]
    fits = (
        indptr.shape == (n + 1,)
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and arrays["row"].shape == arrays["col"].shape == (n,)
        and ("values" not in arrays or arrays["values"].shape == indices.shape)
    )
    if not fits:
        raise SgcnError(f"{path} holds arrays that do not fit each other, expected a saved graph")
    x = arrays.get("x")
    if "x_shape" in header:
        parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
        x = sp.csr_array(parts, shape=tuple(header["x_shape"]), copy=False)
    graph = Graph(
        indptr,
        indices,
        arrays.get("values"),
        directed=header["directed"],
        normalization=header["normalization"],
        self_loops=header["self_loops"],
        x=x,
        y=arrays.get("y"),
        split=arrays.get("split"),
        scaling=(arrays["row"], arrays["col"]),
    )
    graph.path = path
    return graph


def _header(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise SgcnError(f"{path} is not a directory, expected one that Graph.save wrote")
    try:
        header = json.loads((path / HEADER).read_text())
        known = header["format"] == FORMAT and all(k in header["arrays"] for k in _REQUIRED)
        known = known and isinstance(header["nodes"], int) and header["nodes"] >= 1
        for entry in header["arrays"].values():
            _ = entry["dtype"], tuple(entry["shape"]), entry["crc32"]
        if "x_shape" in header:
            _ = [header["arrays"][name] for name in ("x_indptr", "x_indices", "x_data")]
        version = header["version"]
        _ = header["directed"], header["normalization"], header["self_loops"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known, header, version = False, {}, None
    if not known:
        raise SgcnError(
            f"{path} has no {HEADER} of the format {FORMAT}, expected a directory that Graph.save "
            "wrote"
        )
    if version != VERSION:
        raise SgcnError(
            f"{path} has format version {version}, expected {VERSION}: use the sgcn that wrote it"
        )
    return dict(header)


def _map(path: Path, name: str, entry: Any) -> Any:
    file = path / f"{name}.npy"
    wanted = _DTYPES.get(name, entry["dtype"])
    try:
        shape = tuple(entry["shape"])
        # A file of no bytes cannot be mapped; mode "c" keeps kernels at one compiled signature.
        mode: Literal["c"] | None = None if 0 in shape else "c"
        array = np.asarray(np.load(file, mmap_mode=mode, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise SgcnError(
            f"{file} cannot be read, expected {entry['dtype']} of shape {tuple(entry['shape'])}: "
            f"the graph is truncated, make it again ({error})"
        ) from None
    if str(array.dtype) != wanted or array.shape != shape:
        raise SgcnError(
            f"{file} holds {array.dtype} of shape {array.shape}, expected {wanted} of shape {shape}"
        )
    return array


def keep_beside(graph: Graph, name: str, array: Any) -> None:
    """Store a derived array (a partition) with a graph that lives on disk; elsewhere do nothing."""
    if graph.path is None or not os.access(graph.path, os.W_OK):
        return
    handle, temporary = tempfile.mkstemp(suffix=".npy", dir=graph.path)
    os.close(handle)
    np.save(temporary, array, allow_pickle=False)
    os.chmod(temporary, 0o644)  # as readable as the graph itself
    os.replace(temporary, graph.path / f"{name}.npy")


def kept_beside(graph: Graph, name: str) -> Any:
    """What `keep_beside` stored, or None where it cannot be read."""
    if graph.path is None:
        return None
    try:
        return np.load(graph.path / f"{name}.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
