"""Plain sampling (eq:sgcn): no history."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sgcn.estimators.forward.base import ForwardRule
from sgcn.estimators.recall import LayerAt


@dataclass(frozen=True)
class Plain(ForwardRule):
    """Z[R] = f(M, H; W)."""

    def layer(self, at: LayerAt) -> Tensor:
        return at.f(at.h, at.weights)
