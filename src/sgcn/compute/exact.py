"""The one exact pass: forward and backward over the whole graph, layer by layer.

Snapshots, full batches, evaluation, prediction and P X all run here. A pass takes all rows at once,
or ``chunk`` rows at a time: then it needs, beside one table of Z (and going back one of D) for each
layer, only what the rows of a chunk and their neighbours take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from sgcn.block import Block, Int32
from sgcn.compute.gradients import Gradient, Weights, add_to, pull
from sgcn.compute.inputs import Input, LazyRows, RowStore
from sgcn.compute.operators import (
    BlockOperator,
    GraphOperator,
    Operator,
    Preaggregated,
    RowsOperator,
)
from sgcn.graph import Graph
from sgcn.machine import physical_memory
from sgcn.samplers.base import exact_block

_CHUNK = 1 << 16  # rows, where a pass at once would take too much memory


class Network(Protocol):
    """What a pass needs of a model: layers and head as pure functions of weights and input."""

    @property
    def depth(self) -> int: ...

    def run_layer(self, level: int, weights: Weights, operator: Operator, h: Input) -> Tensor: ...

    def act(self, z: Tensor, level: int) -> Tensor: ...

    def run_head(self, weights: Weights, h: Tensor) -> Tensor: ...

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]: ...

    def modules(self) -> Iterator[torch.nn.Module]: ...


#: A new table of so many rows and columns: in memory, or wherever rows live.
Allocate = Callable[[int, int], Tensor]


#: The loss of rows lo to hi of the last layer, given their logits; None if none of them has one.
Loss = Callable[[Tensor, int, int], Tensor | None]


@dataclass(eq=False)
class Part:
    """Rows ``lo`` to ``hi`` of a layer, and what they read: ``sources`` are rows of the layer
    below, or of the features, where they are the nodes ``nodes``; None means all."""

    lo: int
    hi: int
    operator: Operator
    sources: Tensor | None
    nodes: Tensor | None

    @property
    def at_once(self) -> bool:
        """Whether it is the whole layer."""
        return self.sources is None


@dataclass(eq=False)
class LayerRows:
    """P[rows, :] of one layer, at once or in parts; ``rows`` None means all nodes.

    With ``block``, which is P[rows, :] too, the layer below has only the rows that this one reads.
    """

    graph: Graph
    rows: Int32 | None = None
    block: Block | None = None
    sums: RowStore | None = None  # P X, if it was computed beforehand

    def __len__(self) -> int:
        return len(self.graph) if self.rows is None else len(self.rows)

    def parts(self, chunk: int | None) -> Iterator[Part]:
        """The rows in order, at most ``chunk`` at a time."""
        if chunk is None or chunk >= len(self):
            yield self._all_at_once
            return
        for lo in range(0, len(self), chunk):
            hi = min(lo + chunk, len(self))
            rows = np.arange(lo, hi, dtype=np.int32) if self.rows is None else self.rows[lo:hi]
            if self.sums is not None:
                ids = torch.from_numpy(rows)
                yield Part(lo, hi, Preaggregated(LazyRows(self.sums, ids)), ids, ids)
                continue
            block = exact_block(self.graph, rows)
            nodes = torch.from_numpy(block.src)
            sources = nodes if self.block is None else self._index_of.index_select(0, nodes)
            yield Part(lo, hi, BlockOperator(block), sources, nodes)

    @cached_property
    def _all_at_once(self) -> Part:
        nodes = None
        if self.sums is not None:
            nodes = None if self.rows is None else torch.from_numpy(self.rows)
            operator: Operator = Preaggregated(LazyRows(self.sums, nodes))
        elif self.block is not None:
            operator, nodes = BlockOperator(self.block), torch.from_numpy(self.block.src)
        elif self.rows is not None:
            operator = RowsOperator(self.graph, self.rows)
        else:
            operator = GraphOperator(self.graph)
        return Part(0, len(self), operator, None, nodes)

    @cached_property
    def _index_of(self) -> Tensor:
        """Which row of the layer below a node has."""
        assert self.block is not None
        return positions(self.block.src, len(self.graph))


def positions(ids: Int32, nodes: int) -> Tensor:
    """Where each of the nodes stands among ``ids``, or -1."""
    index = torch.full((nodes,), -1, dtype=torch.int32)
    index[ids] = torch.arange(len(ids), dtype=torch.int32)
    return index


@dataclass(eq=False)
class _Segment:
    """One layer on one part: the leaf it read, its Z, and H = act(Z)."""

    leaf: Input
    z: Tensor
    h: Tensor


class ExactPass:
    """A pass of ``network`` at ``weights``: `forward`, and then `backward` from a loss.

    ``layers`` say which rows each layer is computed for: all, but in the last one, or those that
    the rows of a large batch need.
    """

    def __init__(
        self,
        network: Network,
        weights: Weights,
        layers: list[LayerRows],
        features: RowStore,
        *,
        chunk: int | None = None,
        allocate: Allocate = torch.zeros,
    ) -> None:
        """``allocate`` makes the tables that chunks are written to."""
        self.network, self.weights, self.layers = network, weights, layers
        self.features, self.chunk, self._allocate = features, chunk, allocate
        self.z: list[Tensor] = []  # of each layer, all its rows, without gradients
        self._at_once: dict[int, _Segment] = {}  # layers that were run in one part
        self._logits: Tensor | None = None

    def forward(self, *, keep: bool = True) -> ExactPass:
        """Z of every layer; without ``keep`` a layer is dropped when the next one is done."""
        for level, layer in enumerate(self.layers):
            rows: Tensor | None = None
            for part in layer.parts(self.chunk):
                if part.at_once:
                    self._at_once[level] = segment = self._run(level, part)
                    rows = segment.z.detach()
                else:
                    with torch.no_grad():
                        z = self._run(level, part).z
                    rows = self._allocate(len(layer), z.shape[1]) if rows is None else rows
                    rows[part.lo : part.hi] = z
            assert rows is not None
            self.z.append(rows)
            if not keep and level > 0:
                self.z[level - 1] = torch.empty(0)
                self._at_once.pop(level - 1, None)
        return self

    def _run(self, level: int, part: Part) -> _Segment:
        leaf: Input = LazyRows(self.features, part.nodes)
        if level > 0:
            leaf = self.hidden(level - 1, part.sources).detach()
            leaf = leaf.requires_grad_() if torch.is_grad_enabled() else leaf
        z = self.network.run_layer(level, self.weights, part.operator, leaf)
        if torch.is_grad_enabled() and not z.requires_grad:
            z = z.clone()  # of a layer without weights: it may be someone's table
        return _Segment(leaf, z, self.network.act(z, level))

    def hidden(self, level: int, ids: Tensor | None = None) -> Tensor:
        """H of layer ``level`` (0 is the first), of some of its rows or of all."""
        if ids is None and level in self._at_once:
            return self._at_once[level].h
        z = self.z[level] if ids is None else self.z[level].index_select(0, ids)
        return self.network.act(z, level)

    def _in_parts(self, level: int, ids: Tensor | None = None) -> Iterable[Tensor | None]:
        """``ids`` of a layer's rows, or all of them for None, as many at a time as a part has."""
        if self.chunk is None:
            return [ids]
        return torch.split(torch.arange(len(self.z[level])) if ids is None else ids, self.chunk)

    def square(self, level: int, ids: Tensor | None = None) -> float:
        """The squared Frobenius norm of H of layer ``level``, of all its rows or of some."""
        parts = (self.hidden(level, part).detach() for part in self._in_parts(level, ids))
        return sum(float(h.norm()) ** 2 for h in parts)

    def logits(self, rows: Tensor | None = None) -> Tensor:
        """Logits of rows of the last layer, of all of them for None."""
        if self._logits is not None:
            return self._logits if rows is None else self._logits.index_select(0, rows)
        last = self.network.depth - 1
        with torch.no_grad():
            return _joined(
                [
                    self.network.run_head(self.weights, self.hidden(last, part))
                    for part in self._in_parts(last, rows)
                ]
            )

    def backward(self, loss: Loss) -> tuple[float, Gradient, list[Tensor]]:
        """The loss, its gradient, and the layer gradients D by H^1 .. H^(L-1)."""
        value, gradient, d = self._head(loss)
        layer_gradients: list[Tensor] = []
        for level in reversed(range(self.network.depth)):
            below: Tensor | None = None
            for part in self.layers[level].parts(self.chunk):
                segment = self._at_once[level] if part.at_once else self._run(level, part)
                leaf = segment.leaf if isinstance(segment.leaf, Tensor) else None
                flowing = d if part.at_once else d[part.lo : part.hi]
                found, by_leaf = pull(segment.h, self.weights, f"layers.{level}.", leaf, flowing)
                add_to(gradient, found)
                if part.at_once or by_leaf is None:
                    below = by_leaf
                else:
                    if below is None:
                        below = self._allocate(len(self.z[level - 1]), by_leaf.shape[1])
                    assert part.sources is not None
                    below.index_add_(0, part.sources, by_leaf)
            if level > 0:
                assert below is not None
                layer_gradients.insert(0, below)
                d = below
        return value, gradient, layer_gradients

    def _head(self, loss: Loss) -> tuple[float, Gradient, Tensor]:
        """From the loss to H of the last layer."""
        last = self.network.depth - 1
        value, gradient = 0.0, Gradient()
        by_rows: list[Tensor] = []
        hi = 0
        for rows in self._in_parts(last):
            leaf = self.hidden(last, rows).detach().requires_grad_()
            logits = self.network.run_head(self.weights, leaf)
            lo, hi = hi, hi + len(leaf)
            part = loss(logits, lo, hi)
            if part is None:
                by_rows.append(torch.zeros_like(leaf))
                continue
            found, by_leaf = pull(part, self.weights, "head.", leaf, None)
            add_to(gradient, found)
            assert by_leaf is not None
            by_rows.append(by_leaf)
            value += float(part.detach())
            if self.chunk is None:
                self._logits = logits.detach()
        for name, weight in self.weights.items():  # a chunk may be without any loss
            if name.startswith("head."):
                gradient.setdefault(name, torch.zeros_like(weight))
        return value, gradient, _joined(by_rows)


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def chunk_for(graph: Graph, weights: Weights) -> int | None:
    """Rows at a time for a pass at ``weights``, as memory allows; None: all at once.

    At once a pass holds about four tables a layer.
    """
    widths = sum(weight.shape[-1] for weight in weights.values() if weight.ndim == 2)
    return None if 4 * 4 * len(graph) * widths <= physical_memory() // 2 else _CHUNK


@contextmanager
def _scoring(network: Network) -> Iterator[None]:
    """As after eval(); then every module has the mode that it had."""
    modes = [(module, module.training) for module in network.modules()]
    try:
        for module, _ in modes:
            module.training = False
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@torch.no_grad()
def whole_pass(
    network: Network,
    graph: Graph,
    features: RowStore,
    *,
    chunk: int | None = None,
    allocate: Allocate = torch.zeros,
) -> ExactPass:
    """A pass over all nodes that has only its last layer left, and no gradient."""
    weights = dict(network.named_parameters())
    chunk = chunk_for(graph, weights) if chunk is None else chunk
    layers = [LayerRows(graph)] * network.depth
    found = ExactPass(network, weights, layers, features, chunk=chunk, allocate=allocate)
    return found.forward(keep=False)


def predict(
    network: Network, graph: Graph, features: RowStore, *, chunk: int | None = None
) -> Tensor:
    """Logits of every node."""
    with _scoring(network):
        return whole_pass(network, graph, features, chunk=chunk).logits()


def embed(network: Network, graph: Graph, features: RowStore) -> Tensor:
    """H^L of every node."""
    with _scoring(network):
        return whole_pass(network, graph, features).hidden(network.depth - 1)
