"""Graphs in the formats of other programs. A new one is a function and a line in `FORMATS`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sgcn.errors import SgcnError
from sgcn.files import appearing, check_new
from sgcn.graph import Graph, is_sparse
from sgcn.labels import NUMBERS, kind_of
from sgcn.options import known_name

_ROWS = 1 << 14  # rows turned into text or written out at a time


def export(format: str, graph: Graph, out: str | Path) -> None:
    """Write ``graph`` to ``out``, a file or directory that appears complete or not at all."""
    chosen = check_target(format, Path(out))
    with appearing(Path(out)) as temporary:
        chosen.write(graph, temporary)


def check_target(format: str, out: Path) -> Format:
    """The format called ``format``, if it can write to ``out``."""
    chosen = FORMATS[known_name("format", format, FORMATS)]
    if out.suffix != chosen.suffix and chosen.suffix:
        raise SgcnError(f"out is {out}, expected a name ending in {chosen.suffix} for {format}")
    check_new(out)
    return chosen


# -- PyTorch Geometric: a dictionary of tensors, of which `Data.from_dict` makes the object ------


def to_pyg(graph: Graph) -> Any:
    """A `torch_geometric.data.Data` with x, edge_index, edge_weight, y and the three masks.

    Sparse features are written out: PyG's are dense.
    """
    try:
        from torch_geometric.data import Data
    except ImportError:
        raise SgcnError(
            "torch_geometric is not installed, expected it: pip install torch_geometric"
        ) from None
    return Data.from_dict(_tensors(graph))


def _write_pyg(graph: Graph, path: Path) -> None:
    """The tensors of `to_pyg`, which PyG itself is not needed for."""
    import torch

    torch.save(_tensors(graph), path)


def _tensors(graph: Graph) -> dict[str, Any]:
    """By their names in `Data`; messages go from edge_index[0] to edge_index[1]."""
    import torch

    n, x = len(graph), graph.x
    edge_index = torch.empty(2, graph.edges, dtype=torch.int64)
    edge_index[0] = torch.from_numpy(np.asarray(graph.indices))
    edge_index[1] = torch.arange(n).repeat_interleave(torch.from_numpy(graph.degrees))
    arrays = {"x": x.toarray() if is_sparse(x) else x, "edge_weight": graph.values, "y": graph.y}
    if graph.split is not None:
        for part, name in enumerate(("train_mask", "val_mask", "test_mask")):
            arrays[name] = np.asarray(graph.split) == part
    made: dict[str, Any] = {
        name: torch.from_numpy(np.ascontiguousarray(array))
        for name, array in arrays.items()
        if array is not None
    }
    if "y" in made:  # as torch's losses take them
        classes = made["y"].ndim == 1 and not made["y"].is_floating_point()
        made["y"] = made["y"].long() if classes else made["y"].float()
    return {"edge_index": edge_index, "num_nodes": n} | made


# -- GraphSAINT (Zeng et al. 2020, github.com/GraphSAINT) ----------------------------------------


def _write_graphsaint(graph: Graph, path: Path) -> None:
    """``adj_full.npz`` and ``adj_train.npz`` (scipy CSR, the second with the edges among training
    nodes alone), ``feats.npy``, ``class_map.json`` (node to class, or to a list of 0 and 1) and
    ``role.json`` (the nodes of "tr", "va" and "te").

    Needs features, a split, and a label for every node: the layout has no room for less.
    """
    for name, rows in (("features", graph.x), ("labels", graph.y), ("split", graph.split)):
        if rows is None:
            raise SgcnError(f"the graph has no {name}, expected them: graphsaint cannot do without")
    y, split = np.asarray(graph.y), np.asarray(graph.split)
    if kind_of(y) == NUMBERS:
        raise SgcnError("y holds numbers, expected classes or rows of 0 and 1: use scipy or pyg")
    if y.ndim == 1 and (y < 0).any():
        raise SgcnError(
            f"node {np.argmax(y < 0)} has no label, expected one for every node: graphsaint has a "
            "class for each"
        )
    path.mkdir()
    n = len(graph)
    values = np.ones(graph.edges, np.bool_) if graph.values is None else graph.values
    full = sp.csr_array((values, graph.indices, graph.indptr), shape=(n, n))
    sp.save_npz(path / "adj_full.npz", full, compressed=False)
    sp.save_npz(path / "adj_train.npz", _among(full, split == 0), compressed=False)
    x = graph.x
    table = np.lib.format.open_memmap(path / "feats.npy", "w+", x.dtype, x.shape)
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        table[part] = x[part].toarray() if is_sparse(x) else x[part]
    table.flush()
    with (path / "class_map.json").open("w") as file:
        file.writelines(_class_map(y))
    roles = {
        name: np.flatnonzero(split == part).tolist() for part, name in enumerate(("tr", "va", "te"))
    }
    (path / "role.json").write_text(json.dumps(roles))


def _among(matrix: Any, chosen: npt.NDArray[np.bool_]) -> Any:
    """The entries between ``chosen`` nodes, in a matrix of the same shape."""
    kept = np.repeat(chosen, np.diff(matrix.indptr))
    kept &= chosen[matrix.indices]
    before = np.append(np.int64(0), np.cumsum(kept, dtype=np.int64))
    parts = (matrix.data[kept], matrix.indices[kept], before[matrix.indptr])
    return sp.csr_array(parts, shape=matrix.shape)


def _class_map(y: Any) -> Iterator[str]:
    """The JSON text of {"0": ..., "1": ...} in pieces."""
    for start in range(0, len(y), _ROWS):
        rows = y[start : start + _ROWS].astype(np.int64).tolist()
        inner = json.dumps({str(start + k): row for k, row in enumerate(rows)})[1:-1]
        yield f"{', ' if start else '{'}{inner}"
    yield "}"


# -- arrays --------------------------------------------------------------------------------------


def _write_scipy(graph: Graph, path: Path) -> None:
    """adjacency.npz of `scipy.sparse.save_npz`, x.npy (x.npz if sparse), y.npy and split.npy."""
    path.mkdir()
    sp.save_npz(path / "adjacency.npz", graph.adjacency(), compressed=False)
    for name, rows in graph.node_data.items():
        if is_sparse(rows):
            sp.save_npz(path / f"{name}.npz", rows, compressed=False)
        elif rows is not None:
            np.save(path / f"{name}.npy", rows)


def _write_npz(graph: Graph, path: Path) -> None:
    """indptr, indices, y, split and x (or x_indptr, x_indices, x_data, x_shape), as
    `sgcn.data.source.read_npz` reads them."""
    if graph.values is not None or graph.directed:
        kind = "directed" if graph.directed else "weighted"
        raise SgcnError(
            f"the graph is {kind}, expected an undirected one without weights: npz has no place "
            "for them, use scipy or pyg"
        )
    x = graph.x
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "y": graph.y, "split": graph.split}
    if is_sparse(x):
        arrays |= {"x_indptr": x.indptr, "x_indices": x.indices, "x_data": x.data}
        arrays["x_shape"] = np.array(x.shape)
    else:
        arrays["x"] = x
    with path.open("wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})


class Format(NamedTuple):
    """``write(graph, path)`` makes a file ending in ``suffix``, or a directory if that is empty."""

    write: Callable[[Graph, Path], None]
    suffix: str = ""


FORMATS = {
    "pyg": Format(_write_pyg, ".pt"),
    "graphsaint": Format(_write_graphsaint),
    "scipy": Format(_write_scipy),
    "npz": Format(_write_npz, ".npz"),
}
