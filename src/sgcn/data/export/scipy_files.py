"""A directory for SciPy: ``adjacency.npz`` of `scipy.sparse.save_npz`, and the rest beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from sgcn.graph import Graph, is_sparse


def write(graph: Graph, path: Path) -> None:
    """adjacency.npz, x.npy (x.npz if sparse), y.npy and split.npy."""
    path.mkdir()
    sp.save_npz(path / "adjacency.npz", graph.adjacency(), compressed=False)
    if is_sparse(graph.x):
        sp.save_npz(path / "x.npz", graph.x, compressed=False)
    elif graph.x is not None:
        np.save(path / "x.npy", graph.x)
    if graph.y is not None:
        np.save(path / "y.npy", graph.y)
    if graph.split is not None:
        np.save(path / "split.npy", graph.split)
