"""The paper's rule, like SARAH's (eq:sgcn_plus_plus_regular)."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.compute.gradients import Gradient, Weights
from sgcn.estimators.gradient.base import CorrectedGradient, Past


@dataclass(frozen=True)
class Recursive(CorrectedGradient):
    """From the gradient of the step before, by the change that the same sample sees."""

    updates_each_step = True

    def stale_weights(self, previous: Weights, anchor: Weights) -> Weights | None:
        return previous

    def estimate(self, past: Past, change: Gradient) -> Gradient:
        """G_t = G_(t-1) + g(W_t; sample) - g(W_(t-1); same sample)."""
        return {name: past.last[name] + change[name] for name in change}
