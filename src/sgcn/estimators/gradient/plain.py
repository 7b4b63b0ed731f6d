"""Back-propagation through the forward rule, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.compute.gradients import Gradient
from sgcn.estimators.gradient.base import GradientRule, Past


@dataclass(frozen=True)
class Plain(GradientRule):
    """G_t = g(W_t; sample)."""

    def estimate(self, past: Past, change: Gradient) -> Gradient:
        return change
