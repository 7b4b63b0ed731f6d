"""Gradient rules: how the gradient of a regular step uses what earlier steps knew.

A new rule is a class here or in a file of its own, and a line in `GRADIENT_RULES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from sgcn.estimators.passes import (
    Correction,
    Gradient,
    Pass,
    Step,
    Weights,
    backward,
    backward_change,
)
from sgcn.rows import Table


class GradientRule:
    """``stale`` says at which weights a second pass runs; ``form`` makes the gradient."""

    needs_snapshot: ClassVar[bool] = False
    #: Whether the state moves at every step (recursive) or rests at the snapshot (anchored).
    moves: ClassVar[bool] = False

    def __init__(self, depth: int, make: Callable[[int], Table], layer_gradients: bool) -> None:
        keep = layer_gradients and self.needs_snapshot
        self.tables = [make(level) for level in range(depth - 1)] if keep else []
        self.norms = [0.0] * len(self.tables)
        self.snapshot_norms = [0.0] * len(self.tables)
        self.known: Gradient = {}
        self.anchor: Gradient = {}
        self.moved = 0.0  # how far G has gone from the snapshot's, over its size

    def stale(self, previous: Weights, anchor: Weights) -> Weights | None:
        return None

    def assign(self, step: Step, grads: Gradient, layers: list[Tensor], nodes: int | None) -> None:
        """Set the state from a snapshot's gradient and layer gradients."""
        if not self.needs_snapshot:
            return
        self.known = self.anchor = grads
        self.moved = 0.0
        for level, (table, d) in enumerate(zip(self.tables, layers, strict=False)):
            if nodes is None:
                table.assign(d)
            else:
                table.assign_some(step.nodes[level], d, nodes)
            self.norms[level] = self.snapshot_norms[level] = float(d.norm()) ** 2

    def form(self, step: Step, live: Pass, stale: Pass | None) -> Gradient:
        """The gradient of a regular step. Changes no state: `commit` does, after the step."""
        self._next_norms = list(self.norms)
        self._rows: list[tuple[int, Tensor]] = []
        if stale is None:
            return backward(live)[0]
        correct = self._correction(step) if self.tables else None
        change = backward_change(step, live, stale, correct)
        base = self.known if self.moves else self.anchor
        self._gradient = {name: base[name] + change[name] for name in change}
        size = _square(self.anchor)
        self._move = _square(change) / size if size > 0 else 0.0
        return self._gradient

    def _correction(self, step: Step) -> Correction:
        """eq:sgcn_plus_plus_regular, second line: D[C] = D_old[C] + (live - stale)."""

        def correct(level: int, flowing: list[Tensor]) -> list[Tensor]:
            live, stale = flowing
            ids, table = step.nodes[level], self.tables[level]
            old = table.read(ids)
            new = old + (live - stale)
            growth = new.square() - old.square()
            if table.valid is not None:
                keep = table.valid.index_select(0, ids)[:, None]
                new, old, growth = new.where(keep, live), old.where(keep, stale), growth * keep
            self._rows.append((level, new))
            self._next_norms[level] += float(growth.sum())
            return [new, old]

        return correct

    def drifted_norms(self) -> list[float]:
        return self._next_norms if self.moves else self.norms

    def commit(self, step: Step) -> None:
        if not self.needs_snapshot:
            return
        # Noise of several corrections adds up by its squares; one from the snapshot stands alone.
        self.moved = math.sqrt(self._move + (self.moved**2 if self.moves else 0.0))
        if not self.moves:
            return
        self.known = self._gradient
        self.norms = self._next_norms
        for level, rows in self._rows:
            table, ids = self.tables[level], step.nodes[level]
            table.write(ids, rows)
            if table.valid is not None:  # rows the snapshot did not cover count in both norms
                fresh = float((rows.square() * ~table.valid.index_select(0, ids)[:, None]).sum())
                self.norms[level] += fresh
                self.snapshot_norms[level] += fresh
                table.valid[ids.long()] = True


def _square(gradient: Gradient) -> float:
    return sum(float(g.square().sum()) for g in gradient.values())


class Plain(GradientRule):
    """Back-propagation through the forward rule."""


class Recursive(GradientRule):
    """SARAH-like (eq:sgcn_plus_plus_regular): G_t = G_(t-1) + g(W_t) - g(W_(t-1))."""

    needs_snapshot = True
    moves = True

    def stale(self, previous: Weights, anchor: Weights) -> Weights | None:
        return previous


class Anchored(GradientRule):
    """SVRG-like: G_t = G_s + g(W_t) - g(W_s)."""

    needs_snapshot = True

    def stale(self, previous: Weights, anchor: Weights) -> Weights | None:
        return anchor


GRADIENT_RULES: dict[str, type[GradientRule]] = {
    "plain": Plain,
    "recursive": Recursive,
    "anchored": Anchored,
}
