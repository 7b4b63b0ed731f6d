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
from sgcn.compute.exact import ExactPass, LayerRows
from sgcn.compute.gradients import Gradient, Weights
from sgcn.compute.operators import destinations_missing
from sgcn.errors import TrainingDiverged
from sgcn.estimators import Estimator, make_estimator
from sgcn.estimators.gradient import Formed, Past
from sgcn.estimators.gradient.base import square
from sgcn.estimators.operands import Operands, needed_rows, worth_preaggregating
from sgcn.estimators.passes import Pass, Step
from sgcn.estimators.recall import Recall
from sgcn.estimators.schedule import Progress
from sgcn.estimators.shortcuts import Shortcuts
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.rows import History, allocate
from sgcn.samplers.base import Feedback, NodeSet, Sampler, State, exact_block
from sgcn.task import Task

_PLAIN = make_estimator("sgcn", restart="never")  # what steps before the first snapshot are


@dataclass(eq=False)
class Passes:
    """The passes of one regular step, and what `commit` will write of them."""

    batch: Batch
    step: Step
    rules: Estimator
    recall: Recall
    live: Pass
    stale: Pass | None
    transfer: float  # seconds spent on reading rows
    formed: Formed = field(default_factory=lambda: Formed({}))
    norms: list[float] = field(default_factory=list)


