"""What a gradient rule is: how the gradient of a regular step uses what earlier steps knew."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from sgcn.compute.gradients import Gradient, Weights
from sgcn.estimators.passes import Correction, Pass, Step, backward, backward_change
from sgcn.options import Options, flag, option
from sgcn.rows import History


@dataclass(eq=False)
class Past:
    """What a gradient rule remembers: G of the last step and the snapshot, and histories of D."""

    histories: list[History]
    last: Gradient = field(default_factory=dict)
    anchor: Gradient = field(default_factory=dict)
    moved: float = 0.0  # how far G has gone from the snapshot's, over its size


@dataclass(eq=False)
class Formed:
    """The gradient of a regular step, and what `commit` will write of it."""

    gradient: Gradient
    change: float = 0.0  # |g(live) - g(stale)|^2 over |G_s|^2
    layer_gradients: list[Tensor] = field(default_factory=list)  # D of the live pass, by level
    corrected: dict[int, Tensor] = field(default_factory=dict)  # D that the histories will have
    norms: list[float] = field(default_factory=list)  # of the histories, after `commit`


@dataclass(frozen=True)
class GradientRule(Options):
    """`estimate` is the rule's equation. A rule holds options; what changes is in its `Past`."""

    #: It corrects by what a snapshot left, and so needs one before it can begin.
    needs_snapshot: ClassVar[bool] = False
    #: The past follows every step; else it rests at the snapshot.
    updates_each_step: ClassVar[bool] = False

    @property
    def keeps_layer_gradients(self) -> bool:
        """Whether there are histories of the layer gradients D."""
        return False

    def stale_weights(self, previous: Weights, anchor: Weights) -> Weights | None:
        """The weights at which the same sample is run once more; None for no second run."""
        return None

    @abstractmethod
    def estimate(self, past: Past, change: Gradient) -> Gradient:
        """G_t, of the past and of ``change``: g(W_t; sample) - g(stale weights; same sample).

        Without stale weights ``change`` is g(W_t; sample) itself.
        """

    def assign(self, past: Past, gradient: Gradient) -> None:
        """Begin anew from a snapshot's gradient."""
        if self.needs_snapshot:
            past.last = past.anchor = gradient
            past.moved = 0.0

    def form(
        self, past: Past, step: Step, live: Pass, stale: Pass | None, *, together: bool = True
    ) -> Formed:
        """The gradient of a regular step; changes no state. ``together``: see `backward_change`."""
        if stale is None:
            gradient, layer_gradients = backward(live)
            return Formed(self.estimate(past, gradient), layer_gradients=layer_gradients)
        formed = Formed({}, norms=[history.norm for history in past.histories])
        correct = self._correction(past, step, formed) if past.histories else None
        together = together and step.model.layer(0).linear
        change, formed.layer_gradients = backward_change(live, stale, correct, together=together)
        formed.gradient = self.estimate(past, change)
        size = square(past.anchor)
        formed.change = square(change) / size if size > 0 else 0.0
        return formed

    def _correction(self, past: Past, step: Step, formed: Formed) -> Correction:
        """eq:sgcn_plus_plus_regular, second line: D[C] = D_old[C] + (live - stale)."""

        def correct(level: int, flowing: list[Tensor]) -> list[Tensor]:
            live, stale = flowing
            ids, history = step.nodes[level], past.histories[level]
            old = history.read(ids)
            new = old + (live - stale)
            formed.norms[level] = history.norm_after(ids, new.square() - old.square())
            known = history.covers(ids)
            if known is not None:
                new, old = new.where(known, live), old.where(known, stale)
            formed.corrected[level] = new
            return [new, old]

        return correct

    def commit(self, past: Past, step: Step, formed: Formed) -> None:
        """Write what a regular step learned, after the optimiser's step."""
        if not self.needs_snapshot:
            return
        # Noise of several corrections adds up by its squares; one from the snapshot stands alone.
        before = past.moved**2 if self.updates_each_step else 0.0
        past.moved = math.sqrt(formed.change + before)
        if not self.updates_each_step:
            return
        past.last = formed.gradient
        for level, rows in formed.corrected.items():
            past.histories[level].follow(step.nodes[level], rows, formed.norms[level], rows.square)


@dataclass(frozen=True)
class CorrectedGradient(GradientRule):
    """A rule with a second, stale run of the sample."""

    layer_gradients: bool = option(False, flag(), "keep and correct a table of layer gradients D")

    needs_snapshot = True

    @property
    def keeps_layer_gradients(self) -> bool:
        return self.layer_gradients


def square(gradient: Gradient) -> float:
    """|G|^2 over all parameters, summed in one order however a gradient is laid out."""
    return sum(float(g.contiguous().square().sum()) for g in gradient.values())
