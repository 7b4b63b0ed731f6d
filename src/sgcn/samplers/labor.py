"""LABOR-0: neighbour sampling in which the rows agree on whom they keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgcn.block import Int32
from sgcn.graph import Graph
from sgcn.kernels import batches as kernels
from sgcn.samplers.base import (
    OneCallSampler,
    row_targets,
    scratch,
    sizes_of_layers,
    sizes_option,
    weighting_option,
)


@dataclass(frozen=True)
class Labor(OneCallSampler):
    """Row i keeps neighbour j if u_j < s / deg(i), one u_j for all rows.

    The weight is P_ij max(1, deg(i) / s).
    """

    name = "labor"
    summary = "LABOR-0: about s neighbours of every node, chosen alike by all rows"

    sizes: int | tuple[int, ...] = sizes_option(5, "neighbours expected for a node")
    weighting: str = weighting_option("unbiased")

    def _draw(
        self, graph: Graph, seeds: Int32, layers: Sequence[int], streams: Any, depth: int
    ) -> Any:
        return kernels.labor_batch(
            graph.propagation,
            seeds,
            sizes_of_layers(self.sizes, layers, depth),
            streams,
            row_targets(graph, self.weighting),
            scratch.position(graph),
        )
