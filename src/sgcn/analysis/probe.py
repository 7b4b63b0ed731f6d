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
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.analysis.moments import Mean, Split, numbers, over
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

_DRAWS = 8  # of a look that a training run takes on its way


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

    def bytes_needed(self, parameters: int) -> int:
        """Memory for the gradients of a model with so many ``parameters``, and their products."""
        return self.probes * (12 * parameters + 8 * self.probes)

    def measure(self, engine: Engine, batch_size: int, step: int = 0) -> Measured:
        """Errors of a sampled step of ``engine`` as it stands; ``step`` names the draws."""
        exact = engine.exact()
        _, wanted, exact_d = exact.backward(engine.operands.loss(needed_only=False))
        truth = [exact.hidden(level).detach() for level in range(engine.model.depth)]
        found = {name: torch.empty(self.probes, g.numel()) for name, g in wanted.items()}
        embeddings: list[list[float]] = []
        layer_gradients: list[list[float]] = []
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
            for name, rows in found.items():
                rows[draw] = (formed.gradient[name] - wanted[name]).flatten()
            embeddings.append(_far(live.h, truth, this.nodes))
            if formed.corrected:  # by D of the loss over all training nodes
                ds = [formed.corrected[level] for level in range(len(exact_d))]
                layer_gradients.append(_far(ds, exact_d, this.nodes))
            else:
                layer_gradients.append(_first_order(engine, batch, this, truth, flowing))
        return self._measured(engine, step, wanted, found, embeddings, layer_gradients)

    def _measured(
        self,
        engine: Engine,
        step: int,
        wanted: dict[str, Tensor],
        found: dict[str, Tensor],
        embeddings: list[list[float]],
        layer_gradients: list[list[float]],
    ) -> Measured:
        depth = engine.model.depth
        prefixes = {f"layers.{level}.": str(level + 1) for level in range(depth)}
        prefixes["head."] = "head"
        shape = (self.probes, self.probes)
        all_products, all_size, layers = np.zeros(shape), 0.0, []
        for level, (prefix, layer) in enumerate(prefixes.items()):
            names = [name for name in wanted if name.startswith(prefix)]
            if not names and layer == "head":
                continue
            products, size = np.zeros(shape), 0.0
            for name in names:
                rows = found.pop(name).double()
                products += (rows @ rows.T).numpy()
                size += float(wanted[name].double().square().sum())
            if not np.isfinite(products).all():
                raise TrainingDiverged(
                    f"the gradient of a probe at step {step} is not finite: training blew up, "
                    "expected finite numbers; lower the learning rate (lr)"
                )
            all_products += products
            all_size += size
            layers.append(
                LayerErrors(
                    layer,
                    Split.of(products, size),
                    Mean.of([row[level] for row in embeddings]) if level < depth else None,
                    Mean.of([row[level] for row in layer_gradients]) if level < depth - 1 else None,
                )
            )
        total = Split.of(all_products, all_size)
        return Measured(step, engine.progress.since_snapshot, math.sqrt(all_size), total, layers)

    def summary(self) -> dict[str, Any]:
        """Means over the steps; errors say how well these means are known, for this run."""
        nothing = Split(*[Mean(math.nan, math.nan)] * 3)
        total = over([step.total for step in self.steps]) if self.steps else nothing
        layers = zip(*(step.layers for step in self.steps), strict=True)
        each = [step.total.mse.value for step in self.steps]
        return {
            **total.as_dict(),
            "geometric_relative_mse": _geometric(each),
            "by_layer": [over(parts).as_dict() for parts in layers],
            "steps": [step.as_dict() for step in self.steps],
        }


def _geometric(values: Sequence[float]) -> float | None:
    """The mean that one bad step does not rule."""
    if not values or not min(values) > 0:
        return None
    return math.exp(sum(map(math.log, values)) / len(values))


# -- one draw -----------------------------------------------------------------------------------


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

    D has a row for each node; those that the sample left out are zero in the pass.
    """
    exact = _layer_gradients(engine, batch, truth)
    errors = []
    for level, d in enumerate(exact):
        ids = step.nodes[level].long()
        here = d.index_select(0, ids)
        rest = d.index_fill_(0, ids, 0.0).square().sum()
        size = float(here.square().sum() + rest)
        away = float((flowing[level] - here).square().sum() + rest)
        errors.append(away / size if size > 0 else math.nan)
    return errors


def _layer_gradients(engine: Engine, batch: Batch, truth: list[Tensor]) -> list[Tensor]:
    """Gradients of the batch's loss by H^1..H^(L-1) of all nodes, no neighbour left out.

    Only the batch's own neighbourhoods are walked: the embeddings are known already.
    """
    model = engine.model
    found: list[Tensor] = []
    rows = batch.nodes
    nodes = torch.from_numpy(rows)
    last = truth[-1].index_select(0, nodes).requires_grad_()
    loss = engine.operands.task.loss(model.head(last), nodes, torch.from_numpy(batch.loss_weights))
    (d,) = torch.autograd.grad(loss, last)
    for level in range(model.depth - 1, 0, -1):
        block = exact_block(engine.graph, rows)
        leaf = truth[level - 1].index_select(0, torch.from_numpy(block.src)).requires_grad_()
        module = model.layers[level]
        h = model.act(module(BlockOperator(block), leaf), level)
        (d,) = torch.autograd.grad(h, leaf, d)
        rows = block.src
        all_rows = torch.zeros(len(engine.graph), d.shape[1])
        found.insert(0, all_rows.index_copy_(0, torch.from_numpy(rows).long(), d))
    return found


def _far(found: Sequence[Tensor], exact: Sequence[Tensor], nodes: Sequence[Tensor]) -> list[float]:
    """|found - wanted|^2 / |wanted|^2 of each level, wanted the ``exact`` rows of its ``nodes``."""
    errors = []
    for rows, all_rows, ids in zip(found, exact, nodes, strict=False):
        wanted = all_rows.index_select(0, ids)
        size = float(wanted.square().sum())
        away = float((rows.detach() - wanted).square().sum())
        errors.append(away / size if size > 0 else math.nan)
    return errors


def training_probe(every: int, seed: int, model: Model) -> GradientProbe:
    """The probe of ``training.probe_every``, if its gradients fit into memory."""
    probe = GradientProbe(_DRAWS, every, seed=seed)
    weights = sum(p.numel() for p in model.parameters())
    check_memory(
        probe.bytes_needed(weights), f"probes of {weights:,} weights",
        "leave out training.probe_every",
    )  # fmt: skip
    return probe
