"""What a step works on: the rows and matrices of a batch, of a large batch, of the whole graph."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sgcn.block import Batch, Int32
from sgcn.compute.exact import ExactPass, LayerRows, chunk_for, sum_features
from sgcn.compute.gradients import Weights
from sgcn.compute.inputs import LazyRows, RowStore
from sgcn.compute.operators import BlockOperator, Operator, Preaggregated
from sgcn.errors import SgcnError
from sgcn.estimators.passes import Step
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.machine import physical_memory
from sgcn.nn import Model
from sgcn.rng import Key, Stream
from sgcn.rows import DenseRows, allocate, store_of
from sgcn.samplers.base import Sampler, exact_block
from sgcn.task import Task

_NEARLY_ALL = 0.9  # of the nodes: to leave out the others would not pay


def can_preaggregate(model: Model, graph: Graph, sampler: Sampler) -> bool:
    """Whether P X computed once may stand for the sums of the first layer, and fits in memory.

    Under dropout it would be another model: P X has no mask. A size for every layer asks for every
    layer to be sampled.
    """
    sizes = getattr(sampler, "sizes", None)
    explicit_sizes = isinstance(sizes, tuple) and len(sizes) == model.depth
    if graph.x is None or model.depth < 2 or model.dropout > 0 or explicit_sizes:
        return False
    fits = 4 * 4 * len(graph) * graph.x.shape[1] <= physical_memory()
    return model.layer(0).sums_inputs and fits


class Operands:
    """The graph as the passes of a model see it."""

    def __init__(
        self,
        model: Model,
        graph: Graph,
        task: Task,
        train: Int32,
        *,
        preaggregate: bool = False,
        needed_rows: Int32 | None = None,
        chunk: int | None = None,
        folder: Path | None = None,
    ) -> None:
        """``needed_rows``: the rows that the last layer of an exact pass is for; None: all.
        ``chunk``: rows at a time in an exact pass; None: as memory allows. ``folder``: where the
        tables of a pass in chunks live; None: in memory."""
        self.model, self.graph, self.task, self.train = model, graph, task, train
        self.features = store_of(graph.x)
        self.sampled_depth = model.depth - preaggregate
        if self.sampled_depth < 1:
            raise SgcnError("preaggregate leaves nothing to sample, expected at least two layers")
        self.needed_rows, self._folder = needed_rows, folder
        self.chunk = chunk_for(graph, dict(model.named_parameters())) if chunk is None else chunk
        self.sums: RowStore | None = None  # P X
        if preaggregate:
            sums = sum_features(graph, self.features, chunk=self.chunk, allocate=self._table)
            self.sums = DenseRows(sums)

    # -- the whole graph ------------------------------------------------------------------------

    @cached_property
    def _all_rows(self) -> LayerRows:
        return LayerRows(self.graph)

    @cached_property
    def _first(self) -> LayerRows:
        # For all nodes P (X W) of a sparse X is cheaper than the dense (P X) W, if a layer can.
        sparse = self.features.table is None and self.model.layer(0).lazy_rows
        known = self.sums is not None and not sparse
        return LayerRows(self.graph, sums=self.sums) if known else self._all_rows

    @cached_property
    def _last(self) -> LayerRows:
        if self.needed_rows is None:
            return self._all_rows
        return LayerRows(self.graph, self.needed_rows)

    def exact_pass(self, weights: Weights, *, needed_only: bool = True) -> ExactPass:
        """The whole graph at ``weights``; the last layer only for the rows that are needed."""
        layers = [self._first] + [self._all_rows] * (self.model.depth - 1)
        if needed_only and self.needed_rows is not None:
            layers[-1] = self._last
        return self._run(weights, layers)

    def _run(self, weights: Weights, layers: list[LayerRows]) -> ExactPass:
        found = ExactPass(
            self.model, weights, layers, self.features, chunk=self.chunk, allocate=self._table
        )
        return found.forward()

    def _table(self, rows: int, columns: int) -> Tensor:
        return allocate(rows, columns, folder=self._folder).data

    def loss(self, *, needed_only: bool = True) -> _MeanLoss:
        """The mean loss over the training nodes, as `ExactPass.backward` takes it."""
        rows = self.row_of(self.train) if needed_only else torch.from_numpy(self.train).long()
        return _MeanLoss(self.task, torch.from_numpy(self.train).long(), rows)

    @cached_property
    def index_of(self) -> Tensor | None:
        """Which row of an exact pass's last layer a node has; None: its own number."""
        if self.needed_rows is None:
            return None
        index = torch.full((len(self.graph),), -1, dtype=torch.int32)
        index[self.needed_rows] = torch.arange(len(self.needed_rows), dtype=torch.int32)
        return index

    def row_of(self, nodes: Int32) -> Tensor:
        """The rows of ``nodes`` in an exact pass's last layer."""
        ids = torch.from_numpy(nodes)
        return ids if self.index_of is None else self.index_of.index_select(0, ids)

    # -- batches --------------------------------------------------------------------------------

    def large_batch(self, wanted: float, seed: int, snapshots: int) -> Int32:
        """The nodes of a large-batch snapshot, in random order."""
        count = math.ceil(wanted * len(self.train)) if wanted < 1 else int(wanted)
        stream = Key(seed, 0, snapshots).stream(Stream.POOL)
        nodes: Int32 = self.train[permutation(len(self.train), stream)[:count]]
        return nodes

    def exact_pass_on(self, nodes: Int32, weights: Weights) -> ExactPass:
        """The last layer for ``nodes``, and every layer below for the rows that are read."""
        layers: list[LayerRows] = []
        rows = nodes
        for level in reversed(range(self.model.depth)):
            if level == 0 and self.sums is not None:
                layers.insert(0, LayerRows(self.graph, rows, sums=self.sums))
            else:
                block = exact_block(self.graph, rows)
                layers.insert(0, LayerRows(self.graph, rows, block))
                rows = block.src
        return self._run(weights, layers)

    def loss_on(self, nodes: Int32) -> _MeanLoss:
        """The mean loss over ``nodes``, for a pass on them."""
        return _MeanLoss(self.task, torch.from_numpy(nodes).long(), torch.arange(len(nodes)))

    def step(self, batch: Batch, key: Key) -> Step:
        """A step on ``batch``."""
        made: dict[int, BlockOperator] = {}  # subgraph samplers repeat one block
        for block in (*batch.blocks, *batch.exact):
            made.setdefault(id(block), BlockOperator(block))
        operators: list[Operator] = [made[id(block)] for block in batch.blocks]
        nodes = [torch.from_numpy(block.dst) for block in batch.blocks]
        exact: list[tuple[Operator, Tensor]] = [
            (made[id(block)], torch.from_numpy(block.src)) for block in batch.exact
        ]
        inputs = torch.from_numpy(batch.inputs)
        if self.sums is not None:
            first = Preaggregated(LazyRows(self.sums, inputs))
            operators.insert(0, first)
            nodes.insert(0, inputs)
            exact = [(first, inputs), *exact] if exact else []
        return Step(
            self.model,
            self.task,
            operators,
            nodes,
            LazyRows(self.features, inputs),
            torch.from_numpy(batch.loss_weights),
            torch.from_numpy(batch.nodes),
            exact=exact,
            dropout=self.model.dropout,
            key=key,
        )


class _MeanLoss:
    """The mean over ``nodes``, which are the rows ``rows`` of the last layer."""

    def __init__(self, task: Task, nodes: Tensor, rows: Tensor) -> None:
        self.task, self.nodes, self.rows = task, nodes, rows
        self.weights = torch.full((len(nodes),), 1.0 / len(nodes))

    def __call__(self, logits: Tensor, lo: int, hi: int) -> Tensor | None:
        nodes, rows, weights = self.nodes, self.rows, self.weights
        if hi - lo < int(rows.max()) + 1 or lo > 0:
            here = (rows >= lo) & (rows < hi)
            nodes, rows, weights = nodes[here], rows[here] - lo, weights[here]
            if len(nodes) == 0:
                return None
        return self.task.loss(logits.index_select(0, rows), nodes, weights)


def needed_rows(graph: Graph, train: Int32, scored: Int32 | None) -> Int32 | None:
    """Nodes that have a loss or are scored; None if they are nearly all."""
    needed = np.zeros(len(graph), np.bool_)
    needed[train] = True
    if scored is not None:
        needed[scored] = True
    rows = np.flatnonzero(needed).astype(np.int32)
    return rows if len(rows) < _NEARLY_ALL * len(graph) else None
