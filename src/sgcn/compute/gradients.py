"""Gradients of one segment of a pass: from a layer's output to its parameters and its input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sgcn.compute.buffers import applied

Weights = Mapping[str, Tensor]
Gradient = dict[str, Tensor]


def pull(
    value: Tensor, weights: Weights, prefix: str, leaf: Tensor | None, flowing: Tensor | None
) -> tuple[Gradient, Tensor | None]:
    """The gradient of ``value`` by the weights under ``prefix``, and by ``leaf``.

    ``flowing`` is what comes from above, of the shape of ``value``; None if that is a number.
    """
    names = [name for name in weights if name.startswith(prefix)]
    targets = [weights[name] for name in names] + ([] if leaf is None else [leaf])
    if not targets:  # a first layer without parameters
        return {}, None
    found = torch.autograd.grad(weighted(value, flowing), targets, allow_unused=True)
    pulled = [torch.zeros_like(t) if g is None else g for t, g in zip(targets, found, strict=True)]
    return dict(zip(names, pulled, strict=False)), None if leaf is None else pulled[-1]


def add_to(total: Gradient, part: Gradient) -> None:
    """total += part, in place; a name that is new is taken over."""
    for name, g in part.items():
        total[name] = g if name not in total else total[name].add_(g)


def weighted(value: Tensor, flowing: Tensor | None) -> Tensor:
    """A number whose gradient by ``value`` is ``flowing``; without one ``value`` is a number."""
    return value if flowing is None else applied(_Weighted, value, flowing)


class _Weighted(torch.autograd.Function):
    """A number whose gradient by ``value`` is ``flowing``.

    torch.autograd.grad takes ``flowing`` itself, but then loads torch's compiler to look at its
    shape, which takes longer than the first steps.
    """

    @staticmethod
    def forward(ctx: Any, value: Tensor, flowing: Tensor) -> Tensor:
        ctx.save_for_backward(flowing)
        return value.new_zeros(())

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (flowing,) = ctx.saved_tensors
        return flowing, None
