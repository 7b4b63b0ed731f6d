"""Cluster-GCN: a few METIS parts at a time, with the edges between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgcn import store
from sgcn.block import Batch, Int32
from sgcn.graph import Graph
from sgcn.kernels.batches import part_batch
from sgcn.kernels.random import permutation
from sgcn.options import flag, integer, option
from sgcn.rng import Key
from sgcn.samplers.base import (
    Estimates,
    NodeSet,
    Sampler,
    row_targets,
    scratch,
    subgraph_batch,
    weighting_option,
)


@dataclass(frozen=True)
class Partition:
    """Which part a node is in, and the nodes of each part one after the other."""

    part: Int32
    order: Int32
    starts: npt.NDArray[np.int64]

    @property
    def parts(self) -> int:
        return len(self.starts) - 1

    def nodes(self, part: int) -> Int32:
        return self.order[self.starts[part] : self.starts[part + 1]]


@dataclass(frozen=True)
class Cluster(Sampler):
    """M = P on the nodes of q parts; every epoch goes once through all parts in a random order.

    An entry between two parts is there only if both are drawn: its chance given the row is
    (q - 1) / (parts - 1), which `rescale_between` divides by. With q = 1 such entries never appear
    and every weighting is biased by what is missing.
    """

    name = "cluster"
    summary = "Cluster-GCN: q METIS parts at a time, edges between them kept"
    draws_nodes = True

    parts: int = option(50, integer(), "METIS parts of the graph")
    parts_per_batch: int = option(2, integer(), "parts q in a batch")
    rescale_between: bool = option(
        True, flag(), "weigh entries between parts by their inverse chance; off: P_ij as published"
    )
    weighting: str = weighting_option("hajek")

    @property
    def estimates(self) -> Estimates:
        between = self.rescale_between and self.parts_per_batch > 1
        return super().estimates if between else Estimates.PART_OF_P

    def batches(self, graph: Graph, nodes: NodeSet, batch_size: int) -> int:
        parts = partition_of(graph, self.parts).parts
        return -(-parts // min(self.parts_per_batch, parts))

    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        partition = partition_of(graph, self.parts)
        parts = partition.parts
        taken = min(self.parts_per_batch, parts)
        turn = permutation(parts, key.shuffle_stream())
        chosen = turn[(key.step * taken + np.arange(taken)) % parts]
        nodes = np.concatenate([partition.nodes(part) for part in chosen])
        between = (parts - 1) / (taken - 1) if self.rescale_between and taken > 1 else 1.0
        share = parts / (taken * max(seeds.size, 1))
        p, target = graph.propagation, row_targets(graph, self.weighting)
        *block, loss_weights = part_batch(
            p, nodes, partition.part, between, scratch.of(graph), target, seeds.mask, share
        )
        return subgraph_batch(block, loss_weights, depth)


def partition_of(graph: Graph, parts: int) -> Partition:
    """The METIS partition of ``graph``: computed once, and kept beside a graph that is on disk."""

    def compute() -> Partition:
        name = f"metis-{parts}"
        part = store.kept_beside(graph.path, name)
        if part is None or part.shape != (len(graph),):
            part = _metis(graph, min(parts, len(graph)))
            store.keep_beside(graph.path, name, part)
        used, part = np.unique(part, return_inverse=True)  # METIS may leave a part empty
        order = np.argsort(part, kind="stable").astype(np.int32)
        starts = np.searchsorted(part[order], np.arange(len(used) + 1))
        return Partition(part.astype(np.int32), order, starts)

    return graph.memo(("partition", parts), compute)


def _metis(graph: Graph, parts: int) -> Int32:
    import pymetis

    if parts == 1:
        return np.zeros(len(graph), np.int32)
    if graph.directed:
        graph = Graph.from_csr(graph.indptr, graph.indices)
    adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
    _, membership = pymetis.part_graph(parts, adjacency, options=pymetis.Options(seed=0))
    return np.asarray(membership, np.int32)
