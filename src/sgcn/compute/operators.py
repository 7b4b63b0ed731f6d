"""The sparse matrix of a layer as a model sees it: `aggregate` and `own`, on any device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.block import Block
from sgcn.compute.buffers import applied, empty, numbers, rows_of
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import spmm as kernels
from sgcn.machine import physical_memory
from sgcn.rows import Features, Rows


class Operator(ABC):
    """M of one layer. ``aggregate(h)`` is M h; ``own(h)`` are the destinations' rows of h."""

    shape: tuple[int, int]
    edges: int
    #: Whether `aggregate` of a constant is kept. Not for the whole graph: that is N rows of memory.
    shared = True
    #: Whether `aggregate` was computed beforehand, of the features as they are and nothing else.
    precomputed = False

    def keeps(self, h: Tensor | Rows) -> bool:
        """Whether M h is computed once and never again."""
        return self.precomputed

    def aggregate(self, h: Tensor | Rows) -> Tensor:
        """M h. Of a constant it is computed once: the passes of a step share it."""
        if h.requires_grad:
            return applied(_Aggregate, h, self)
        if not self.shared:
            return self._times(h)
        known = self._constants.get(id(h))
        if known is None:
            known = (h, self._times(h))  # holds h, so that its id stays taken
            self._constants[id(h)] = known
        return known[1]

    @cached_property
    def _constants(self) -> dict[int, tuple[Any, Tensor]]:
        return {}

    def own(self, h: Tensor | Rows) -> Tensor | Rows:
        """The rows of h that belong to the destinations."""
        places = self.places
        if places is None:
            return h
        return h.take(places) if isinstance(h, Rows) else h.index_select(0, places)

    #: Where the destinations stand among the sources; None if the two are the same nodes.
    places: Tensor | None

    @abstractmethod
    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row pointers, source places and values, for layers that weigh edges themselves."""

    @abstractmethod
    def _times(self, h: Tensor | Rows) -> Tensor: ...

    @abstractmethod
    def _times_transposed(self, g: Tensor) -> Tensor: ...


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, operator: Operator) -> Tensor:
        ctx.operator = operator
        return operator._times(h)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.operator._times_transposed(g.contiguous()), None


class BlockOperator(Operator):
    """A sampled block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.shape = block.shape
        self.edges = block.edges

    @cached_property  # a property where the base declares a variable: read-only is enough
    def places(self) -> Tensor | None:  # type: ignore[override]
        block = self.block
        if block.src is block.dst:
            return None
        if len(block.dst_in_src) and block.dst_in_src.min() < 0:
            raise SgcnError(
                "this layer reads the node itself, but a destination is not among the sources: "
                "set the sampler's keep_destinations to true"
            )
        return torch.from_numpy(block.dst_in_src)

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        block = self.block
        return (
            torch.from_numpy(block.indptr),
            torch.from_numpy(block.indices),
            torch.from_numpy(block.weights),
        )

    def _times(self, h: Tensor | Rows) -> Tensor:
        block = self.block
        ids: np.ndarray[Any, Any] | None = None
        if isinstance(h, Rows):
            table = h.features.table
            if table is not None and table.device.type == "cpu":
                ids = h.ids.numpy()
                h = table
            else:
                h = h.dense()
        if h.device.type != "cpu":
            return _device_product(self.csr(), self.shape, h)
        out = empty(self.shape[0], h.shape[1])
        kernels.spmm(block.indptr, block.indices, block.weights, numbers(h), ids, out.numpy())
        return out

    @cached_property
    def _transposed(self) -> tuple[Any, Any, Any]:
        block = self.block
        turned: tuple[Any, Any, Any] = kernels.transpose(
            block.indptr, block.indices, block.weights, self.shape[1]
        )
        return turned

    def _times_transposed(self, g: Tensor) -> Tensor:
        if g.device.type != "cpu":
            indptr, indices, values = (torch.from_numpy(part) for part in self._transposed)
            turned = (self.shape[1], self.shape[0])
            return _device_product((indptr, indices, values), turned, g)
        out = empty(self.shape[1], g.shape[1])
        kernels.spmm(*self._transposed, g.numpy(), None, out.numpy())
        return out


