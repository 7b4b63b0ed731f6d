"""`GradientProbe`: how far the gradients of a training run are from the exact one, and why.

At a chosen step the state stays as it is (weights, tables, G, earlier weights). Fresh batches are
drawn from a stream that the run does not use, and the gradient of each is compared with the exact
one at the same weights. Nothing that the run reads is changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from statistics import geometric_mean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.analysis.moments import Float64, Mean, Split, numbers, over
from sgcn.block import Batch, Int32
from sgcn.compute.operators import BlockOperator
from sgcn.errors import TrainingDiverged
from sgcn.estimators.engine import Engine
from sgcn.estimators.passes import Pass, Step
from sgcn.kernels.random import permutation
from sgcn.machine import check_memory
from sgcn.nn import Model
from sgcn.options import check, integer
from sgcn.rng import Key, Stream, check_seed
from sgcn.samplers.base import NodeSet, Sampler, exact_block
from sgcn.sources import Loader
from sgcn.training.events import ProbeEvent


@dataclass(frozen=True)
class LayerErrors:
    """Relative errors of one layer; the last two exist only for layers that have the quantity."""

    layer: str  # 1 .. L, or head
    gradient: Split  # by the layer's weights
    embedding: Mean | None  # zeroth order: rows of H^l
    layer_gradient: Mean | None  # first order: D^l, the gradient by H^l

    def as_dict(self) -> dict[str, Any]:
        means = numbers(embedding_mse=self.embedding, layer_gradient_mse=self.layer_gradient)
        return {"layer": self.layer, **self.gradient.as_dict(), **means}


@dataclass(frozen=True)
class Measured:
    """What the probes of one step found."""

    step: int
    since_snapshot: int | None
    gradient_norm: float  # of the exact gradient
    total: Split
    layers: list[LayerErrors]

    def as_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "since_snapshot": self.since_snapshot,
            "gradient_norm": self.gradient_norm,
            **self.total.as_dict(),
            "by_layer": [layer.as_dict() for layer in self.layers],
        }


@dataclass
class GradientProbe:
    """A callback of `fit` that measures at steps ``first``, ``first + every``, .. up to ``last``.

    Where such a step is a snapshot, the next sampled one is measured instead. ``steps`` holds
    what was found. One measurement costs an exact pass over the graph and back, and ``probes``
    sampled steps; it holds ``probes`` gradients in memory.
    """

    probes: int = 16
    every: int = 7
    first: int = 3
    seed: int = 0
    last: int | None = None
    steps: list[Measured] = field(default_factory=list)

    def __post_init__(self) -> None:
        check("probes", self.probes, integer(2))
        check("every", self.every, integer(1))
        check("first", self.first, integer(0))
        self._stream = int(Key(check_seed(self.seed)).stream(Stream.PROBE)) >> 1
        self._next: int | None = None

    def __call__(self, engine: Engine, loader: Loader, step: int) -> ProbeEvent | None:
        if self._next is None:  # a run that goes on starts in the middle
            self._next = self._after(step - 1)
        if step >= self._next and not engine.due() and (self.last is None or step <= self.last):
            self._next = self._after(step)
            found = self.measure(engine, loader.batch_size, step)
            self.steps.append(found)
            errors = found.total.mse.value, found.total.bias2.value, found.total.variance.value
            return ProbeEvent(found.step, *errors)
        return None

    def _after(self, step: int) -> int:
        """The next step to measure after ``step``."""
        return self.first + self.every * max((step - self.first) // self.every + 1, 0)

    def check_room(self, model: Model, advice: str) -> None:
        """Refuse a model whose gradients, and their products, memory has no room for."""
        weights = sum(p.numel() for p in model.parameters())
        needed = self.probes * (12 * weights + 8 * self.probes)
        check_memory(needed, f"{self.probes} probes of {weights:,} weights", advice)

    def measure(self, engine: Engine, batch_size: int, step: int = 0) -> Measured:
        """Errors of a sampled step of ``engine`` as it stands; ``step`` names the draws."""
        exact = engine.exact()
        _, gradient, exact_d = exact.backward(engine.operands.loss(needed_only=False))
        truth = [exact.hidden(level).detach() for level in range(engine.model.depth)]
        wanted = _by_layer(gradient, engine.model.depth)
        errors = {layer: torch.empty(self.probes, g.numel()) for layer, g in wanted.items()}
        zeroth: list[list[float]] = []
        first: list[list[float]] = []
        for draw in range(self.probes):
            # An epoch of its own for each draw: within one, batches exclude each other.
            key = Key(self._stream, step * self.probes + draw)
            # Among the nodes of a large-batch snapshot, if there is one.
            nodes = engine.train if engine.pool is None else engine.pool
            seeds = fresh_seeds(engine.sampler, nodes, len(engine.graph), batch_size, key)
            batch = engine.draw(seeds, key)
            passes = engine.passes(batch, key)
            this, live = passes.step, passes.live
            flowing = _watch(live)
            formed = engine.form(passes)
            for layer, g in _by_layer(formed.gradient, engine.model.depth).items():
                errors[layer][draw] = g - wanted[layer]
            zeroth.append(_far(live.h, truth, this.nodes))
            if formed.corrected:  # by D of the loss over all training nodes
                ds = [formed.corrected[level] for level in range(len(exact_d))]
                first.append(_far(ds, exact_d, this.nodes))
            else:
                first.append(_first_order(engine, batch, this, truth, flowing))
        products: dict[str, Float64] = {}
        for layer in wanted:
            rows = errors.pop(layer).double()
            products[layer] = (rows @ rows.T).numpy()
        sizes = {layer: float(g.double().square().sum()) for layer, g in wanted.items()}
        every, size = sum(products.values()), sum(sizes.values())
        if not np.isfinite(every).all():
            raise TrainingDiverged(
                f"the gradient of a probe at step {step} is not finite: training blew up, "
                "expected finite numbers; lower the learning rate (lr)"
            )
        of_h, of_d = ([Mean.of(of) for of in zip(*each, strict=True)] for each in (zeroth, first))
        layers = [
            LayerErrors(layer, Split.of(products[layer], sizes[layer]), *means)
            for layer, *means in zip_longest(wanted, of_h, of_d)
        ]
        since = engine.progress.since_snapshot
        return Measured(step, since, math.sqrt(size), Split.of(np.asarray(every), size), layers)

    def summary(self) -> dict[str, Any]:
        """Means over the steps; errors say how well these means are known, for this run."""
        nothing = Split(*[Mean(math.nan, math.nan)] * 3)
        total = over([step.total for step in self.steps]) if self.steps else nothing
        layers = zip(*(step.layers for step in self.steps), strict=True)
        return {
            **total.as_dict(),
            "geometric_relative_mse": _geometric(self.steps),
            "by_distance": _by_distance(self.steps),
            "by_layer": [over(parts).as_dict() for parts in layers],
            "steps": [step.as_dict() for step in self.steps],
        }


def _geometric(steps: Sequence[Measured]) -> float | None:
    """The mean that one bad step does not rule; none where an error is 0."""
    each = [step.total.mse.value for step in steps]
    return geometric_mean(each) if each and min(each) > 0 else None


def _by_distance(steps: Sequence[Measured]) -> list[dict[str, Any]]:
    """Errors by the number of steps since the last snapshot: 1, 2, 3 to 4, 5 to 8, .."""
    bins: dict[int, list[Measured]] = {}
    for step in steps:
        if step.since_snapshot is not None:
            bins.setdefault((step.since_snapshot - 1).bit_length(), []).append(step)
    return [
        {
            "from": 2**power // 2 + 1, "to": 2**power, "measured": len(here),
            **numbers(relative_mse=over([step.total.mse for step in here])),
            "geometric_relative_mse": _geometric(here),
        }
        for power, here in sorted(bins.items())
    ]  # fmt: skip


# -- one draw -----------------------------------------------------------------------------------


def _by_layer(gradient: dict[str, Tensor], depth: int) -> dict[str, Tensor]:
    """The gradients by the weights of each layer, 1 .. L and head if there is one, as vectors."""
    prefixes = {str(level + 1): f"layers.{level}." for level in range(depth)} | {"head": "head."}
    parts = {
        layer: [g.flatten() for name, g in gradient.items() if name.startswith(prefix)]
        for layer, prefix in prefixes.items()
    }
    if not parts["head"]:
        del parts["head"]
    # A graph layer without weights has a vector of none.
    return {layer: torch.cat([torch.empty(0), *part]) for layer, part in parts.items()}


def fresh_seeds(
    sampler: Sampler, nodes: Int32, all_nodes: int, batch_size: int, key: Key
) -> NodeSet | Int32:
    """The seeds of a batch as training draws them among ``nodes``, for any ``key``."""
    if sampler.draws_nodes:
        return NodeSet(nodes, all_nodes)
    chosen: Int32 = nodes[permutation(len(nodes), key.stream(Stream.PROBE_SEEDS))[:batch_size]]
    return chosen


def _watch(live: Pass) -> dict[int, Tensor]:
    """The gradients by H^1 .. H^(L-1), level 0 first, once the pass has been run back."""
    flowing: dict[int, Tensor] = {}
    for level, leaf in enumerate(live.inputs[1:]):
        assert isinstance(leaf, Tensor)
        keep = partial(flowing.__setitem__, level)
        leaf.register_hook(keep)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    return flowing


def _first_order(
    engine: Engine, batch: Batch, step: Step, truth: list[Tensor], flowing: dict[int, Tensor]
) -> list[float]:
    """|D - exact D|^2 / |exact D|^2 of layers 1..L-1, for the loss of the batch at hand.

    Exact D is by H^l of all nodes, no neighbour left out; those that the sample left out are zero
    in the pass. Only the batch's own neighbourhoods are walked: the embeddings are known already.
    """
    model = engine.model
    errors: list[float] = []
    rows = batch.nodes
    nodes = torch.from_numpy(rows)
    last = truth[-1].index_select(0, nodes).requires_grad_()
    logits = model.run_head(engine.weights, last)
    loss = engine.operands.task.loss(logits, nodes, torch.from_numpy(batch.loss_weights))
    (d,) = torch.autograd.grad(loss, last)
    for level in range(model.depth - 1, 0, -1):
        block = exact_block(engine.graph, rows)
        rows = block.src
        leaf = truth[level - 1].index_select(0, torch.from_numpy(rows)).requires_grad_()
        h = model.act(model.layers[level](BlockOperator(block), leaf), level)
        (d,) = torch.autograd.grad(h, leaf, d)
        exact = torch.zeros(len(engine.graph), d.shape[1])
        exact.index_copy_(0, torch.from_numpy(rows).long(), d)
        ids = step.nodes[level - 1].long()
        here = exact.index_select(0, ids)
        rest = exact.index_fill_(0, ids, 0.0).square().sum()
        size = float(here.square().sum() + rest)
        away = float((flowing[level - 1] - here).square().sum() + rest)
        errors.insert(0, away / size if size > 0 else math.nan)
    return errors


def _far(found: Sequence[Tensor], exact: Sequence[Tensor], nodes: Sequence[Tensor]) -> list[float]:
    """|found - wanted|^2 / |wanted|^2 of each level, wanted the ``exact`` rows of its ``nodes``."""
    errors = []
    for rows, all_rows, ids in zip(found, exact, nodes, strict=False):
        wanted = all_rows.index_select(0, ids)
        size = float(wanted.square().sum())
        away = float((rows.detach() - wanted).square().sum())
        errors.append(away / size if size > 0 else math.nan)
    return errors
