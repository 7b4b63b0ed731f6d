"""GraphSAGE's rule (eq:node_wise): a few neighbours of every node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgcn.block import Float32
from sgcn.graph import Graph
from sgcn.kernels.batches import neighbor_batch
from sgcn.samplers.base import OneCallSampler, scratch, sizes_option, weighting_option


@dataclass(frozen=True)
class Neighbor(OneCallSampler):
    """M_ij = P_ij deg(i) / min(s, deg(i)) for s neighbours, uniform, without replacement.

    The node's own entry P_ii is not a neighbour: it is always kept, as it is.
    """

    name = "neighbor"
    summary = "GraphSAGE: s neighbours of every node, uniform, without replacement"
    kernel = staticmethod(neighbor_batch)

    sizes: int | tuple[int, ...] = sizes_option(5, "neighbours drawn for a node")
    weighting: str = weighting_option("unbiased")

    def _arguments(self, graph: Graph, target: Float32) -> tuple[Any, ...]:
        largest = graph.memo("max_degree", lambda: int(graph.degrees.max()))
        return target, scratch.position(graph), scratch.get("mark", largest + 1, np.uint8)
