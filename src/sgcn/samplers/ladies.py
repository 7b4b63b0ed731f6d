"""LADIES (eq:layer-wise): draws among the neighbours of the layer above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgcn.block import Block, Int32
from sgcn.graph import Graph
from sgcn.kernels import blocks as kernels
from sgcn.options import flag, option
from sgcn.samplers.base import (
    LayerSampler,
    restricted_block,
    scratch,
    size_of_layer,
    sizes_option,
    weigh,
    weighting_option,
)

# Another stream: numbers that made the first attempt fail are not random any more.
_FRESH = np.uint64(0x5851F42D4C957F2D)


@dataclass(frozen=True)
class Ladies(LayerSampler):
    """M_ij = P_ij count_j / (s p_j) with p_j ~ sum over i in R of P_ij^2."""

    name = "ladies"
    summary = "LADIES: s draws a layer among the neighbours of the layer above"

    sizes: int | tuple[int, ...] = sizes_option(512, "draws in a layer")
    weighting: str = weighting_option("hajek")
    keep_destinations: bool = option(True, flag(), "every destination is a source, weight exact")

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        p, position = graph.propagation, scratch.position(graph)
        size = size_of_layer(self.sizes, layer, depth)
        squares = graph.memo("square_sums", lambda: kernels.square_sums(p))
        src, counts, total = kernels.ladies_draws(
            p, rows, size, self.keep_destinations, stream, position, *squares
        )
        if total < 0:
            mass = scratch.get("mass", len(graph), np.float64)
            src, factor = kernels.ladies_sources(
                p, rows, size, self.keep_destinations, stream ^ _FRESH, position, mass
            )
            return restricted_block(graph, rows, src, factor, self.weighting)
        block = restricted_block(graph, rows, src, np.ones(len(src), np.float32), "unbiased")
        kernels.weigh_draws(
            block.indptr, block.indices, block.weights, counts, size, total, p.loops
        )
        weigh(graph, rows, block.indptr, block.weights, self.weighting)
        return block
