"""All neighbours: no sampling noise, and a neighbourhood that grows with every layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sgcn.block import Block, Int32
from sgcn.graph import Graph
from sgcn.samplers.base import LayerSampler, exact_block


@dataclass(frozen=True)
class Exact(LayerSampler):
    """M = P[R, :]."""

    name = "exact"
    summary = "all neighbours of every node"

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        return exact_block(graph, rows)
