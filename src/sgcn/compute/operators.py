"""The sparse matrix of a layer as a model sees it: `aggregate` and `own`, on any device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.block import Block
from sgcn.compute.buffers import applied, empty, numbers
from sgcn.compute.inputs import Input, LazyRows, RowStore, as_tensor
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import Propagation
from sgcn.kernels import spmm as kernels
from sgcn.machine import physical_memory


class Operator(ABC):
    """M of one layer. ``aggregate(h)`` is M h; ``own(h)`` are the destinations' rows of h."""

    shape: tuple[int, int]
    edges: int
    #: Whether M h of a constant h is kept for the other passes of a step. Not for the whole graph:
    #: that is N rows of memory.
    keeps_constants = True
    #: Whether `aggregate` was computed beforehand, of the features as they are and nothing else.
    precomputed = False

    def sums_first(self, h: Input) -> bool:
        """Whether M h is known, or will be kept: then products with weights come after the sum."""
        return self.precomputed

    def aggregate(self, h: Input) -> Tensor:
        """M h. Of a constant it is computed once: the passes of a step share it."""
        if h.requires_grad:
            return applied(_Aggregate, h, self)
        if not self.keeps_constants:
            return self.times(h)
        known = self._constants.get(id(h))
        if known is None:
            known = (h, self.times(h))  # holds h, so that its id stays taken
            self._constants[id(h)] = known
        return known[1]

    @cached_property
    def _constants(self) -> dict[int, tuple[Any, Tensor]]:
        return {}

    def own(self, h: Input) -> Input:
        """The rows of h that belong to the destinations."""
        index = self.own_index
        if index is None:
            return h
        return h.take(index) if isinstance(h, LazyRows) else h.index_select(0, index)

    #: Index of each destination among the sources; None if the two are the same nodes.
    own_index: Tensor | None

    @abstractmethod
    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row pointers, indices of sources and values, for layers that weigh edges themselves."""

    @abstractmethod
    def times(self, h: Input) -> Tensor: ...

    @abstractmethod
    def times_transposed(self, g: Tensor) -> Tensor: ...


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, operator: Operator) -> Tensor:
        ctx.operator = operator
        return operator.times(h)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return ctx.operator.times_transposed(g.contiguous()), None


class BlockOperator(Operator):
    """A sampled block."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.shape = block.shape
        self.edges = block.edges

    @cached_property  # a property where the base declares a variable: read-only is enough
    def own_index(self) -> Tensor | None:  # type: ignore[override]
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

    def times(self, h: Input) -> Tensor:
        block = self.block
        ids: np.ndarray[Any, Any] | None = None
        if isinstance(h, LazyRows):
            table = h.store.table
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

    def times_transposed(self, g: Tensor) -> Tensor:
        if g.device.type != "cpu":
            indptr, indices, values = (torch.from_numpy(part) for part in self._transposed)
            turned = (self.shape[1], self.shape[0])
            return _device_product((indptr, indices, values), turned, g)
        out = empty(self.shape[1], g.shape[1])
        kernels.spmm(*self._transposed, g.numpy(), None, out.numpy())
        return out


class Shifted(Operator):
    """M h + base for a base that was computed beforehand."""

    keeps_constants = False

    def __init__(self, inner: Operator, base: Tensor) -> None:
        self.inner, self.base = inner, base
        self.shape, self.edges = inner.shape, inner.edges

    def own(self, h: Input) -> Input:
        return self.inner.own(h)

    def sums_first(self, h: Input) -> bool:
        """The base is a sum of inputs: products come after it."""
        return True

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        raise AssertionError("a layer that weighs edges is not linear")

    def times(self, h: Input) -> Tensor:
        return self.inner.times(h).add_(self.base)

    def times_transposed(self, g: Tensor) -> Tensor:
        return self.inner.times_transposed(g)


def _is_float32(store: RowStore) -> bool:
    return store.table is not None and store.table.dtype == torch.float32


