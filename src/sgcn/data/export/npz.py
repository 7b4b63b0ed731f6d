"""One ``.npz`` file of plain arrays, as `sgcn.data.source.read_npz` reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse


def write(graph: Graph, path: Path) -> None:
    """indptr, indices, y, split and x (or x_indptr, x_indices, x_data, x_shape)."""
    if graph.values is not None or graph.directed:
        kind = "directed" if graph.directed else "weighted"
        raise SgcnError(
            f"the graph is {kind}, expected an undirected one without weights: npz has no place "
            "for them, use scipy or pyg"
        )
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "y": graph.y, "split": graph.split}
    if is_sparse(graph.x):
        x = graph.x
        arrays |= {"x_indptr": x.indptr, "x_indices": x.indices, "x_data": x.data}
        arrays["x_shape"] = np.array(x.shape)
    else:
        arrays["x"] = graph.x
    with path.open("wb") as file:
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
