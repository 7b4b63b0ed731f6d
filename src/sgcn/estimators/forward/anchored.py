"""Our rule: corrections from the last snapshot, which nothing lags behind."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.compute.gradients import Weights
from sgcn.estimators.forward.recursive import Recursive


@dataclass(frozen=True)
class Anchored(Recursive):
    """Z_t[R] = Z_s[R] + f(M, H_t; W_t) - f(M, H_s; W_s).

    The equation of `recursive`, with histories and old weights that rest at the snapshot s.
    """

    updates_each_step = False
    counts_changes = False

    def old_weights(self, previous: Weights, anchor: Weights) -> Weights:
        return anchor
