"""FastGCN (eq:layer-wise): one importance law over all nodes, independent draws in every layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgcn.block import Block, Int32
from sgcn.graph import Graph
from sgcn.kernels import blocks as kernels
from sgcn.options import flag, option
from sgcn.samplers.base import (
    ColumnLaw,
    LayerSampler,
    row_targets,
    scratch,
    size_of_layer,
    sizes_option,
    weighting_option,
)


@dataclass(frozen=True)
class Fastgcn(LayerSampler):
    """M_ij = P_ij count_j / (s p_j) with p_j ~ |P_:j|^2 over all rows."""

    name = "fastgcn"
    summary = "FastGCN: s draws a layer from one law over all nodes, p_j ~ |column j of P|^2"

    sizes: int | tuple[int, ...] = sizes_option(4096, "draws in a layer")
    weighting: str = weighting_option("hajek")
    keep_destinations: bool = option(True, flag(), "every destination is a source, weight exact")

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        law = ColumnLaw.of(graph)
        indptr, indices, weights, src, dst_in_src = kernels.law_block(
            graph.propagation,
            rows,
            self.keep_destinations,
            law.law,
            law.threshold,
            law.alias,
            size_of_layer(self.sizes, layer, depth),
            stream,
            scratch.position(graph),
            scratch.member(graph),
            row_targets(graph, self.weighting),
        )
        return Block(indptr, indices, weights, src, rows, dst_in_src)