@dataclass(eq=False)
class Outcome:
    """What a step found: its gradient, and how it went."""

    gradient: Gradient
    loss: float
    snapshot: bool
    norm_growth: float = 1.0  # the largest growth of a history's norm since the snapshot
    scored: Tensor | None = None  # logits of the engine's scored nodes, after an exact snapshot
    transfer: float = 0.0
    passes: Passes | None = None  # of a regular step that was not yet committed


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
        steps: float = math.inf,
        batches: float = math.inf,
    ) -> None:
        """``steps``: how many will be taken; ``batches``: of all nodes; as far as is known."""
        estimator = estimator.for_run(steps, batches)
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
        operands, nodes = self.operands, self.estimator.snapshot_nodes
        if nodes is None:
            found, loss_of = operands.exact_pass(self.weights), operands.loss()
        else:
            self.pool = operands.large_batch(nodes, self.seed, self.progress.snapshots)
            found = operands.exact_pass_on(self.pool, self.weights)
            loss_of = operands.loss_on(self.pool)
        loss, gradient, layer_gradients = found.backward(loss_of)
        _check_finite(loss, gradient)
        self.drift = 0.0
        activations = self.estimator.forward.keeps_activations
        for level, history in enumerate(self.histories):
            rows = found.hidden(level).detach() if activations else found.z[level]
            norm = found.square(level, self._counted_rows(level))
            self._assign(history, found.layers[level], rows, norm)
        for level, history in enumerate(self.past.histories):
            d = layer_gradients[level]
            self._assign(history, found.layers[level], d, float(d.norm()) ** 2)
        self.estimator.gradient.assign(self.past, gradient)
        scored = None
        if self.scored is not None and self.pool is None:
            scored = found.logits(operands.row_of(self.scored))
        return Outcome(gradient, loss, True, scored=scored)

    def _assign(self, history: History, layer: LayerRows, rows: Tensor, norm: float) -> None:
        if self.pool is None:
            history.assign(rows, norm)
        else:
            history.assign_some(torch.from_numpy(layer.rows), rows, len(self.graph), norm)

    def _counted_rows(self, level: int) -> Tensor | None:
        """The rows whose norm is watched: in the last layer those of training nodes.

        Regular steps compute no others there, and which rows are scored must not matter. Subgraph
        samplers do: all rows count.
        """
        if level < self.model.depth - 1 or self.sampler.draws_nodes or self.pool is not None:
            return None
        return self.operands.row_of(self.train)

    def regular(self, batch: Batch, key: Key) -> Outcome | None:
        """A sampled step; None asks for a snapshot in its place and leaves no trace."""
        passes = self.passes(batch, key)
        rules, live = passes.rules, passes.live
        restart = rules.schedule.restart
        passes.norms = rules.forward.norms_after(passes.recall, live)
        growth = _growth(self.histories, passes.norms)
        if restart.after_forward(growth):
            return None
        passes.formed = formed = self.form(passes)
        loss = float(live.loss.detach())
        _check_finite(loss, formed.gradient)
        follows = rules.gradient.updates_each_step
        d_growth = _growth(self.past.histories, formed.norms if follows else [])
        if restart.after_gradient(d_growth, lambda: self._distance(formed.gradient)):
            return None
        # What is not written is let go now: the optimiser's step and the next sample need memory.
        passes.stale = None
        passes.recall.forget()
        if self.sampler_state is None:
            formed.layer_gradients = []
        return Outcome(
            formed.gradient, loss, False, growth, transfer=passes.transfer, passes=passes
        )

    def passes(self, batch: Batch, key: Key) -> Passes:
        """A regular step's live pass, and its stale one if the gradient rule asks for one.

        Leaves no trace: `regular` and probes may call it as often as they like.
        """
        began = perf_counter()
        rules = _PLAIN if self.progress.since_snapshot is None else self.estimator
        step = self.operands.step(batch, key)
        old = rules.forward.old_weights(self.previous, self.anchor)
        histories = self.histories if rules.forward.needs_snapshot else []
        recall = Recall(rules.forward, step, histories, old, self.shortcuts)
        transfer = perf_counter() - began
        weights = rules.gradient.stale_weights(self.previous, self.anchor)
        stale = None if weights is None else recall.run(weights)
        return Passes(batch, step, rules, recall, recall.run(self.weights), stale, transfer)

    def form(self, passes: Passes) -> Formed:
        """The gradient of a regular step, plain before the first snapshot; changes nothing."""
        together = self.shortcuts.takes("one_first_gradient")
        return passes.rules.gradient.form(
            self.past, passes.step, passes.live, passes.stale, together=together
        )

    def _distance(self, gradient: Gradient) -> float:
        """|G - G_s| / |G_s|; 0 for a rule that keeps no G_s."""
        anchor = self.past.anchor
        if not anchor:
            return 0.0
        away, size = square({k: gradient[k] - anchor[k] for k in gradient}), square(anchor)
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
        passes, outcome.passes = outcome.passes, None  # lets go of them
        if passes is not None:
            rules, recall, formed = passes.rules, passes.recall, passes.formed
            rules.forward.commit(recall, passes.live, passes.norms)
            rules.gradient.commit(self.past, passes.step, formed)
            self.drift += max(recall.changes.values(), default=0.0)
        self.progress.advance(outcome.snapshot)
        if self.sampler_state is not None and passes is not None:
            # A layer that is not sampled has no block.
            first = self.model.depth - len(passes.batch.blocks)
            hidden, layer_gradients = passes.live.h[first:], passes.formed.layer_gradients[first:]
            feedback = Feedback(passes.batch, hidden, layer_gradients)
            self.sampler_state = self.sampler.update(self.sampler_state, feedback)

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
        some = exact and self.model.depth > 1 and not reads_all
        if not some or not self.shortcuts.takes("needed_rows_only"):
            return None
        return needed_rows(self.graph, self.train, self.scored)

    def _history(self, level: int) -> History:
        last = level == self.model.depth - 1
        return History(
            getattr(torch, self.estimator.table_dtype),
            make_store=None if self._folder is None else partial(allocate, folder=self._folder),
            index_of=self.operands.index_of if last else None,
        )


def _check_own_rows(model: Model, sampler: Sampler, first: int) -> None:
    """Refuse a sampler that leaves destinations out, for layers that read them."""
    reads_own = any(model.layer(level).reads_own for level in range(first, model.depth))
    if reads_own and not sampler.keeps_destinations:
        raise destinations_missing()


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
