"""LABOR-0: neighbour sampling in which the rows agree on whom they keep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgcn.block import Block, Int32
from sgcn.graph import Graph
from sgcn.kernels import blocks as kernels
from sgcn.samplers.base import (
    LayerSampler,
    scratch,
    size_of_layer,
    sizes_option,
    weigh,
    weighting_option,
)


@dataclass(frozen=True)
class Labor(LayerSampler):
    """Row i keeps neighbour j if u_j < s / deg(i), one u_j for all rows.

    The weight is P_ij max(1, deg(i) / s).
    """

    name = "labor"
    summary = "LABOR-0: about s neighbours of every node, chosen alike by all rows"

    sizes: int | tuple[int, ...] = sizes_option(5, "neighbours expected for a node")
    weighting: str = weighting_option("unbiased")

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        size = size_of_layer(self.sizes, layer, depth)
        indptr, indices, weights, src = kernels.labor_block(
            graph.propagation, rows, size, stream, scratch.position(graph)
        )
        weigh(graph, rows, indptr, weights, self.weighting)
        return Block(indptr, indices, weights, src, rows, np.arange(len(rows), dtype=np.int32))
