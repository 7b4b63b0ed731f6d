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
    weighting_option,
)


@dataclass(frozen=True)
class Ladies(LayerSampler):
    """M_ij = P_ij count_j / (s p_j) with p_j ~ sum over i in R of P_ij^2."""

    name = "ladies"
    summary = "LADIES: s draws a layer among the neighbours of the layer above"

    sizes: int | tuple[int, ...] = sizes_option(512, "draws in a layer")
    weighting: str = weighting_option("hajek")
    keep_destinations: bool = option(True, flag(), "every destination is a source, weight exact")

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        src, factor = kernels.ladies_sources(
            graph.propagation,
            rows,
            size_of_layer(self.sizes, layer, depth),
            self.keep_destinations,
            stream,
            scratch.position(graph),
            scratch.get("mass", len(graph), np.float64),
        )
        return restricted_block(graph, rows, src, factor, self.weighting)
