"""The rule that the paper's text names: a gradient that is far from the snapshot's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgcn.estimators.schedule.base import RestartRule
from sgcn.options import option, real


@dataclass(frozen=True)
class GradientDistance(RestartRule):
    """|G_t - G_s| > distance |G_s|."""

    distance: float = option(0.002, real(0.0, open_=True), "|G - G_s| over |G_s|")

    def after_gradient(self, layer_gradient_growth: float, distance: Callable[[], float]) -> bool:
        return distance() > self.distance
