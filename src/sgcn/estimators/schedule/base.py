"""What calls a snapshot before its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgcn.options import Options


@dataclass(frozen=True)
class RestartRule(Options):
    """Looks at a regular step at three moments; the base class never calls.

    A rule that calls `after_forward` or `after_gradient` ends the step: a snapshot takes its place,
    at the same weights, and the step leaves no trace. `between_steps` makes the next step one.
    """

    def between_steps(self, drift: float, noise: float) -> bool:
        """Given how far Z and G have gone since the snapshot, over their sizes."""
        return False

    def after_forward(self, norm_growth: float) -> bool:
        """Given the largest growth of a history's norm, were this step's rows written."""
        return False

    def after_gradient(self, layer_gradient_growth: float, distance: Callable[[], float]) -> bool:
        """Given the same of the layer gradients, and |G - G_s| / |G_s| if the rule asks for it."""
        return False
