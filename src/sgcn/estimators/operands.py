"""What a step works on: the rows and matrices of a batch, of a large batch, of the whole graph."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.block import Batch, Int32
from sgcn.compute.exact import ExactPass, LayerRows, Loss, chunk_for, positions, whole_pass
from sgcn.compute.gradients import Weights
from sgcn.compute.inputs import Input, LazyRows, RowStore
from sgcn.compute.operators import BlockOperator, Operator, Preaggregated
from sgcn.errors import SgcnError
from sgcn.estimators.passes import Step
from sgcn.graph import Graph, is_sparse
from sgcn.kernels.random import permutation
from sgcn.machine import physical_memory
from sgcn.nn import Layer, Model
from sgcn.rng import Key, Stream
from sgcn.rows import DenseRows, allocate, store_of
from sgcn.samplers.base import Sampler, exact_block
from sgcn.task import Task

_NEARLY_ALL = 0.9  # of the nodes: to leave out the others would not pay
#: Numbers of a row of P X that cost as much as one stored value of X and of its sampled neighbours.
_DENSE_FOR_STORED = 50


def worth_preaggregating(model: Model, graph: Graph, sampler: Sampler) -> bool:
    """Whether P X computed once should stand for the sums of the first layer.

    It can, if the layer only sums, two layers are left, no size is set for it, and a second X fits
    in memory. It pays, unless X is sparse and its rows store next to nothing.
    """
    sizes = getattr(sampler, "sizes", None)
    explicit_sizes = isinstance(sizes, tuple) and len(sizes) == model.depth
    if graph.x is None or model.depth < 2 or explicit_sizes or not model.layer(0).sums_inputs:
        return False
    if not _sums_fit(graph):
        return False
    nodes, columns = graph.x.shape
    return not is_sparse(graph.x) or nodes * columns <= _DENSE_FOR_STORED * graph.x.nnz


def _sums_fit(graph: Graph) -> bool:
    """Whether memory has room for a second X."""
    assert graph.x is not None
    return bool(4 * 4 * len(graph) * graph.x.shape[1] <= physical_memory())


class _Sum(Layer):
    """Z = P H."""

    lazy_rows = True

    def forward(self, block: Operator, h: Input) -> Tensor:
        return block.aggregate(h)


def sum_features(graph: Graph, features: RowStore, **options: Any) -> RowStore:
    """P X: Z of a model whose only layer sums its inputs; ``options`` are those of `whole_pass`."""
    return DenseRows(whole_pass(Model([_Sum()]), graph, features, **options).z[0])


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
        self.sums = self._sum_features() if preaggregate else None  # P X

    def _sum_features(self) -> RowStore:
        return sum_features(self.graph, self.features, chunk=self.chunk, allocate=self._table)

    # -- the whole graph ------------------------------------------------------------------------

    @cached_property
    def _layers(self) -> list[LayerRows]:
        """All rows of every layer."""
        first = LayerRows(self.graph, sums=self._sums_of_all())
        return [first] + [LayerRows(self.graph)] * (self.model.depth - 1)

    def _sums_of_all(self) -> RowStore | None:
        """P X, where a pass over all nodes is to read it."""
        layer, x = self.model.layer(0), self.features
        if layer.lazy_rows and x.table is None:
            return None  # P (X W) of a sparse X is cheaper than the dense (P X) W
        if self.sums is not None or not (layer.lazy_rows and layer.sums_inputs):
            return self.sums
        # X never changes: the first pass leaves P X to the next ones, where memory allows.
        at_once = self.chunk is None or self.chunk >= len(self.graph)
        fits = at_once and x.dtype == torch.float32 and _sums_fit(self.graph)
        return self._sum_features() if fits else None

    @cached_property
    def _needed_layers(self) -> list[LayerRows]:
        if self.needed_rows is None:
            return self._layers
        return [*self._layers[:-1], LayerRows(self.graph, self.needed_rows)]

    def exact_pass(self, weights: Weights, *, needed_only: bool = True) -> ExactPass:
        """The whole graph at ``weights``; the last layer only for the rows that are needed."""
        return self._run(weights, self._needed_layers if needed_only else self._layers)

    def _run(self, weights: Weights, layers: list[LayerRows]) -> ExactPass:
        found = ExactPass(
            self.model, weights, layers, self.features, chunk=self.chunk, allocate=self._table
        )
        return found.forward()

    def _table(self, rows: int, columns: int) -> Tensor:
        return allocate(rows, columns, folder=self._folder).table

    def loss(self, *, needed_only: bool = True) -> Loss:
        """The mean loss over the training nodes, as `ExactPass.backward` takes it."""
        rows = self.row_of(self.train) if needed_only else torch.from_numpy(self.train)
        return self._mean_loss(self.train, rows)

    def _mean_loss(self, nodes: Int32, rows: Tensor) -> Loss:
        """The mean over ``nodes``, which are the rows ``rows`` of the last layer."""
        ids, share = torch.from_numpy(nodes).long(), 1.0 / len(nodes)

        def loss(logits: Tensor, lo: int, hi: int) -> Tensor | None:
            here = (rows >= lo) & (rows < hi)
            some = ids[here]
            if len(some) == 0:
                return None
            weights = torch.full((len(some),), share)
            return self.task.loss(logits.index_select(0, rows[here] - lo), some, weights)

        return loss

    @cached_property
    def index_of(self) -> Tensor | None:
        """Which row of an exact pass's last layer a node has; None: its own number."""
        if self.needed_rows is None:
            return None
        return positions(self.needed_rows, len(self.graph))

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
        for _ in range(self.sampled_depth):
            block = exact_block(self.graph, rows)
            layers.insert(0, LayerRows(self.graph, rows, block))
            rows = block.src
        if self.sums is not None:
            layers.insert(0, LayerRows(self.graph, rows, sums=self.sums))
        return self._run(weights, layers)

    def loss_on(self, nodes: Int32) -> Loss:
        """The mean loss over ``nodes``, for a pass on them."""
        return self._mean_loss(nodes, torch.arange(len(nodes)))

    def step(self, batch: Batch, key: Key) -> Step:
        """A step on ``batch``."""
        distinct = {id(block): block for block in (*batch.blocks, *batch.exact)}
        made = {name: BlockOperator(block) for name, block in distinct.items()}
        operators: list[Operator] = [made[id(block)] for block in batch.blocks]
        nodes = [torch.from_numpy(block.dst) for block in batch.blocks]
        exact: list[tuple[Operator, Tensor]] = [
            (made[id(block)], torch.from_numpy(block.src)) for block in batch.exact
        ]
        inputs = torch.from_numpy(batch.inputs)
        if self.sums is not None:
            sums, share = LazyRows(self.sums, inputs), self.model.dropout
            if share > 0:  # by numbers of its own: X at the same nodes may be read beside it
                sums = sums.dropped(key.stream(Stream.DROPOUT, self.model.depth), share)
            operators.insert(0, Preaggregated(sums))
            nodes.insert(0, inputs)
            first = Preaggregated(LazyRows(self.sums, inputs))
            exact = [(first, inputs), *exact] if exact else []
        return Step(
            self.model, self.task, operators, nodes, LazyRows(self.features, inputs),
            torch.from_numpy(batch.loss_weights), torch.from_numpy(batch.nodes), exact, key,
        )  # fmt: skip


def needed_rows(graph: Graph, train: Int32, scored: Int32 | None) -> Int32 | None:
    """Nodes that have a loss or are scored; None if they are nearly all."""
    rows: Int32 = np.unique(train if scored is None else np.concatenate([train, scored]))
    return rows if len(rows) < _NEARLY_ALL * len(graph) else None
