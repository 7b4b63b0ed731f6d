"""GraphSAINT (eq:graph-wise): one random subgraph serves all layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.block import Batch, Block, Int32
from sgcn.graph import Graph
from sgcn.kernels import subgraphs as kernels
from sgcn.kernels.batches import node_batch
from sgcn.kernels.blocks import restricted_block, unique_counts
from sgcn.options import integer, one_of, option
from sgcn.rng import Key, Stream
from sgcn.samplers.base import (
    NodeSet,
    Sampler,
    column_law,
    row_targets,
    scratch,
    subgraph_batch,
    weigh,
    weighting_option,
)

_COVERAGE = 50  # how often pre-sampling meets a node on average, as GraphSAINT's code has it

Inclusion = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Saint(Sampler):
    """M = P on the nodes drawn, each off-diagonal entry over its chance given that its row is kept.

    `node` and `edge` know this chance in closed form; `walk` estimates it by pre-sampling, once a
    graph, at 4 bytes an edge. The diagonal is exact: a kept row keeps itself. The loss weight of a
    training node is the inverse of its chance to be in the sample.
    """

    name = "saint"
    summary = "GraphSAINT: one subgraph for all layers, drawn by nodes, edges or random walks"
    draws_nodes = True

    variant: str = option("node", one_of("node", "edge", "walk"), "what is drawn")
    size: int = option(2048, integer(), "draws: nodes, edges, or roots of walks")
    walk_length: int = option(2, integer(), "steps of a walk (variant walk)")
    weighting: str = weighting_option("hajek")

    def batches(self, graph: Graph, nodes: NodeSet, batch_size: int) -> int:
        """As many samples as meet the number of nodes, repeats counted."""
        met = self.size * {"node": 1, "edge": 2, "walk": self.walk_length + 1}[self.variant]
        return -(-len(graph) // met)

    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        stream = key.stream(Stream.LAYER)
        if self.variant == "node":
            return self._nodes(graph, seeds, stream, depth)
        draw = self._edges if self.variant == "edge" else self._walks
        block, inclusion = draw(graph, stream)
        weigh(graph, block.dst, block.indptr, block.weights, self.weighting)
        share = seeds.mask[block.dst] / (inclusion * max(seeds.size, 1))
        return Batch((block,) * depth, share.astype(np.float32))

    def _nodes(self, graph: Graph, seeds: NodeSet, stream: np.uint64, depth: int) -> Batch:
        p, law, target = graph.propagation, column_law(graph), row_targets(graph, self.weighting)
        *block, loss_weights = node_batch(
            p, law, self.size, stream, scratch.of(graph), target, seeds.mask, max(seeds.size, 1)
        )
        return subgraph_batch(block, loss_weights, depth)

    def _edges(self, graph: Graph, stream: np.uint64) -> tuple[Block, Inclusion]:
        p = graph.propagation
        linked = graph.memo("linked", lambda: np.flatnonzero(graph.degrees).astype(np.int32))
        hits = graph.memo("edge_hits", lambda: kernels.edge_hits(p))
        block = _induced(graph, kernels.edge_nodes(p, linked, self.size, stream))
        entries, nodes = (block.indptr, block.indices, block.weights), block.dst
        kernels.reweight_edges(p, entries, nodes, hits, len(linked), self.size, graph.directed)
        return block, 1.0 - (1.0 - hits[nodes] / max(len(linked), 1)) ** self.size

    def _walks(self, graph: Graph, stream: np.uint64) -> tuple[Block, Inclusion]:
        p = graph.propagation
        samples, node_counts, pair_counts = self._presampled(graph)
        block = _induced(graph, kernels.walk_nodes(p, self.size, self.walk_length, stream))
        nodes = block.dst
        kernels.reweight_walks(
            p, block.indptr, block.indices, block.weights, nodes, node_counts, pair_counts
        )
        return block, (node_counts[nodes] + 1.0) / (samples + 1.0)

    def _presampled(self, graph: Graph) -> tuple[int, Int32, Int32]:
        def count() -> tuple[int, Int32, Int32]:
            visits = self.size * (self.walk_length + 1)
            samples = max(_COVERAGE, -(-_COVERAGE * len(graph) // visits))
            keys = [Key(0, 0, sample) for sample in range(samples)]
            streams = np.array([key.stream(Stream.PRESAMPLING) for key in keys], np.uint64)
            nodes = np.zeros(len(graph), np.int32)
            pairs = np.zeros(graph.edges, np.int32)
            position = scratch.position(graph)
            kernels.count_walks(
                graph.propagation, self.size, self.walk_length, streams, position, nodes, pairs
            )
            return samples, nodes, pairs

        return graph.memo(("walks", self.size, self.walk_length), count)


def _induced(graph: Graph, drawn: Int32) -> Block:
    """P on the distinct ones of the nodes drawn."""
    nodes, _ = unique_counts(drawn, scratch.position(graph))
    ones = np.ones(len(nodes), np.float32)
    indptr, indices, weights, own_index = restricted_block(
        graph.propagation, nodes, nodes, ones, scratch.of(graph)
    )
    return Block(indptr, indices, weights, nodes, nodes, own_index)
