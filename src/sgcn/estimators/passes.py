"""One run through the model and back, layer by layer as on the algorithm pages of the paper.

The forward pass is cut at every layer (its input is a fresh leaf), so that the backward pass holds
the layer gradients D^l in its hands and may correct them before it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from sgcn.compute.buffers import applied, difference
from sgcn.compute.operators import Operator
from sgcn.nn import Model, layer_input
from sgcn.nn.layers import Input
from sgcn.rng import Key
from sgcn.task import Task

Weights = Mapping[str, Tensor]
Gradient = dict[str, Tensor]

_DROPOUT = 1 << 33  # layer numbers of the streams that dropout draws from


@dataclass(eq=False)
class Step:
    """What the passes of one step share: blocks, nodes, dropout masks, loss weights."""

    model: Model
    task: Task
    operators: list[Operator]
    nodes: list[Tensor]  # R_l: the destinations of layer l = 1..L
    x: Input
    loss_weights: Tensor
    loss_nodes: Tensor  # the nodes that have a loss, and ...
    loss_places: Tensor | None = None  # ... where they stand in R_L; None if they are R_L
    exact: list[tuple[Operator, Tensor]] = field(default_factory=list)  # P[R_l, :] and its sources
    dropout: float = 0.0
    key: Key = field(default_factory=lambda: Key(0))
    masks: dict[int, Tensor] = field(default_factory=dict)

    def layer(self, level: int, weights: Weights, h: Input, operator: Operator) -> Tensor:
        """f_l(operator, h; weights), pure."""
        prefix = f"layers.{level}."
        own = {k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix)}
        module = self.model.layers[level]
        z: Tensor = functional_call(module, own, (operator, layer_input(module, h)))
        return z

    def masked(self, level: int, h: Input) -> Input:
        """Dropout on the input of layer ``level``, the same for every pass of the step."""
        if self.dropout == 0.0:
            return h
        h = h if isinstance(h, Tensor) else h.dense()
        if level not in self.masks:
            stream = int(self.key.stream(_DROPOUT + level)) >> 1
            noise = torch.rand(h.shape, generator=torch.Generator().manual_seed(stream))
            self.masks[level] = (noise >= self.dropout).float() / (1.0 - self.dropout)
        return h * self.masks[level]


@dataclass(eq=False)
class Pass:
    """A forward run: per layer the leaf it read, its Z, and H = act(Z)."""

    weights: Weights
    inputs: list[Input]
    z: list[Tensor]
    h: list[Tensor]
    logits: Tensor
    loss: Tensor
    top: Tensor  # the leaf that the head read


LayerRule = Callable[[Step, Weights, int, Input], Tensor]


def plain_layer(step: Step, weights: Weights, level: int, h: Input) -> Tensor:
    """Z = f(M, H; W)."""
    return step.layer(level, weights, step.masked(level, h), step.operators[level])


def forward(step: Step, weights: Weights, rule: LayerRule) -> Pass:
    """Run the model at ``weights``, each layer by ``rule``."""
    h: Input = step.x
    inputs, zs, hs = [], [], []
    for level in range(step.model.depth):
        inputs.append(h)
        zs.append(rule(step, weights, level, h))
        hs.append(step.model.act(zs[-1], level))
        h = hs[-1].detach().requires_grad_()
    assert isinstance(h, Tensor)
    own = {k[5:]: v for k, v in weights.items() if k.startswith("head.")}
    logits = functional_call(step.model.head, own, (h,))
    chosen = logits if step.loss_places is None else logits.index_select(0, step.loss_places)
    loss = step.task.loss(chosen, step.loss_nodes, step.loss_weights)
    return Pass(weights, inputs, zs, hs, logits, loss, h)


#: Called with (level, [gradient by H^level of each pass]); returns them corrected.
Correction = Callable[[int, list[Tensor]], list[Tensor]]


def backward(run: Pass) -> tuple[Gradient, list[Tensor]]:
    """The gradient of a pass, and its layer gradients D (of layers 1..L-1)."""
    grads: Gradient = {}
    _, layer_gradients = _descend([run], [grads], 0, None)
    return grads, layer_gradients


def backward_change(step: Step, live: Pass, stale: Pass, correct: Correction | None) -> Gradient:
    """The gradient of ``live`` minus that of ``stale``.

    Where the gradient of a first layer's parameters is linear in D (``linear``), the two D are
    subtracted before it is formed, which spares the largest product of the backward pass.
    """
    passes, grads = [live, stale], [Gradient(), Gradient()]
    linear = getattr(step.model.layers[0], "linear", False)
    flowing, _ = _descend(passes, grads, 1 if linear else 0, correct)
    if linear:
        slopes = [
            torch.autograd.grad(_weighed(run.h[0], d), run.z[0])[0]
            for run, d in zip(passes, flowing, strict=True)
        ]
        _pull(live.z[0], live, "layers.0.", None, difference(*slopes), grads[0])
    new, old = grads
    return {name: g - old[name] if name in old else g for name, g in new.items()}


def _descend(
    passes: list[Pass], grads: list[Gradient], last: int, correct: Correction | None
) -> tuple[list[Tensor | None], list[Tensor]]:
    """Go down from the loss to layer ``last`` (0 is the first), all passes side by side.

    Fills ``grads``; returns what flows on into the outputs of the layer below, and the layer
    gradients of the first pass.
    """
    flowing: list[Tensor | None] = [
        _pull(run.loss, run, "head.", run.top, None, found)
        for run, found in zip(passes, grads, strict=True)
    ]
    layer_gradients: list[Tensor] = []
    for level in range(len(passes[0].z) - 1, last - 1, -1):
        for k, (run, found) in enumerate(zip(passes, grads, strict=True)):
            leaf = run.inputs[level] if level > 0 else None
            assert leaf is None or isinstance(leaf, Tensor)
            flowing[k] = _pull(run.h[level], run, f"layers.{level}.", leaf, flowing[k], found)
        if level > 0:
            reached = [g for g in flowing if g is not None]
            if correct is not None:
                reached = correct(level - 1, reached)
            layer_gradients.insert(0, reached[0])
            flowing = [*reached]
    return flowing, layer_gradients


def _pull(
    value: Tensor,
    run: Pass,
    prefix: str,
    leaf: Tensor | None,
    flowing: Tensor | None,
    found: Gradient,
) -> Tensor | None:
    """Gradients of one segment: by its parameters into ``found``, by its leaf as the result."""
    names = [name for name in run.weights if name.startswith(prefix)]
    targets = [run.weights[name] for name in names] + ([] if leaf is None else [leaf])
    if not targets:  # a first layer without parameters
        return None
    value = _weighed(value, flowing)
    pulled = torch.autograd.grad(value, targets, allow_unused=True)
    pulled = tuple(
        torch.zeros_like(t) if g is None else g for t, g in zip(targets, pulled, strict=True)
    )
    found.update(zip(names, pulled, strict=False))
    return None if leaf is None else pulled[-1]


def _weighed(value: Tensor, flowing: Tensor | None) -> Tensor:
    """A number whose gradient by ``value`` is ``flowing``; without one ``value`` is a number."""
    if flowing is None:
        return value
    return applied(_Weighed, value, flowing)


class _Weighed(torch.autograd.Function):
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