class GraphOperator(Operator):
    """P itself, through the two scaling vectors: no value per edge."""

    own_index = None
    keeps_constants = False

    def __init__(self, graph: Graph, *, keep_sums: bool = True) -> None:
        self.graph, self._keep_sums = graph, keep_sums
        self.shape = (len(graph), len(graph))
        self.edges = graph.edges + len(graph) * graph.self_loops
        self._known: tuple[RowStore, Tensor] | None = None

    def sums_first(self, h: Input) -> bool:
        """X never changes, so P X is made once, if memory has room for a second X."""
        if not self._keep_sums:
            return False
        if not isinstance(h, LazyRows) or not h.is_all or not _is_float32(h.store):
            return False
        return 4 * 4 * h.shape[0] * h.shape[1] <= physical_memory()

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.graph.memo("csr", lambda: _weighed(self.graph.propagation))

    def times(self, h: Input) -> Tensor:
        if isinstance(h, LazyRows) and self.sums_first(h):
            if self._known is None or self._known[0] is not h.store:
                self._known = (h.store, self.times(h.dense()))
            return self._known[1]
        if isinstance(h, LazyRows):
            table = h.store.table if h.is_all else None
            h = h.dense() if table is None else table
        if h.device.type != "cpu":
            return _device_product(self.csr(), self.shape, h)
        p = self.graph.propagation
        out = empty(self.shape[0], h.shape[1])
        kernels.propagate(p, numbers(h), out.numpy())
        return out

    def times_transposed(self, g: Tensor) -> Tensor:
        # P^T = diag(c) (A + I)^T diag(r): an undirected A is its own transpose.
        p = self.graph.propagation
        parts = p[:3]
        if self.graph.directed:
            parts = self.graph.memo(
                "transposed", lambda: kernels.transpose(*p[:3], len(self.graph))
            )
        turned = Propagation(*parts, p.col, p.row, p.loops)
        if g.device.type != "cpu":
            return _device_product(_weighed(turned), self.shape, g)
        out = empty(self.shape[1], g.shape[1])
        kernels.propagate(turned, g.numpy(), out.numpy())
        return out


def _weighed(p: Propagation) -> tuple[Tensor, Tensor, Tensor]:
    """P with its values written out, for a device that has no kernel of ours."""
    indptr, indices, values = kernels.edge_weights(p)
    return torch.from_numpy(indptr), torch.from_numpy(indices), torch.from_numpy(values)


class RowsOperator(Operator):
    """P[rows, :] for any rows: what the last layer of a whole pass needs, if its loss is theirs.

    Entries are held a second time, by rows and by columns: 4 bytes each, and no value per edge.
    """

    keeps_constants = False

    def __init__(self, graph: Graph, rows: np.ndarray[Any, Any]) -> None:
        p = graph.propagation
        indptr, indices, values = kernels.take_rows(p.indptr, p.indices, p.values, p.loops, rows)
        self._by_row = Propagation(indptr, indices, values, p.row[rows], p.col, False)
        self.shape = (len(rows), len(graph))
        self.edges = len(self._by_row.indices)
        self.own_index = torch.from_numpy(rows)

    @cached_property
    def _by_column(self) -> Propagation:
        p = self._by_row
        indptr, indices, values = kernels.transpose(*p[:3], self.shape[1])
        return Propagation(indptr, indices, values, p.col, p.row, False)

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        return _weighed(self._by_row)

    def times(self, h: Input) -> Tensor:
        return self._product(self._by_row, as_tensor(h), self.shape)

    def times_transposed(self, g: Tensor) -> Tensor:
        return self._product(self._by_column, g, self.shape[::-1])

    @staticmethod
    def _product(p: Propagation, h: Tensor, shape: tuple[int, int]) -> Tensor:
        if h.device.type != "cpu":
            return _device_product(_weighed(p), shape, h)
        out = empty(shape[0], h.shape[1])
        kernels.propagate(p, numbers(h), out.numpy())
        return out


class Preaggregated(Operator):
    """Layer 1 when P X was computed once: no sampling, `aggregate` reads the rows of P X."""

    own_index = None
    keeps_constants = False
    precomputed = True

    def __init__(self, rows: LazyRows) -> None:
        self.rows = rows
        self.shape = (rows.shape[0], rows.shape[0])
        self.edges = 0

    def aggregate(self, h: Input) -> Tensor:
        if h.requires_grad:
            raise self._refusal("changes them before")
        return self._sums

    @cached_property
    def _sums(self) -> Tensor:
        return self.rows.dense()

    def times(self, h: Input) -> Tensor:
        return self._sums

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        raise self._refusal("weighs edges itself")

    @staticmethod
    def _refusal(why: str) -> SgcnError:
        return SgcnError(
            "preaggregate needs a first layer that sums its neighbours' features (mean, concat, "
            f"gin), but this one {why}: switch preaggregate off"
        )

    def times_transposed(self, g: Tensor) -> Tensor:
        raise AssertionError("features have no gradient")


def _device_product(
    csr: tuple[Tensor, Tensor, Tensor], shape: tuple[int, int], h: Tensor
) -> Tensor:
    """M h by torch, for tensors that are not on the CPU (this path was never run on a GPU)."""
    indptr, indices, values = (part.to(h.device) for part in csr)
    return torch.sparse_csr_tensor(indptr, indices.long(), values, shape) @ h.float()
