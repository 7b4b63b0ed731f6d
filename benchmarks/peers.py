"""Samplers of other libraries, where they can be imported; none is a dependency.

A peer is a function of a graph that prepares its own structures, not timed, and returns a draw:
seeds -> number of sampled edges. It is given ids of the type it works with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from sgcn.graph import Graph

Draw = Callable[[Any], int]
Peer = Callable[[Graph, int], Draw]


def available(sampler: str) -> Iterator[tuple[str, Peer]]:
    """(name, peer) of the libraries that are installed and have ``sampler``."""
    for module, name, peers in _LIBRARIES:
        if find_spec(module) is not None and sampler in peers:
            yield name, peers[sampler]


def versions() -> dict[str, str]:
    """The versions of all that is measured."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in ("sgcn", "numpy", "scipy", "numba", "torch", "torch_sparse", "pyg_lib", "dgl"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _torch_ids(seeds: Any) -> Any:
    import torch

    return torch.from_numpy(seeds.astype(np.int64))


def _csr_tensors(graph: Graph) -> tuple[Any, Any]:
    import torch

    torch.set_num_threads(1)
    return _torch_ids(graph.indptr), _torch_ids(graph.indices)


def _torch_sparse_neighbor(graph: Graph, size: int) -> Draw:
    """The kernel under PyG's NeighborLoader: two layers of ``size`` neighbours."""
    import torch
    import torch_sparse  # noqa: F401 - registers the operator

    indptr, indices = _csr_tensors(graph)

    def draw(seeds: Any) -> int:
        sampled = torch.ops.torch_sparse.neighbor_sample(
            indptr, indices, _torch_ids(seeds), [size, size], False, True
        )
        return len(sampled[1])

    return draw


def _torch_sparse_saint(graph: Graph, size: int) -> Draw:
    """The kernel under PyG's GraphSAINTNodeSampler, by our law: nodes, and what they induce."""
    import torch
    import torch_sparse  # noqa: F401 - registers the operator

    from sgcn.samplers.base import column_law

    indptr, indices = _csr_tensors(graph)
    rows = torch.repeat_interleave(torch.arange(len(graph)), torch.diff(indptr))
    law = torch.from_numpy(column_law(graph).law)

    def draw(seeds: Any) -> int:
        nodes = torch.unique(torch.multinomial(law, size, replacement=True))
        sampled = torch.ops.torch_sparse.saint_subgraph(nodes, indptr, rows, indices)
        return len(sampled[0])

    return draw


def _pyg_lib_neighbor(graph: Graph, size: int) -> Draw:
    import pyg_lib  # noqa: F401 - registers the operator
    import torch

    indptr, indices = _csr_tensors(graph)

    def draw(seeds: Any) -> int:
        sampled = torch.ops.pyg.neighbor_sample(indptr, indices, _torch_ids(seeds), [size, size])
        return len(sampled[0])

    return draw


def _dgl(kind: str) -> Peer:
    def peer(graph: Graph, size: int) -> Draw:
        import dgl

        indptr, indices = _csr_tensors(graph)
        theirs = dgl.graph(("csc", (indptr, indices, [])), num_nodes=len(graph))
        sampler = getattr(dgl.dataloading, kind)([size, size])

        def draw(seeds: Any) -> int:
            blocks = sampler.sample(theirs, _torch_ids(seeds))[2]
            return sum(block.num_edges() for block in blocks)

        return draw

    return peer


# (module to import, name in reports, samplers)
_LIBRARIES: tuple[tuple[str, str, dict[str, Peer]], ...] = (
    ("pyg_lib", "pyg-lib", {"neighbor": _pyg_lib_neighbor}),
    (
        "torch_sparse",
        "torch-sparse",
        {"neighbor": _torch_sparse_neighbor, "saint": _torch_sparse_saint},
    ),
    ("dgl", "dgl", {"neighbor": _dgl("NeighborSampler"), "labor": _dgl("LaborSampler")}),
)
