"""Ways to compute the same thing with fewer products, beside the equations of the rules.

Each can be switched off; the tests do, and find equal results. A forward rule lists those that it
can take in ``shortcuts``; the first that applies gives the layer's Z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn.utils.parametrize import is_parametrized

from sgcn.compute.buffers import added, difference, shifted
from sgcn.compute.operators import Shifted

if TYPE_CHECKING:
    from sgcn.estimators.recall import LayerAt


@dataclass(frozen=True)
class Shortcuts:
    """Which shortcuts may be taken."""

    first_layer_cancels: bool = True
    weight_change: bool = True
    exact_layer: bool = True
    buffered_sum: bool = True
    features_are_exact: bool = True
    sum_before_product: bool = True
    #: The stale pass computes f(M, H_old; W_old) anyway: the live one takes it from there.
    stale_pass_is_reference: bool = True
    #: The gradient of a linear first layer is formed once, of the difference of the two D.
    one_first_gradient: bool = True
    #: The last layer of a snapshot is computed only for rows that have a loss or are scored.
    needed_rows_only: bool = True


Shortcut = Callable[["LayerAt"], Tensor | None]


def first_layer_cancels(at: LayerAt) -> Tensor | None:
    """A first layer at the old weights: H is X in both terms, so f - f = 0 and Z is Z_old."""
    together = at.recall.shortcuts.one_first_gradient  # else the stale pass needs its gradient too
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
    at.note_change(lambda: float(moved.detach().norm()))
    return added(moved, at.z_old)


def _first_layer_is_known(at: LayerAt) -> bool:
    """Whether a pass at the old weights finds just what the history has, and nobody asks how.

    The gradient by the parameters of a linear layer is formed once, in the live pass. If the layer
    is exact, the row must be what the old weights make of P X: of a history that rests at the
    snapshot, without dropout, not rounded.
    """
    layer = at.layer
    return (
        at.level == 0
        and layer.linear
        and not is_parametrized(layer)
        and at.history.valid is None
        and (at.rests_at_snapshot or not at.precomputed)
    )


def exact_layer(at: LayerAt) -> Tensor | None:
    """A layer whose sums were computed beforehand is exact: Z = f(P X; W), nothing to correct."""
    if not at.precomputed:
        return None
    at.note_change(lambda: 0.0)
    return at.sampled


def buffered_sum(at: LayerAt) -> Tensor | None:
    """Z_old + (f - f_old), in one piece of memory that is used again."""
    return shifted(at.sampled, at.sampled_old, at.z_old)


def features_are_exact(at: LayerAt) -> Tensor | None:
    """VR-GCN's first layer: features are their own history, so f(P, X; W) is all."""
    return at.f(at.h_neighbours, at.weights, at.exact_operator) if at.level == 0 else None


def sum_before_product(at: LayerAt) -> Tensor | None:
    """A linear f is taken once, of P[R, :] H_old + M (H - H_old): a third of the products.

    Not under dropout: one mask for two sums would be another formula.
    """
    layer = at.layer
    if at.level == 0 or not (layer.linear and layer.sums_inputs) or at.step.dropout > 0:
        return None

    def base() -> Shifted:
        sums = at.exact_operator.aggregate(at.lazy_neighbours)
        return Shifted(at.operator, difference(sums, at.operator.aggregate(at.h_old)))

    return at.step.model.run_layer(at.level, at.weights, at.once("shifted", base), at.h)
