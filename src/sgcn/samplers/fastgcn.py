"""FastGCN (eq:layer-wise): one importance law over all nodes, independent draws in every layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sgcn.block import Int32
from sgcn.graph import Graph
from sgcn.kernels import batches as kernels
from sgcn.options import flag, option
from sgcn.samplers.base import (
    OneCallSampler,
    column_law,
    row_targets,
    scratch,
    sizes_of_layers,
    sizes_option,
    weighting_option,
)


@dataclass(frozen=True)
class Fastgcn(OneCallSampler):
    """M_ij = P_ij count_j / (s p_j) with p_j ~ |P_:j|^2 over all rows."""

    name = "fastgcn"
    summary = "FastGCN: s draws a layer from one law over all nodes, p_j ~ |column j of P|^2"

    sizes: int | tuple[int, ...] = sizes_option(4096, "draws in a layer")
    weighting: str = weighting_option("hajek")
    keep_destinations: bool = option(True, flag(), "every destination is a source, weight exact")

    @property
    def keeps_destinations(self) -> bool:
        return self.keep_destinations

    def _draw(
        self, graph: Graph, seeds: Int32, layers: Sequence[int], streams: Any, depth: int
    ) -> Any:
        return kernels.law_batch(
            graph.propagation,
            seeds,
            sizes_of_layers(self.sizes, layers, depth),
            streams,
            column_law(graph),
            self.keep_destinations,
            scratch.of(graph),
            row_targets(graph, self.weighting),
        )
