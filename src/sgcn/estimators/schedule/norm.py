"""The rule of the paper's algorithms: histories whose norms have grown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgcn.estimators.schedule.base import RestartRule
from sgcn.options import option, real


@dataclass(frozen=True)
class Norm(RestartRule):
    """|H_t| >= alpha |H_s| or |D_t| >= beta |D_s| for any layer, tested at time t."""

    alpha: float = option(1.1, real(1.0), "embeddings may grow by this factor")
    beta: float = option(1.1, real(1.0), "layer gradients may grow by this factor")

    def after_forward(self, norm_growth: float) -> bool:
        return norm_growth >= self.alpha

    def after_gradient(self, layer_gradient_growth: float, distance: Callable[[], float]) -> bool:
        return layer_gradient_growth >= self.beta
