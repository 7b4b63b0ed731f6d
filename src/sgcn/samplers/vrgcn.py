"""VR-GCN: two neighbours for the live embeddings, all of them for the historical ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sgcn.block import Batch
from sgcn.graph import Graph
from sgcn.rng import Key
from sgcn.samplers.base import NodeSet, exact_block, sizes_option
from sgcn.samplers.neighbor import Neighbor


@dataclass(frozen=True)
class Vrgcn(Neighbor):
    """`neighbor` with s = 2; ``batch.exact`` has P[R, :] of every layer for the histories."""

    name = "vrgcn"
    summary = "VR-GCN: s neighbours of every node, and the exact block for its history"

    sizes: int | tuple[int, ...] = sizes_option(2, "neighbours drawn for a node")

    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        batch = super()._sample(graph, seeds, key, depth)
        return replace(batch, exact=tuple(exact_block(graph, b.dst) for b in batch.blocks))
