"""PyTorch Geometric: a `Data` object, or its tensors in a file.

The file holds a plain dictionary of tensors, which ``torch.load(path, weights_only=True)`` reads
without running any code; ``Data.from_dict`` makes the object of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse


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
    return Data.from_dict(tensors(graph))


def write(graph: Graph, path: Path) -> None:
    """The tensors of `to_pyg`, which PyG itself is not needed for."""
    torch.save(tensors(graph), path)


def tensors(graph: Graph) -> dict[str, Any]:
    """By their names in `Data`; messages go from edge_index[0] to edge_index[1]."""
    n = len(graph)
    edge_index = torch.empty(2, graph.edges, dtype=torch.int64)
    edge_index[0] = torch.from_numpy(np.asarray(graph.indices))
    edge_index[1] = torch.arange(n).repeat_interleave(torch.from_numpy(graph.degrees))
    made: dict[str, Any] = {"edge_index": edge_index, "num_nodes": n}
    x = graph.x
    if x is not None:
        made["x"] = _tensor(x.toarray() if is_sparse(x) else x)
    if graph.values is not None:
        made["edge_weight"] = _tensor(graph.values)
    if graph.y is not None:
        y = _tensor(graph.y)
        made["y"] = y.long() if y.ndim == 1 else y.float()  # as torch's losses take them
    if graph.split is not None:
        split = _tensor(graph.split)
        for part, name in enumerate(("train_mask", "val_mask", "test_mask")):
            made[name] = split == part
    return made


def _tensor(array: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
