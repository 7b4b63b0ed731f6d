"""Gradient rules by name. A new one is a file beside this one and a line in `GRADIENT_RULES`."""

from __future__ import annotations

from sgcn.estimators.gradient.anchored import Anchored
from sgcn.estimators.gradient.base import Formed, GradientRule, Past
from sgcn.estimators.gradient.plain import Plain
from sgcn.estimators.gradient.recursive import Recursive

GRADIENT_RULES: dict[str, type[GradientRule]] = {
    "plain": Plain,
    "recursive": Recursive,
    "anchored": Anchored,
}

__all__ = ["GRADIENT_RULES", "Formed", "GradientRule", "Past"]
