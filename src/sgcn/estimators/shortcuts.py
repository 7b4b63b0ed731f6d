"""Ways to compute the same thing with fewer products, beside the equations of the rules.

Each can be switched off; the tests do, and find equal results. A forward rule lists those that it
can take in ``shortcuts``; the first that applies gives the layer's Z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.parametrize import is_parametrized

from sgcn.compute.buffers import difference, shifted
from sgcn.compute.operators import Shifted
from sgcn.estimators.recall import LayerAt

#: Shortcuts that are not of one layer: the stale pass computes f(M, H_old; W_old) anyway, so the
#: live one takes it from there; the gradient of a linear first layer is formed once, of the
#: difference of the two D; a snapshot's last layer has only rows with a loss or a score.
OTHERS = ("stale_pass_is_reference", "one_first_gradient", "needed_rows_only")


@dataclass(frozen=True)
class Shortcuts:
    """Which shortcuts may be taken: all but those that are ``off``, by name."""

    off: frozenset[str] = frozenset()

    def takes(self, name: str) -> bool:
        return name not in self.off


Shortcut = Callable[[LayerAt], Tensor | None]


def first_layer_cancels(at: LayerAt) -> Tensor | None:
    """A first layer at the old weights: H is X in both terms, so f - f = 0 and Z is Z_old."""
    # Else the stale pass would need a gradient of its own.
    together = at.recall.shortcuts.takes("one_first_gradient")
    if not at.at_old_weights or not together or not _first_layer_is_known(at):
        return None
    return at.z_old.detach().requires_grad_()


def weight_change(at: LayerAt) -> Tensor | None:
    """A linear first layer: f(M, X; W) - f(M, X; W_old) = f(M, X; W - W_old), one product."""
    if at.at_old_weights or at.precomputed or not _first_layer_is_known(at):
        return None
    prefix = f"layers.{at.level}."
    change = {
        name: weight - at.old_weights[name].detach()
        for name, weight in at.weights.items()
        if name.startswith(prefix)
    }
    moved = at.f(at.h, change)
    if at.counts_change:
        at.moved = float(moved.detach().norm())
    return shifted(moved, None, at.z_old)


def _first_layer_is_known(at: LayerAt) -> bool:
    """Whether a pass at the old weights finds just what the history has, and nobody asks how.

    The gradient by the parameters of a linear layer is formed once, in the live pass. If the layer
    is exact, the row must be what the old weights make of P X: of a history that rests at the
    snapshot, without dropout, not rounded.
    """
    layer, history = at.layer, at.recall.histories[at.level]
    if at.level > 0 or not layer.linear or is_parametrized(layer) or history.valid is not None:
        return False
    rests = not at.recall.rule.updates_each_step and at.step.model.dropout == 0.0
    return not at.precomputed or (rests and history.dtype == torch.float32)


def buffered_sum(at: LayerAt) -> Tensor | None:
    """Z_old + (f - f_old), in one piece of memory that is used again."""
    if at.precomputed:
        return None
    return shifted(at.sampled, at.sampled_old, at.z_old)


def features_are_exact(at: LayerAt) -> Tensor | None:
    """VR-GCN's first layer: features are their own history, so f(P, X; W) is all."""
    return at.f(at.h_neighbours, at.weights, at.exact_operator) if at.level == 0 else None


def sum_before_product(at: LayerAt) -> Tensor | None:
    """A linear f is taken once, of P[R, :] H_old + M (H - H_old): a third of the products.

    Not under dropout: one mask for two sums would be another formula.
    """
    layer = at.layer
    if at.level == 0 or not (layer.linear and layer.sums_inputs) or at.step.model.dropout > 0:
        return None

    def base() -> Shifted:
        sums = at.exact_operator.aggregate(at.lazy_neighbours)
        return Shifted(at.operator, difference(sums, at.operator.aggregate(at.h_old)))

    return at.step.model.run_layer(at.level, at.weights, at.once("shifted", base), at.h)
