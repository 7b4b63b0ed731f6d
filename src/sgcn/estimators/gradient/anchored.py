"""A rule like SVRG's: from the snapshot's gradient, so that no noise adds up."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.compute.gradients import Gradient, Weights
from sgcn.estimators.gradient.base import CorrectedGradient, Past


@dataclass(frozen=True)
class Anchored(CorrectedGradient):
    """From the gradient of the snapshot, by the change that the same sample sees since."""

    def stale_weights(self, previous: Weights, anchor: Weights) -> Weights | None:
        return anchor

    def estimate(self, past: Past, change: Gradient) -> Gradient:
        """G_t = G_s + g(W_t; sample) - g(W_s; same sample)."""
        return {name: past.anchor[name] + change[name] for name in change}
