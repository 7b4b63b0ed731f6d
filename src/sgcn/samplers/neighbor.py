"""GraphSAGE's rule (eq:node_wise): a few neighbours of every node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgcn.block import Block, Int32
from sgcn.graph import Graph
from sgcn.samplers.base import (
    LayerSampler,
    node_wise_block,
    size_of_layer,
    sizes_option,
    weighting_option,
)


@dataclass(frozen=True)
class Neighbor(LayerSampler):
    """M_ij = P_ij deg(i) / min(s, deg(i)) for s neighbours, uniform, without replacement.

    The node's own entry P_ii is not a neighbour: it is always kept, as it is.
    """

    name = "neighbor"
    summary = "GraphSAGE: s neighbours of every node, uniform, without replacement"

    sizes: int | tuple[int, ...] = sizes_option(5, "neighbours drawn for a node")
    weighting: str = weighting_option("unbiased")

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        size = size_of_layer(self.sizes, layer, depth)
        return node_wise_block(graph, rows, size, stream, self.weighting)
