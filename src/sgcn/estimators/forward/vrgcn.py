"""VR-GCN's rule: exact sums of historical activations, and samples of what changed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sgcn.estimators import shortcuts
from sgcn.estimators.forward.base import ForwardRule
from sgcn.estimators.recall import LayerAt


@dataclass(frozen=True)
class Vrgcn(ForwardRule):
    """Histories of activations H follow every step; features are their own history."""

    needs_snapshot = True
    needs_exact = True
    keeps_last_layer = False  # nothing reads its history
    keeps_activations = True
    updates_each_step = True
    shortcuts = (shortcuts.features_are_exact, shortcuts.sum_before_product)

    def layer(self, at: LayerAt) -> Tensor:
        """Z[R] = f(P[R, :], H_old; W) + f(M, H; W) - f(M, H_old; W)."""
        exact = at.f(at.h_neighbours, at.weights, at.exact_operator)
        return exact + (at.f(at.h, at.weights) - at.f(at.h_old, at.weights))

    def covered(self, at: LayerAt) -> Tensor | None:
        """Rows all of whose neighbours have a history."""
        if at.level == 0 or at.recall.histories[at.level - 1].valid is None:
            return None
        return at.once("covered", lambda: self._covered(at))

    def _covered(self, at: LayerAt) -> Tensor:
        known = at.recall.histories[at.level - 1].covers(at.step.exact[at.level][1])
        assert known is not None
        return at.exact_operator.aggregate((~known).float()) == 0
