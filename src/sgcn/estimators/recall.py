"""What a regular step reads of the past: once, for all of its passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from sgcn.compute.buffers import distance
from sgcn.compute.gradients import Weights
from sgcn.compute.inputs import Input, LazyRows
from sgcn.compute.operators import Operator
from sgcn.estimators.passes import Pass, Step, forward
from sgcn.nn import Layer
from sgcn.rows import History

if TYPE_CHECKING:
    from sgcn.estimators.forward.base import ForwardRule
    from sgcn.estimators.shortcuts import Shortcuts

T = TypeVar("T")


def _once(make: Callable[[Recall, int], T]) -> Callable[[Recall, int], T]:
    """A method of a layer's past that is called once a step."""

    @wraps(make)
    def known(self: Recall, level: int) -> T:
        return self.once(make.__name__, level, partial(make, self, level))

    return known


class Recall:
    """A forward rule at work on one step: its histories' rows, and what was computed of them."""

    def __init__(
        self,
        rule: ForwardRule,
        step: Step,
        histories: list[History],
        old_weights: Weights,
        shortcuts: Shortcuts,
    ) -> None:
        self.rule, self.step, self.histories = rule, step, histories
        self.old_weights, self.shortcuts = old_weights, shortcuts
        pairs = list(zip(histories, step.nodes, strict=False))
        self.rows = [history.read(ids) for history, ids in pairs]
        self.valid = [history.covers(ids) for history, ids in pairs]
        self.changes: dict[int, float] = {}  # |Z - Z_old| / |Z_old| of each layer, in the live pass
        self._made: dict[tuple[str, int], Any] = {}

    def run(self, weights: Weights) -> Pass:
        """A pass at ``weights``: the live one, or a stale one at the old weights."""
        return forward(self.step, weights, self.layer)

    def layer(self, weights: Weights, level: int, h: Input) -> Tensor:
        """Z of one layer: by the first shortcut that applies, else by the rule's equation.

        A layer whose sums were computed beforehand (P X) is exact: there is nothing to correct.
        """
        at = LayerAt(self, weights, level, h)
        taken = (cut(at) for cut in self.rule.shortcuts if self.shortcuts.takes(cut.__name__))
        z = next((found for found in taken if found is not None), None)
        if z is None and at.precomputed:
            z, at.moved = at.sampled, 0.0
        elif z is None:
            z = self.rule.layer(at)
        if at.counts_change:
            moved = distance(z.detach(), at.z_old) if at.moved is None else at.moved
            size = float(at.z_old.norm()) if moved > 0 else 0.0
            self.changes[level] = moved / size if size > 0 else 0.0
        covered = self.rule.covered(at)
        return z if covered is None else torch.where(covered, z, at.sampled)

    def once(self, name: str, level: int, make: Callable[[], T]) -> T:
        """``make()``, once a step for each layer."""
        if (name, level) not in self._made:
            self._made[name, level] = make()
        found: T = self._made[name, level]
        return found

    def forget(self) -> None:
        """Let go of all rows: what is left serves `ForwardRule.commit`."""
        self.rows.clear()
        self._made.clear()

    # -- the past of layer ``level`` ------------------------------------------------------------

    @_once
    @torch.no_grad()
    def sampled_old(self, level: int) -> Tensor:
        """f(M, H_old; W_old), a constant."""
        h_old = self.h_old(level)
        if isinstance(h_old, Tensor):  # a leaf like that of the live pass: layers treat it the same
            h_old = h_old.detach().requires_grad_()
        return self.step.sampled(level, self.old_weights, h_old)

    @_once
    def z_old(self, level: int) -> Tensor:
        """Z_old[R]: the history's rows; where it has none, what the old weights make of the sample.

        An exact layer that follows every step is f(P X; W_old), whatever lags in the history.
        """
        rows, valid = self.rows[level], self.valid[level]
        follows = self.rule.updates_each_step or valid is not None
        if self.step.operators[level].precomputed and follows:
            return self.sampled_old(level)
        return rows if valid is None else torch.where(valid, rows, self.sampled_old(level))

    def h_old(self, level: int) -> Input:
        """H_old of the layer's input: act(Z_old) of the layer below, or the features."""
        below = level - 1
        if below < 0:
            return self.step.x
        if self.rule.keeps_activations or self.z_old(below) is self.rows[below]:
            return self.activations(below)
        return self.once("h_old", below, lambda: self.step.model.act(self.z_old(below), below))

    @_once
    def activations(self, level: int) -> Tensor:
        """H of the history's rows as they were read."""
        rows = self.rows[level]
        return rows if self.rule.keeps_activations else self.step.model.act(rows, level)


class LayerAt:
    """Layer ``level`` of one pass: what the equation of a forward rule may use."""

    def __init__(self, recall: Recall, weights: Weights, level: int, h: Input) -> None:
        self.recall, self.weights, self.level, self.h = recall, weights, level, h
        self.old_weights = recall.old_weights  # W_old, at which the histories are meant to be
        self.at_old_weights = weights is recall.old_weights
        self.step = step = recall.step
        self.layer: Layer = step.model.layer(level)
        self.operator: Operator = step.operators[level]  # M
        self.precomputed = self.operator.precomputed  # by P X, so that the layer is exact
        #: Whether it matters how far Z has gone from Z_old, and how far, where a shortcut found it.
        self.counts_change = recall.rule.counts_changes and not self.at_old_weights
        self.moved: float | None = None

    # -- the sample -----------------------------------------------------------------------------

    def f(self, h: Input, weights: Weights, operator: Operator | None = None) -> Tensor:
        """f_l(M, h; weights) under the step's dropout mask; without one on another operator."""
        if operator is not None:
            return self.step.model.run_layer(self.level, weights, operator, h)
        if h is self.h and weights is self.weights:
            return self.sampled
        return self.step.sampled(self.level, weights, h)

    @cached_property
    def sampled(self) -> Tensor:
        """f(M, H; W)."""
        out = self.step.sampled(self.level, self.weights, self.h)
        if self.at_old_weights and self.recall.shortcuts.takes("stale_pass_is_reference"):
            self.once("sampled_old", out.detach)
        return out

    # -- the past -------------------------------------------------------------------------------

    @property
    def sampled_old(self) -> Tensor:
        """f(M, H_old; W_old), a constant."""
        return self.recall.sampled_old(self.level)

    @property
    def z_old(self) -> Tensor:
        """Z_old[R]."""
        return self.recall.z_old(self.level)

    @property
    def h_old(self) -> Input:
        """H_old of the layer's input."""
        return self.recall.h_old(self.level)

    @property
    def exact_operator(self) -> Operator:
        """P[R, :], for rules that read all neighbours."""
        return self.step.exact[self.level][0]

    @property
    def lazy_neighbours(self) -> LazyRows:
        """H_old of all neighbours, not gathered yet: features for the first layer."""
        ids = self.step.exact[self.level][1]
        if self.level == 0:  # one object for all passes: operators keep the sums of a constant
            return self.once("features", lambda: LazyRows(self.step.x.store, ids))
        return self.recall.histories[self.level - 1].lazy(ids)

    @property
    def h_neighbours(self) -> Input:
        """The same, gathered where it is not features."""
        if self.level == 0:
            return self.lazy_neighbours
        return self.once("neighbours", lambda: self.lazy_neighbours.dense())

    def once(self, name: str, make: Callable[[], T]) -> T:
        return self.recall.once(name, self.level, make)
