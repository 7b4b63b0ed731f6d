"""LADIES (eq:layer-wise): draws among the neighbours of the layer above."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgcn.block import Block, Int32
from sgcn.graph import Graph
from sgcn.kernels import blocks as kernels
from sgcn.options import flag, one_of, option
from sgcn.samplers.base import (
    LayerSampler,
    row_targets,
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
    draws: str = option(
        "stratified", one_of("stratified", "independent"), "rows drawn evenly, or by chance"
    )

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        p = graph.propagation
        sums, peaks = graph.memo("square_sums", lambda: kernels.square_sums(p))
        indptr, indices, weights, src, dst_in_src = kernels.ladies_block(
            p,
            rows,
            size_of_layer(self.sizes, layer, depth),
            self.keep_destinations,
            self.draws == "stratified",
            stream,
            scratch.position(graph),
            scratch.member(graph),
            scratch.get("mass", len(graph), np.float64),
            sums,
            peaks,
            row_targets(graph, self.weighting),
        )
        return Block(indptr, indices, weights, src, rows, dst_in_src)
