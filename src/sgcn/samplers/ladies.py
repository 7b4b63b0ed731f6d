"""LADIES (eq:layer-wise): draws among the neighbours of the layer above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sgcn.block import Float32
from sgcn.graph import Graph
from sgcn.kernels import LadiesLaw
from sgcn.kernels.batches import ladies_batch
from sgcn.kernels.blocks import square_sums
from sgcn.options import flag, one_of, option
from sgcn.samplers.base import OneCallSampler, scratch, sizes_option, weighting_option


@dataclass(frozen=True)
class Ladies(OneCallSampler):
    """M_ij = P_ij count_j / (s p_j) with p_j ~ sum over i in R of P_ij^2."""

    name = "ladies"
    summary = "LADIES: s draws a layer among the neighbours of the layer above"
    kernel = staticmethod(ladies_batch)

    sizes: int | tuple[int, ...] = sizes_option(512, "draws in a layer")
    weighting: str = weighting_option("hajek")
    keep_destinations: bool = option(True, flag(), "every destination is a source, weight exact")
    draws: str = option(
        "stratified", one_of("stratified", "independent"), "rows drawn evenly, or by chance"
    )

    def _arguments(self, graph: Graph, target: Float32) -> tuple[Any, ...]:
        squares = graph.memo("square_sums", lambda: square_sums(graph.propagation))
        law = LadiesLaw(self.keep_destinations, self.draws == "stratified", *squares)
        mass = scratch.get("mass", len(graph), np.float64)
        return law, scratch.of(graph), mass, target
