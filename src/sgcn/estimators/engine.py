"""`Engine`: an estimator at work on one model and one graph.

    snapshot() or regular(batch) -> outcome -> apply(): remember(), optimiser step, commit()

A regular step that asks for a restart has changed nothing: histories and gradients are written only
by `commit`.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from sgcn.block import Batch, Int32
from sgcn.compute.exact import ExactPass
from sgcn.compute.gradients import Gradient, Weights
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.estimators import Estimator
from sgcn.estimators.gradient import Formed, Past
from sgcn.estimators.gradient.base import square
from sgcn.estimators.gradient.plain import Plain
from sgcn.estimators.operands import Operands, needed_rows, worth_preaggregating
from sgcn.estimators.passes import Pass, Step, forward
from sgcn.estimators.recall import Recall
from sgcn.estimators.schedule import Progress
from sgcn.estimators.shortcuts import Shortcuts
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.rows import History, allocate
from sgcn.samplers.base import Feedback, NodeSet, Sampler, State, exact_block
from sgcn.task import Task

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(eq=False)
class Outcome:
    """What a step found: its gradient, and how it went."""

    gradient: Gradient
    loss: float
    snapshot: bool
    norm_growth: float = 1.0  # the largest growth of a history's norm since the snapshot
    scored: Tensor | None = None  # logits of the engine's scored nodes, after an exact snapshot
    transfer: float = 0.0  # seconds spent on reading rows
    pending: Pending = field(default_factory=lambda: Pending())  # what `commit` will write


@dataclass(eq=False)
class Passes:
    """The passes of one regular step."""

    step: Step
    live: Pass
    stale: Pass | None = None
    recall: Recall | None = None  # None before the first snapshot
    transfer: float = 0.0


@dataclass(eq=False)
class Pending:
    """A step that was computed and not yet committed; a snapshot has nothing left to write."""

    passes: Passes | None = None
    formed: Formed | None = None
    norms: list[float] = field(default_factory=list)
    batch: Batch | None = None


class Engine:
    """Holds what changes while an estimator trains: weights of the past, histories, progress."""

    def __init__(
        self,
        estimator: Estimator,
        model: Model,
        graph: Graph,
        task: Task,
        train: Int32,
        sampler: Sampler,
        *,
        seed: int = 0,
        preaggregate: bool = False,
        scratch: Path | None = None,
        scored: Int32 | None = None,
        shortcuts: Shortcuts | None = None,
        chunk: int | None = None,
    ) -> None:
        estimator.check(sampler)
        _check_own_rows(model, sampler, first=int(preaggregate))
        self.estimator, self.model, self.graph = estimator, model, graph
        self.train, self.sampler, self.seed = train, sampler, seed
        self.shortcuts, self.scored = shortcuts or Shortcuts(), scored
        self.weights: Weights = dict(model.named_parameters())
        self._folder = None
        if estimator.table_storage == "disk":
            self._folder = scratch or Path(tempfile.gettempdir())
        self.operands = Operands(
            model, graph, task, train, preaggregate=preaggregate,
            needed_rows=self._needed_rows(), chunk=chunk, folder=self._folder,
        )  # fmt: skip
        rule = estimator.forward
        layers = model.depth - (not rule.keeps_last_layer) if rule.needs_snapshot else 0
        self.histories = [self._history(level) for level in range(layers)]
        layers = model.depth - 1 if estimator.gradient.keeps_layer_gradients else 0
        self.past = Past([self._history(level) for level in range(layers)])
        self.drift = 0.0  # how far Z has gone since the snapshot, over its size
        self.previous: Weights = {}
        self.anchor: Weights = {}
        self.pool: Int32 | None = None  # the nodes of a large-batch snapshot
        self.progress = Progress()
        self.sampler_state: State | None = sampler.init(graph)

    # -- schedule -------------------------------------------------------------------------------

    def due(self, ahead: int = 0) -> bool:
        """Whether the step ``ahead`` of the next one is a snapshot, as far as can be said now."""
        if not self.estimator.takes_snapshots:
            return False
        return self.restart_due or self.estimator.schedule.planned(self.progress, ahead)

    @property
    def restart_due(self) -> bool:
        """Whether the steps since the snapshot call for one that the plan does not have."""
        schedule, began = self.estimator.schedule, self.progress.since_snapshot is not None
        called = began and schedule.restart.between_steps(self.drift, self.past.moved)
        return self.progress.restart_called or (called and not schedule.planned(self.progress))

    # -- steps ----------------------------------------------------------------------------------

    def draw(self, seeds: NodeSet | Int32, key: Key) -> Batch:
        """The batch for a regular step; runs in any thread."""
        depth, state = self.operands.sampled_depth, self.sampler_state
        batch = self.sampler.sample(self.graph, seeds, key, depth, state)
        if self.estimator.forward.needs_exact and not batch.exact:
            exact = tuple(exact_block(self.graph, block.dst) for block in batch.blocks)
            batch = replace(batch, exact=exact)
        return batch

    def snapshot(self) -> Outcome:
        """An exact step on the whole graph, or on a large batch of B' nodes."""
        nodes = self.estimator.snapshot_nodes
        self.drift = 0.0
        return self._exact_snapshot() if nodes is None else self._large_snapshot(nodes)

    def _exact_snapshot(self) -> Outcome:
        found = self.operands.exact_pass(self.weights)
        loss, gradient, layer_gradients = found.backward(self.operands.loss())
        _check_finite(loss, gradient)
        for level, history in enumerate(self.histories):
            rows = self._kept_rows(found, level)
            history.assign(rows, found.square(level, self._counted_rows(level)))
        for history, d in zip(self.past.histories, layer_gradients, strict=False):
            history.assign(d, float(d.norm()) ** 2)
        self.estimator.gradient.assign(self.past, gradient)
        scored = None
        if self.scored is not None:
            scored = found.logits(self.operands.row_of(self.scored))
        return Outcome(gradient, loss, True, scored=scored)

    def _counted_rows(self, level: int) -> Tensor | None:
        """The rows whose norm is watched: in the last layer those of training nodes.

        Regular steps compute no others there, and which rows are scored must not matter. Subgraph
        samplers do: all rows count.
        """
        if level < self.model.depth - 1 or self.sampler.draws_nodes:
            return None
        return self.operands.row_of(self.train)

    def _large_snapshot(self, nodes: float) -> Outcome:
        self.pool = self.operands.large_batch(nodes, self.seed, self.progress.snapshots)
        found = self.operands.exact_pass_on(self.pool, self.weights)
        loss, gradient, layer_gradients = found.backward(self.operands.loss_on(self.pool))
        _check_finite(loss, gradient)
        n, ids = len(self.graph), [torch.from_numpy(layer.rows) for layer in found.layers]
        for level, history in enumerate(self.histories):
            history.assign_some(ids[level], self._kept_rows(found, level), n, found.square(level))
        for level, d in enumerate(layer_gradients[: len(self.past.histories)]):
            self.past.histories[level].assign_some(ids[level], d, n, float(d.norm()) ** 2)
        self.estimator.gradient.assign(self.past, gradient)
        return Outcome(gradient, loss, True)

    def _kept_rows(self, found: ExactPass, level: int) -> Tensor:
        """What a layer's history keeps of an exact pass."""
        kept = self.estimator.forward.keeps_activations
        return found.hidden(level).detach() if kept else found.z[level]

    def regular(self, batch: Batch, key: Key) -> Outcome | None:
        """A sampled step; None asks for a snapshot in its place and leaves no trace."""
        passes = self.passes(batch, key)
        live, recall = passes.live, passes.recall
        if recall is None:
            formed = self.form(passes)
            _check_finite(float(live.loss.detach()), formed.gradient)
            return self._outcome(batch, passes, formed, [], 1.0)
        restart = self.estimator.schedule.restart
        norms = self.estimator.forward.norms_after(recall, live)
        growth = _growth(self.histories, norms)
        if restart.after_forward(growth):
            return None
        formed = self.form(passes)
        _check_finite(float(live.loss.detach()), formed.gradient)
        follows = self.estimator.gradient.updates_each_step
        d_growth = _growth(self.past.histories, formed.norms if follows else [])
        if restart.after_gradient(d_growth, lambda: self._distance(formed.gradient)):
            return None
        return self._outcome(batch, passes, formed, norms, growth)

    def _outcome(
        self, batch: Batch, passes: Passes, formed: Formed, norms: list[float], growth: float
    ) -> Outcome:
        loss = float(passes.live.loss.detach())
        # What is not written is let go now: the optimiser's step and the next sample need memory.
        passes.stale = None
        if passes.recall is not None:
            passes.recall.forget()
        if self.sampler_state is None:
            formed.layer_gradients = []
        pending = Pending(passes, formed, norms, batch)
        return Outcome(
            formed.gradient, loss, False, growth, transfer=passes.transfer, pending=pending
        )

    def passes(self, batch: Batch, key: Key) -> Passes:
        """A regular step's live pass, and its stale one if the gradient rule asks for one.

        Leaves no trace: `regular` and probes may call it as often as they like.
        """
        began = perf_counter()
        step = self.operands.step(batch, key)
        if self.progress.since_snapshot is None:
            transfer = perf_counter() - began
            return Passes(step, forward(step, self.weights), transfer=transfer)
        rule = self.estimator.forward
        old = rule.old_weights(self.previous, self.anchor)
        recall = Recall(rule, step, self.histories, old, self.shortcuts)
        transfer = perf_counter() - began
        weights = self.estimator.gradient.stale_weights(self.previous, self.anchor)
        stale = None if weights is None else recall.run(weights)
        return Passes(step, recall.run(self.weights), stale, recall, transfer)

    def form(self, passes: Passes) -> Formed:
        """The gradient of a regular step, plain before the first snapshot; changes nothing."""
        rule = Plain() if passes.recall is None else self.estimator.gradient
        return rule.form(
            self.past, passes.step, passes.live, passes.stale,
            together=self.shortcuts.takes("one_first_gradient"),
        )  # fmt: skip

    def _distance(self, gradient: Gradient) -> float:
        """|G - G_s| / |G_s|; 0 for a rule that keeps no G_s."""
        anchor = self.past.anchor
        if not anchor:
            return 0.0
        away = sum(float((gradient[k] - anchor[k]).square().sum()) for k in gradient)
        size = square(anchor)
        return math.sqrt(away) / math.sqrt(size) if size > 0 else math.inf if away > 0 else 0.0

    def exact(self) -> ExactPass:
        """An exact pass over the whole graph at the current weights, which changes nothing."""
        return self.operands.exact_pass(self.weights, needed_only=False)

    def apply(self, outcome: Outcome, optimizer: torch.optim.Optimizer) -> None:
        """Take the step: the optimiser's, and what is remembered of it."""
        self.remember(outcome)
        for name, parameter in self.weights.items():
            # Laid out like the parameter: fused optimisers read memory whatever the strides.
            parameter.grad = torch.empty_like(parameter).copy_(outcome.gradient[name])
        optimizer.step()
        self.commit(outcome)

    def remember(self, outcome: Outcome) -> None:
        """Keep the weights that the step was taken at: call it before the optimiser."""
        estimator = self.estimator
        follows = estimator.forward.updates_each_step or estimator.gradient.updates_each_step
        wanted = estimator.takes_snapshots and estimator.schedule.has_regular_steps
        if wanted and (outcome.snapshot or follows):
            self.previous = {
                name: weight.detach().clone().requires_grad_()
                for name, weight in self.weights.items()
            }
            if outcome.snapshot:
                self.anchor = self.previous

    def commit(self, outcome: Outcome) -> None:
        """Write histories and the sampler's state, once, after the optimiser's step."""
        pending = outcome.pending
        passes, formed = pending.passes, pending.formed
        if passes is not None and formed is not None and passes.recall is not None:
            step, recall = passes.step, passes.recall
            self.estimator.forward.commit(step, recall, passes.live, pending.norms)
            self.estimator.gradient.commit(self.past, step, formed)
            self.drift += max(recall.changes.values(), default=0.0)
        self.progress.advance(outcome.snapshot)
        if self.sampler_state is not None and passes is not None and formed is not None:
            assert pending.batch is not None
            feedback = self._feedback(pending.batch, passes.live, formed)
            self.sampler_state = self.sampler.update(self.sampler_state, feedback)
        outcome.pending = Pending()  # lets go of the passes

    def _feedback(self, batch: Batch, live: Pass, formed: Formed) -> Feedback:
        first = self.model.depth - len(batch.blocks)  # a layer that is not sampled has no block
        layer_gradients = formed.layer_gradients[first:]
        return Feedback(batch, live.h[first:], layer_gradients)

    @property
    def table_bytes(self) -> int:
        return sum(history.nbytes for history in self.histories + self.past.histories)

    def _needed_rows(self) -> Int32 | None:
        """Nodes that the last layer of an exact snapshot is for, if they are not nearly all.

        A subgraph sampler reads histories of others.
        """
        rule = self.estimator.forward
        reads_all = self.sampler.draws_nodes and rule.needs_snapshot and rule.keeps_last_layer
        exact = self.estimator.takes_snapshots and self.estimator.snapshot_nodes is None
        if not exact or self.model.depth < 2 or reads_all:
            return None
        if not self.shortcuts.takes("needed_rows_only"):
            return None
        return needed_rows(self.graph, self.train, self.scored)

    def _history(self, level: int) -> History:
        last = level == self.model.depth - 1
        return History(
            _DTYPES[self.estimator.table_dtype],
            make_store=None if self._folder is None else partial(allocate, folder=self._folder),
            index_of=self.operands.index_of if last else None,
        )


def _check_own_rows(model: Model, sampler: Sampler, first: int) -> None:
    """Refuse a sampler that leaves destinations out, for layers that read them."""
    if sampler.keeps_destinations:
        return
    for level in range(first, model.depth):
        if model.layer(level).reads_own:
            raise SgcnError(
                "this layer reads the node itself, but a destination is not among the sources: "
                "set the sampler's keep_destinations to true"
            )


def _growth(histories: list[History], norms: list[float]) -> float:
    """The largest ratio of norms now and at the snapshot."""
    pairs = zip(histories, norms, strict=False)
    ratios = (math.sqrt(max(n, 0.0) / h.snapshot_norm) for h, n in pairs if h.snapshot_norm > 0)
    return max(ratios, default=1.0)


def _check_finite(loss: float, gradient: Gradient) -> None:
    total: Any = loss + sum(g.sum() for g in gradient.values())
    if not bool(torch.isfinite(torch.as_tensor(total))):
        raise TrainingDiverged(
            f"the loss is {loss:g} and its gradient is not finite: training blew up, expected "
            "finite numbers; lower the learning rate (lr)"
        )


__all__ = ["Engine", "Outcome", "worth_preaggregating"]