class Shifted(Operator):
    """M h + base for a base that was computed beforehand."""

    shared = False

    def __init__(self, inner: Operator, base: Tensor) -> None:
        self.inner, self.base = inner, base
        self.shape, self.edges = inner.shape, inner.edges

    def own(self, h: Tensor | Rows) -> Tensor | Rows:
        return self.inner.own(h)

    def keeps(self, h: Tensor | Rows) -> bool:
        """The base is a sum of inputs: products come after it."""
        return True

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        raise AssertionError("a layer that weighs edges is not linear")

    def _times(self, h: Tensor | Rows) -> Tensor:
        return self.inner._times(h).add_(self.base)

    def _times_transposed(self, g: Tensor) -> Tensor:
        return self.inner._times_transposed(g)


class GraphOperator(Operator):
    """P itself, or some of its rows, through the two scaling vectors: no value per edge."""

    places = None
    shared = False

    def __init__(self, graph: Graph, rows: slice | None = None) -> None:
        self.graph = graph
        self.lo: int = 0 if rows is None else rows.start
        self.hi: int = len(graph) if rows is None else rows.stop
        self.shape = (self.hi - self.lo, len(graph))
        self.edges = int(graph.indptr[self.hi] - graph.indptr[self.lo])
        self.edges += self.shape[0] * graph.self_loops
        self._known: tuple[Features, Tensor] | None = None
        if rows is not None:
            self.places = torch.arange(self.lo, self.hi)

    def keeps(self, h: Tensor | Rows) -> bool:
        """X never changes, so P X is made once, if memory has room for a second X."""
        if not isinstance(h, Rows) or not h.is_all or h.features.dense is None:
            return False
        return self.places is None and 4 * 4 * h.shape[0] * h.shape[1] <= physical_memory()

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        p = self.graph.propagation
        indptr, indices, values = self.graph.memo("csr", lambda: kernels.edge_weights(*p))
        span = slice(indptr[self.lo], indptr[self.hi])
        return (
            torch.from_numpy(indptr[self.lo : self.hi + 1] - indptr[self.lo]),
            torch.from_numpy(indices[span]),
            torch.from_numpy(values[span]),
        )

    def _times(self, h: Tensor | Rows) -> Tensor:
        if isinstance(h, Rows) and self.keeps(h):
            if self._known is None or self._known[0] is not h.features:
                self._known = (h.features, self._times(h.dense()))
            return self._known[1]
        if isinstance(h, Rows):
            table = h.features.table if h.is_all else None
            h = h.dense() if table is None else table
        if h.device.type != "cpu":
            return _device_product(self.csr(), self.shape, h)
        p = self.graph.propagation
        out = empty(self.shape[0], h.shape[1])
        kernels.propagate(
            p.indptr, p.indices, p.values, p.row, p.col, p.loops, self.lo, numbers(h), out.numpy()
        )
        return out

    def _times_transposed(self, g: Tensor) -> Tensor:
        # P^T = diag(c) (A + I)^T diag(r): an undirected A is its own transpose.
        p = self.graph.propagation
        if self.places is not None:  # the rows outside the slice take no part
            g = torch.zeros(len(self.graph), g.shape[1]).index_copy(0, self.places, g)
        indptr, indices, values = p.indptr, p.indices, p.values
        if self.graph.directed:
            indptr, indices, values = self.graph.memo(
                "transposed", lambda: kernels.transpose(indptr, indices, values, len(self.graph))
            )
        if g.device.type != "cpu":
            parts = kernels.edge_weights(indptr, indices, values, p.col, p.row, p.loops)
            parts = tuple(torch.from_numpy(part) for part in parts)
            return _device_product(parts, (self.shape[1], self.shape[0]), g)
        out = empty(self.shape[1], g.shape[1])
        kernels.propagate(indptr, indices, values, p.col, p.row, p.loops, 0, g.numpy(), out.numpy())
        return out


