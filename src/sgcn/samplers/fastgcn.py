"""FastGCN (eq:layer-wise): one importance law over all nodes, independent draws in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgcn.block import Float32
from sgcn.graph import Graph
from sgcn.kernels.batches import law_batch
from sgcn.options import flag, option
from sgcn.samplers.base import OneCallSampler, column_law, scratch, sizes_option, weighting_option


@dataclass(frozen=True)
class Fastgcn(OneCallSampler):
    """M_ij = P_ij count_j / (s p_j) with p_j ~ |P_:j|^2 over all rows."""

    name = "fastgcn"
    summary = "FastGCN: s draws a layer from one law over all nodes, p_j ~ |column j of P|^2"
    kernel = staticmethod(law_batch)

    sizes: int | tuple[int, ...] = sizes_option(4096, "draws in a layer")
    weighting: str = weighting_option("hajek")
    keep_destinations: bool = option(True, flag(), "every destination is a source, weight exact")

    def _arguments(self, graph: Graph, target: Float32) -> tuple[Any, ...]:
        return column_law(graph), self.keep_destinations, scratch.of(graph), target
