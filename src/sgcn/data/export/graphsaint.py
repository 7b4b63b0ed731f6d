"""The directory that GraphSAINT publishes graphs as (Zeng et al. 2020, github.com/GraphSAINT).

``adj_full.npz`` and ``adj_train.npz`` (scipy CSR, the second with the edges among training nodes
alone), ``feats.npy``, ``class_map.json`` (node to class, or to a list of 0 and 1) and ``role.json``
(the nodes of "tr", "va" and "te").
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse

_ROWS = 1 << 14  # rows turned into text or written out at a time


def write(graph: Graph, path: Path) -> None:
    """Needs features, a split, and a label for every node: the layout has no place for less."""
    for name, rows in (("features", graph.x), ("labels", graph.y), ("split", graph.split)):
        if rows is None:
            raise SgcnError(f"the graph has no {name}, expected them: graphsaint cannot do without")
    y, split = np.asarray(graph.y), np.asarray(graph.split)
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
    _write_features(graph.x, path / "feats.npy")
    with (path / "class_map.json").open("w") as file:
        file.writelines(_class_map(y))
    roles = {
        name: np.flatnonzero(split == part).tolist() for part, name in enumerate(("tr", "va", "te"))
    }
    with (path / "role.json").open("w") as file:
        json.dump(roles, file)


def _among(matrix: Any, chosen: npt.NDArray[np.bool_]) -> Any:
    """The entries between ``chosen`` nodes, in a matrix of the same shape."""
    kept = np.repeat(chosen, np.diff(matrix.indptr))
    kept &= chosen[matrix.indices]
    before = np.append(np.int64(0), np.cumsum(kept, dtype=np.int64))
    parts = (matrix.data[kept], matrix.indices[kept], before[matrix.indptr])
    return sp.csr_array(parts, shape=matrix.shape)


def _write_features(x: Any, path: Path) -> None:
    """A dense table, a slice of rows at a time."""
    out = np.lib.format.open_memmap(path, "w+", x.dtype, x.shape)
    for start in range(0, x.shape[0], _ROWS):
        rows = x[start : start + _ROWS]
        out[start : start + _ROWS] = rows.toarray() if is_sparse(x) else rows
    out.flush()


def _class_map(y: Any) -> Iterator[str]:
    """The JSON text of {"0": ..., "1": ...} in pieces."""
    for start in range(0, len(y), _ROWS):
        rows = y[start : start + _ROWS].astype(np.int64).tolist()
        inner = json.dumps({str(start + k): row for k, row in enumerate(rows)})[1:-1]
        yield f"{', ' if start else '{'}{inner}"
    yield "}"