class RowsOperator(Operator):
    """P[rows, :] for any rows: what the last layer of a whole pass needs, if its loss is theirs.

    Entries are held a second time, by rows and by columns: 4 bytes each, and no value per edge.
    """

    shared = False

    def __init__(self, graph: Graph, rows: np.ndarray[Any, Any]) -> None:
        p = graph.propagation
        self._by_row = kernels.take_rows(p.indptr, p.indices, p.values, p.loops, rows)
        self._row, self._col = p.row[rows], p.col
        self.shape = (len(rows), len(graph))
        self.edges = len(self._by_row[1])
        self.places = torch.from_numpy(rows)

    @cached_property
    def _by_column(self) -> tuple[Any, Any, Any]:
        indptr, indices, values = self._by_row
        turned: tuple[Any, Any, Any] = kernels.transpose(indptr, indices, values, self.shape[1])
        return turned

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._weighed(self._by_row, self._row, self._col)

    @staticmethod
    def _weighed(parts: tuple[Any, Any, Any], row: Any, col: Any) -> tuple[Tensor, Tensor, Tensor]:
        indptr, indices, values = kernels.edge_weights(*parts, row, col, False)
        return torch.from_numpy(indptr), torch.from_numpy(indices), torch.from_numpy(values)

    def _times(self, h: Tensor | Rows) -> Tensor:
        h = h.dense() if isinstance(h, Rows) else h
        return self._product(self._by_row, self._row, self._col, h, self.shape)

    def _times_transposed(self, g: Tensor) -> Tensor:
        return self._product(self._by_column, self._col, self._row, g, self.shape[::-1])

    def _product(
        self, parts: tuple[Any, Any, Any], row: Any, col: Any, h: Tensor, shape: tuple[int, int]
    ) -> Tensor:
        if h.device.type != "cpu":
            return _device_product(self._weighed(parts, row, col), shape, h)
        out = empty(shape[0], h.shape[1])
        indptr, indices, values = parts
        kernels.propagate(indptr, indices, values, row, col, False, 0, numbers(h), out.numpy())
        return out


class Preaggregated(Operator):
    """Layer 1 when P X was computed once: no sampling, `aggregate` reads the rows of P X."""

    places = None
    shared = False
    precomputed = True

    def __init__(self, table: Tensor, ids: np.ndarray[Any, Any] | None) -> None:
        self.table = table
        self.ids = None if ids is None else torch.as_tensor(ids)
        n = len(table) if self.ids is None else len(self.ids)
        self.shape = (n, n)
        self.edges = 0

    def aggregate(self, h: Tensor | Rows) -> Tensor:
        if h.requires_grad:
            raise self._refusal("changes them before")
        return self._rows

    @cached_property
    def _rows(self) -> Tensor:
        return self.table if self.ids is None else rows_of(self.table, self.ids)

    def _times(self, h: Tensor | Rows) -> Tensor:
        return self._rows

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        raise self._refusal("weighs edges itself")

    @staticmethod
    def _refusal(why: str) -> SgcnError:
        return SgcnError(
            "preaggregate needs a first layer that sums its neighbours' features (mean, concat, "
            f"gin), but this one {why}: switch preaggregate off"
        )

    def _times_transposed(self, g: Tensor) -> Tensor:
        raise AssertionError("features have no gradient")


def _device_product(
    csr: tuple[Tensor, Tensor, Tensor], shape: tuple[int, int], h: Tensor
) -> Tensor:
    """M h by torch, for tensors that are not on the CPU (this path was never run on a GPU)."""
    indptr, indices, values = (part.to(h.device) for part in csr)
    return torch.sparse_csr_tensor(indptr, indices.long(), values, shape) @ h.float()
