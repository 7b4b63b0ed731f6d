"""One sampled run through the model and back, layer by layer as in the paper's algorithms.

The forward pass is cut at every layer (its input is a fresh leaf), so that the backward pass has
the layer gradients D^l in hand and may correct them before it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from sgcn.compute.buffers import difference, dropped
from sgcn.compute.gradients import Gradient, Weights, pull, weighted
from sgcn.compute.inputs import Input, LazyRows
from sgcn.compute.operators import Operator
from sgcn.nn import Model
from sgcn.rng import Key, Stream
from sgcn.task import Task


@dataclass(eq=False)
class Step:
    """What the passes of one step share: blocks, nodes, dropout masks, loss weights."""

    model: Model
    task: Task
    operators: list[Operator]
    nodes: list[Tensor]  # R_l: the destinations of layer l = 1..L
    x: LazyRows
    loss_weights: Tensor
    loss_nodes: Tensor
    exact: list[tuple[Operator, Tensor]]  # P[R_l, :] and its sources
    key: Key

    def sampled(self, level: int, weights: Weights, h: Input) -> Tensor:
        """f_l(M, h; weights), with the step's dropout mask on h."""
        return self.model.run_layer(level, weights, self.operators[level], self.masked(level, h))

    def masked(self, level: int, h: Input) -> Input:
        """Dropout on the input of layer ``level``, the same for every pass of the step.

        Columns that the layer below handed on have been through it.
        """
        share = self.model.dropout
        if share == 0.0:
            return h
        if not isinstance(h, Tensor):
            return self._masked_x
        stream = self.key.stream(Stream.DROPOUT, level)
        carried = self.model.layer(level - 1).carried
        if not carried:
            return dropped(h, stream, share)
        return torch.cat([dropped(h[:, :-carried], stream, share), h[:, -carried:]], 1)

    @cached_property  # one object for all passes: operators keep the sums of a constant
    def _masked_x(self) -> LazyRows:
        return self.x.dropped(self.key.stream(Stream.DROPOUT, 0), self.model.dropout)


@dataclass(eq=False)
class Pass:
    """A forward run: per layer the leaf it read, its Z, and H = act(Z)."""

    weights: Weights
    inputs: list[Input]
    z: list[Tensor]
    h: list[Tensor]
    logits: Tensor
    loss: Tensor
    head_input: Tensor  # the leaf that the head read


#: How a layer's Z is formed: of the weights, the level and the layer's input.
LayerRule = Callable[[Weights, int, Input], Tensor]


def forward(step: Step, weights: Weights, rule: LayerRule) -> Pass:
    """Run the model at ``weights``, each layer by ``rule``."""
    h: Input = step.x
    inputs, zs, hs = [], [], []
    for level in range(step.model.depth):
        inputs.append(h)
        zs.append(rule(weights, level, h))
        hs.append(step.model.act(zs[-1], level))
        h = hs[-1].detach().requires_grad_()
    assert isinstance(h, Tensor)
    logits = step.model.run_head(weights, h)
    loss = step.task.loss(logits, step.loss_nodes, step.loss_weights)
    return Pass(weights, inputs, zs, hs, logits, loss, h)


#: Called with (level, [gradient by H^level of each pass]); returns them corrected.
Correction = Callable[[int, list[Tensor]], list[Tensor]]


def backward(run: Pass) -> tuple[Gradient, list[Tensor]]:
    """The gradient of a pass, and its layer gradients D (of layers 1..L-1)."""
    (gradient,), _, layer_gradients = _descend([run], 0, None)
    return gradient, layer_gradients


def backward_change(
    live: Pass, stale: Pass, correct: Correction | None, *, together: bool
) -> tuple[Gradient, list[Tensor]]:
    """The gradient of ``live`` minus that of ``stale``, and the layer gradients of ``live``.

    Where the gradient of a first layer's parameters is linear in D, ``together`` subtracts the two
    D before it is formed, which spares the largest product of the backward pass.
    """
    passes = [live, stale]
    (new, old), flowing, layer_gradients = _descend(passes, 1 if together else 0, correct)
    if together:
        slopes = [
            torch.autograd.grad(weighted(run.h[0], d), run.z[0])[0]
            for run, d in zip(passes, flowing, strict=True)
        ]
        new |= pull(live.z[0], live.weights, "layers.0.", None, difference(*slopes))[0]
    change = {name: g - old[name] if name in old else g for name, g in new.items()}
    return change, layer_gradients


def _descend(
    passes: list[Pass], last: int, correct: Correction | None
) -> tuple[list[Gradient], list[Tensor | None], list[Tensor]]:
    """Go down from the loss to layer ``last`` (0 is the first), all passes side by side.

    Returns their gradients, what flows on into the outputs of the layer below, and the layer
    gradients of the first pass.
    """
    heads = [pull(run.loss, run.weights, "head.", run.head_input, None) for run in passes]
    grads, flowing = [found for found, _ in heads], [by_input for _, by_input in heads]
    layer_gradients: list[Tensor] = []
    for level in range(len(passes[0].z) - 1, last - 1, -1):
        for k, (run, found) in enumerate(zip(passes, grads, strict=True)):
            leaf = run.inputs[level] if level > 0 else None
            assert leaf is None or isinstance(leaf, Tensor)
            prefix, above = f"layers.{level}.", flowing[k]
            by_weights, flowing[k] = pull(run.h[level], run.weights, prefix, leaf, above)
            found |= by_weights
        if level > 0:
            reached = [g for g in flowing if g is not None]
            if correct is not None:
                reached = correct(level - 1, reached)
            layer_gradients.insert(0, reached[0])
            flowing = [*reached]
    return grads, flowing, layer_gradients
