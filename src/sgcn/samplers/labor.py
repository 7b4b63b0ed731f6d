"""LABOR-0: neighbour sampling in which the rows agree on whom they keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgcn.block import Float32
from sgcn.graph import Graph
from sgcn.kernels.batches import labor_batch
from sgcn.samplers.base import OneCallSampler, scratch, sizes_option, weighting_option


@dataclass(frozen=True)
class Labor(OneCallSampler):
    """Row i keeps neighbour j if u_j < s / deg(i), one u_j for all rows.

    The weight is P_ij max(1, deg(i) / s).
    """

    name = "labor"
    summary = "LABOR-0: about s neighbours of every node, chosen alike by all rows"
    kernel = staticmethod(labor_batch)

    sizes: int | tuple[int, ...] = sizes_option(5, "neighbours expected for a node")
    weighting: str = weighting_option("unbiased")

    def _arguments(self, graph: Graph, target: Float32) -> tuple[Any, ...]:
        return target, scratch.position(graph)
