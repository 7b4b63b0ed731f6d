"""The paper's rule for regular steps (eq:sgcn_plus_regular)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sgcn.estimators import shortcuts
from sgcn.estimators.forward.base import ForwardRule
from sgcn.estimators.recall import LayerAt


@dataclass(frozen=True)
class Recursive(ForwardRule):
    """Histories of Z follow every step; the old weights are those of the step before.

    A row that was not refreshed misses what the weights did meanwhile. Movement says how much that
    may be: the relative changes of the steps since the snapshot, added up.
    """

    needs_snapshot = True
    updates_each_step = True
    counts_changes = True
    shortcuts = (shortcuts.first_layer_cancels, shortcuts.weight_change, shortcuts.buffered_sum)

    def layer(self, at: LayerAt) -> Tensor:
        """Z_t[R] = Z_old[R] + f(M, H_t; W_t) - f(M, H_old; W_(t-1)); then Z_old[R] <- Z_t[R]."""
        return at.z_old + (at.f(at.h, at.weights) - at.sampled_old)

    def covered(self, at: LayerAt) -> Tensor | None:
        """A row without a history is what the weights make of the sample."""
        return None if at.precomputed else at.recall.valid[at.level]
