"""`Engine`: an estimator at work on one model and one graph.

    snapshot() or regular(batch) -> outcome -> apply(): remember(), optimiser step, commit()

A regular step that asks for a restart has changed nothing: tables and gradients are written only by
`commit`.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.block import Batch, Block, Int32
from sgcn.compute.operators import (
    BlockOperator,
    GraphOperator,
    Operator,
    Preaggregated,
    RowsOperator,
)
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.estimators import Estimator
from sgcn.estimators.forward import FORWARD_RULES
from sgcn.estimators.gradient import GRADIENT_RULES
from sgcn.estimators.passes import (
    Gradient,
    Pass,
    Step,
    Weights,
    backward,
    forward,
    plain_layer,
)
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.machine import physical_memory
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.rows import Features, Table
from sgcn.samplers.base import NodeSet, Sampler, exact_block
from sgcn.task import Task

_NEARLY_ALL = 0.9  # of the nodes: to leave out the others would not pay
_POOL = 1 << 34  # layer number of the stream that draws large-batch snapshots


def can_preaggregate(model: Model, graph: Graph, sampler: Sampler) -> bool:
    """Whether P X computed once may stand for the sums of the first layer, and fits in memory.

    Under dropout it would be another model: P X knows no mask. Who gives a size for every layer
    wants every layer sampled.
    """
    sizes = getattr(sampler, "sizes", None)
    told = isinstance(sizes, tuple) and len(sizes) == model.depth
    if graph.x is None or model.depth < 2 or model.dropout > 0 or told:
        return False
    summed = getattr(model.layers[0], "sums", False)
    return summed and 4 * 4 * len(graph) * graph.x.shape[1] <= physical_memory()


@dataclass(eq=False)
class Outcome:
    """What a step found: its gradient, and how it went."""

    gradient: Gradient
    loss: float
    snapshot: bool
    norm_growth: float = 1.0  # the largest growth of a table's norm since the snapshot
    scored: Tensor | None = None  # logits of the engine's scored nodes, after an exact snapshot
    transfer: float = 0.0  # seconds spent on reading rows


class Engine:
    """Holds what changes while an estimator trains: weights of the past, tables, the schedule."""

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
    ) -> None:
        if graph.x is None:
            raise SgcnError("the graph has no features (x), expected one row for each node")
        self.estimator, self.model, self.graph, self.task = estimator, model, graph, task
        self.train, self.sampler, self.seed = train, sampler, seed
        self.weights: Weights = dict(model.named_parameters())
        self.features = Features.of(graph.x)
        self.sampled_depth = model.depth - preaggregate
        if self.sampled_depth < 1:
            raise SgcnError("preaggregate leaves nothing to sample, expected at least two layers")
        self._whole: Operator = GraphOperator(graph)
        self._first: Operator = self._whole
        if preaggregate:
            self._first = Preaggregated(self._whole._times(self.features.all()), None)
        # For all nodes P (X W) of a sparse X is cheaper than the dense (P X) W, if a layer can.
        sparse = self.features.sparse is not None and getattr(model.layers[0], "lazy", False)
        self._first_of_all = self._whole if sparse else self._first
        self.scored = scored
        self._top = self._needed_rows()
        if self._top is not None:
            self._last = RowsOperator(graph, self._top)
            self._place = torch.full((len(graph),), -1, dtype=torch.int32)
            self._place[self._top] = torch.arange(len(self._top), dtype=torch.int32)
        self._folder = None
        if estimator.table_storage == "disk":
            self._folder = scratch or Path(tempfile.gettempdir())
        depth = model.depth
        self.forward_rule = FORWARD_RULES[estimator.forward](depth, model.act, self._table)
        self.gradient_rule = GRADIENT_RULES[estimator.gradient](
            depth, self._table, estimator.layer_gradients
        )
        self.previous: Weights = {}
        self.anchor: Weights = {}
        self.pool: Int32 | None = None
        self.snapshots = 0
        self.since_snapshot: int | None = None  # steps since the last one; None before the first
        self.steps = 0  # taken in all
        self._pending: tuple[Step, Pass | None, bool] | None = None

    # -- schedule -------------------------------------------------------------------------------

    @property
    def gap(self) -> float:
        """K_s = K + g s."""
        return self.estimator.gap + self.estimator.growth * max(self.snapshots - 1, 0)

    def due(self, ahead: int = 0) -> bool:
        """Whether the step ``ahead`` of the next one is a snapshot by the plan."""
        if not self.estimator.takes_snapshots:
            return False
        if self.since_snapshot is None:
            return ahead == max(self.estimator.warmup - self.steps, 0)
        return self.moved or self._planned(ahead)

    def _planned(self, ahead: int = 0) -> bool:
        return (self.since_snapshot or 0) + ahead >= math.floor(self.gap)

    @property
    def moved(self) -> bool:
        """Whether the movement rule calls for a snapshot that the plan does not have."""
        far = (
            self.forward_rule.moved >= self.estimator.drift
            or self.gradient_rule.moved >= self.estimator.noise
        )
        return far and self.estimator.restart == "movement" and not self._planned()

    # -- steps ----------------------------------------------------------------------------------

    def draw(self, seeds: NodeSet | Int32, key: Key) -> Batch:
        """The batch for a regular step; runs in any thread."""
        batch = self.sampler.sample(self.graph, seeds, key, self.sampled_depth)
        if FORWARD_RULES[self.estimator.forward].needs_exact and not batch.exact:
            exact = tuple(exact_block(self.graph, block.dst) for block in batch.blocks)
            batch = replace(batch, exact=exact)
        return batch

    def snapshot(self) -> Outcome:
        """An exact step on the whole graph, or on a large batch of B' nodes."""
        exact = self.estimator.snapshot_nodes is None
        step = self._needed_step() if exact else self._large_step()
        run = forward(step, self.weights, plain_layer)
        grads, layers = backward(run)
        _check_finite(run.loss, grads)
        some = None if self.pool is None else len(self.graph)
        self.forward_rule.assign(step, run, some)
        self.gradient_rule.assign(step, grads, layers, some)
        self._pending = (step, None, True)
        scored = None
        if exact and self.scored is not None:
            scored = run.logits.detach().index_select(0, self._among_needed(self.scored))
        return Outcome(grads, float(run.loss.detach()), True, scored=scored)

    def regular(self, batch: Batch, key: Key) -> Outcome | None:
        """A sampled step; None asks for a snapshot in its place and leaves no trace."""
        step, run, stale, transfer = self.passes(batch, key)
        if self.since_snapshot is None:
            return self._plain(step, run, transfer)
        drift = _growth(self.forward_rule.drifted_norms(run), self.forward_rule.snapshot_norms)
        by_norm = self.estimator.restart == "norm"
        if by_norm and drift >= self.estimator.alpha:
            return None
        grads = self.gradient_rule.form(step, run, stale)
        _check_finite(run.loss, grads)
        growth = _growth(self.gradient_rule.drifted_norms(), self.gradient_rule.snapshot_norms)
        if by_norm and growth >= self.estimator.beta:
            return None
        if self.estimator.restart == "gradient" and self.gradient_rule.needs_snapshot:
            anchor = self.gradient_rule.anchor
            away = sum(float((grads[k] - anchor[k]).square().sum()) for k in grads)
            size = sum(float(anchor[k].square().sum()) for k in grads)
            if math.sqrt(away) > self.estimator.distance * math.sqrt(size):
                return None
        self._pending = (step, run, False)
        return Outcome(grads, float(run.loss.detach()), False, drift, transfer=transfer)

    def _plain(self, step: Step, run: Pass, transfer: float) -> Outcome:
        """A step without snapshots, or before the first."""
        grads = backward(run)[0]
        _check_finite(run.loss, grads)
        self._pending = (step, run, False)
        return Outcome(grads, float(run.loss.detach()), False, transfer=transfer)

    def passes(self, batch: Batch, key: Key) -> tuple[Step, Pass, Pass | None, float]:
        """A regular step's live pass, its stale one if there is one, and seconds of reading rows.

        Leaves no trace: `regular` and probes may call it as often as they like.
        """
        began = perf_counter()
        step = self._batch_step(batch, key)
        if self.since_snapshot is None:
            transfer = perf_counter() - began
            return step, forward(step, self.weights, plain_layer), None, transfer
        self.forward_rule.begin(step, self.previous, self.anchor)
        transfer = perf_counter() - began
        weights = self.gradient_rule.stale(self.previous, self.anchor)
        layer = self.forward_rule.layer
        stale = None if weights is None else forward(step, weights, layer)
        return step, forward(step, self.weights, layer), stale, transfer

    def whole_pass(self) -> Pass:
        """An exact pass over the whole graph at the current weights, which changes nothing."""
        return forward(self._whole_step(), self.weights, plain_layer)

    def apply(self, outcome: Outcome, optimizer: torch.optim.Optimizer) -> None:
        """Take the pending step: the optimiser's, and what is remembered of it."""
        self.remember()
        for name, parameter in self.weights.items():
            # Laid out like the parameter: fused optimisers read memory whatever the strides.
            parameter.grad = torch.empty_like(parameter).copy_(outcome.gradient[name])
        optimizer.step()
        self.commit()

    def remember(self) -> None:
        """Keep the weights that the pending step was taken at: call it before the optimiser."""
        assert self._pending is not None
        snapshot = self._pending[2]
        moves = self.forward_rule.moves or self.gradient_rule.moves
        several = self.estimator.gap > 1 or self.estimator.growth > 0
        if self.estimator.takes_snapshots and several and (snapshot or moves):
            self.previous = {
                name: weight.detach().clone().requires_grad_()
                for name, weight in self.weights.items()
            }
            if snapshot:
                self.anchor = self.previous

    def commit(self) -> None:
        """Write histories, once, after the optimiser's step."""
        assert self._pending is not None
        step, run, snapshot = self._pending
        self._pending = None
        self.steps += 1
        if snapshot:
            self.snapshots += 1
            self.since_snapshot = 1
            return
        assert run is not None
        if self.since_snapshot is None:
            return
        self.since_snapshot += 1
        self.forward_rule.commit(step, run)
        self.gradient_rule.commit(step)

    @property
    def table_bytes(self) -> int:
        return sum(t.nbytes for t in self.forward_rule.tables + self.gradient_rule.tables)

    # -- what a step works on -------------------------------------------------------------------

    def _whole_step(self) -> Step:
        train = torch.from_numpy(self.train).long()
        everyone = torch.arange(len(self.graph))
        return Step(
            self.model,
            self.task,
            [self._first_of_all] + [self._whole] * (self.model.depth - 1),
            [everyone] * self.model.depth,
            self.features.all(),
            torch.full((len(train),), 1.0 / len(train)),
            train,
            loss_places=train,
        )

    def _needed_rows(self) -> Int32 | None:
        """Nodes that the last layer of an exact snapshot is for, if they are not nearly all.

        Those with a loss and those that are scored. A subgraph sampler reads histories of others.
        """
        rule = FORWARD_RULES[self.estimator.forward]
        reads_all = self.sampler.draws_nodes and rule.needs_snapshot and rule.keeps_top
        exact = self.estimator.takes_snapshots and self.estimator.snapshot_nodes is None
        if not exact or self.model.depth < 2 or reads_all:
            return None
        needed = np.zeros(len(self.graph), np.bool_)
        needed[self.train] = True
        if self.scored is not None:
            needed[self.scored] = True
        rows = np.flatnonzero(needed).astype(np.int32)
        return rows if len(rows) < _NEARLY_ALL * len(self.graph) else None

    def _among_needed(self, nodes: Int32) -> Tensor:
        """Where ``nodes`` stand in the last layer of a snapshot."""
        ids = torch.from_numpy(nodes)
        return ids if self._top is None else self._place.index_select(0, ids)

    def _needed_step(self) -> Step:
        """The whole step without the rows of the last layer that nobody asks for."""
        whole = self._whole_step()
        if self._top is None:
            return whole
        return replace(
            whole,
            operators=[*whole.operators[:-1], self._last],
            nodes=[*whole.nodes[:-1], torch.from_numpy(self._top)],
            loss_places=self._among_needed(self.train),
        )

    def _large_step(self) -> Step:
        wanted = self.estimator.snapshot_nodes
        assert wanted is not None
        count = math.ceil(wanted * len(self.train)) if wanted < 1 else int(wanted)
        stream = Key(self.seed, 0, self.snapshots).stream(_POOL)
        self.pool = self.train[permutation(len(self.train), stream)[:count]]
        rows = self.pool
        blocks: list[Block] = []
        for _ in range(self.sampled_depth):
            blocks.insert(0, exact_block(self.graph, rows))
            rows = blocks[0].src
        weights = np.full(len(self.pool), 1.0 / len(self.pool), np.float32)
        return self._batch_step(Batch(tuple(blocks), weights), None)

    def _batch_step(self, batch: Batch, key: Key | None) -> Step:
        made: dict[int, BlockOperator] = {}  # subgraph samplers repeat one block
        for block in (*batch.blocks, *batch.exact):
            made.setdefault(id(block), BlockOperator(block))
        operators: list[Operator] = [made[id(block)] for block in batch.blocks]
        nodes = [torch.from_numpy(block.dst) for block in batch.blocks]
        exact: list[tuple[Operator, Tensor]] = [
            (made[id(block)], torch.from_numpy(block.src)) for block in batch.exact
        ]
        inputs = torch.from_numpy(batch.inputs)
        if isinstance(self._first, Preaggregated):
            first = Preaggregated(self._first.table, batch.inputs)
            operators.insert(0, first)
            nodes.insert(0, inputs)
            exact = [(first, inputs), *exact] if exact else []
        return Step(
            self.model,
            self.task,
            operators,
            nodes,
            self.features.rows(inputs),
            torch.from_numpy(batch.loss_weights),
            torch.from_numpy(batch.nodes),
            exact=exact,
            dropout=0.0 if key is None else self.model.dropout,
            key=key or Key(0),
        )

    def _table(self, level: int) -> Table:
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[self.estimator.table_dtype]
        on_gpu = any(p.device.type == "cuda" for p in self.model.parameters())
        some = self._top is not None and level == self.model.depth - 1
        place = self._place if some else None
        return Table(dtype, folder=self._folder, pin=on_gpu, place=place)


def _growth(norms: list[float], at_snapshot: list[float]) -> float:
    """The largest ratio of norms now and then."""
    ratios = (math.sqrt(max(n, 0.0) / s) for n, s in zip(norms, at_snapshot, strict=True) if s > 0)
    return max(ratios, default=1.0)


def _check_finite(loss: Tensor, grads: dict[str, Tensor]) -> None:
    total: Any = loss.detach() + sum(g.sum() for g in grads.values())
    if not bool(torch.isfinite(total)):
        raise TrainingDiverged(
            f"the loss is {float(loss.detach()):g} and its gradient is not finite: training blew "
            "up, expected finite numbers; lower the learning rate (lr)"
        )
