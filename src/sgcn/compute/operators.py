"""The sparse matrix of a layer as a model sees it: `aggregate` and `own`, on any device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from sgcn.block import Block, Float32, Int32, Int64
from sgcn.compute.buffers import applied, empty, numbers
from sgcn.compute.inputs import Input, LazyRows
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import Propagation
from sgcn.kernels import spmm as kernels

#: Row pointers, indices of columns and values.
Csr = tuple[Int64, Int32, Float32]
Numbers = npt.NDArray[Any]  # float32, or the bits of 16-bit numbers


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


class _Held(Operator):
    """A matrix that is held by its rows, and by its columns once a gradient asks for it."""

    _by_row: Any
    _by_column: Any

    @abstractmethod
    def _entries(self, held: Any) -> Csr:
        """What is held, with all values written out."""

    @abstractmethod
    def _multiply(self, held: Any, h: Numbers, ids: Any, out: Float32) -> None:
        """The product with rows ``ids`` of h, or all for None."""

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        return _tensors(self._entries(self._by_row))

    def times(self, h: Input) -> Tensor:
        table, ids = h.in_place() if isinstance(h, LazyRows) else (h, None)
        return self._product(self._by_row, table, ids, self.shape)

    def times_transposed(self, g: Tensor) -> Tensor:
        return self._product(self._by_column, g, None, self.shape[::-1])

    def _product(self, held: Any, h: Tensor, ids: Tensor | None, shape: tuple[int, int]) -> Tensor:
        if h.device.type != "cpu":  # by torch; this path was never run on a GPU
            indptr, indices, values = (part.to(h.device) for part in _tensors(self._entries(held)))
            return torch.sparse_csr_tensor(indptr, indices.long(), values, shape) @ h.float()
        out = empty(shape[0], h.shape[1])
        self._multiply(held, numbers(h), None if ids is None else ids.numpy(), out.numpy())
        return out


class BlockOperator(_Held):
    """A sampled block."""

    def __init__(self, block: Block) -> None:
        self.block, self.shape, self.edges = block, block.shape, block.edges
        self._by_row: Csr = (block.indptr, block.indices, block.weights)

    @cached_property  # a property where the base declares a variable: read-only is enough
    def own_index(self) -> Tensor | None:  # type: ignore[override]
        block = self.block
        if block.src is block.dst:
            return None
        if len(block.dst_in_src) and block.dst_in_src.min() < 0:
            raise destinations_missing()
        return torch.from_numpy(block.dst_in_src)

    @cached_property
    def _by_column(self) -> Csr:
        turned: Csr = kernels.transpose(*self._by_row, self.shape[1])
        return turned

    def _entries(self, held: Csr) -> Csr:
        return held

    def _multiply(self, held: Csr, h: Numbers, ids: Any, out: Float32) -> None:
        kernels.spmm(*held, h, ids, out)


def destinations_missing() -> SgcnError:
    return SgcnError(
        "this layer reads the node itself, but a destination is not among the sources: "
        "set the sampler's keep_destinations to true"
    )


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


class _Rows(_Held):
    """Rows of P through the two scaling vectors: no value per edge."""

    keeps_constants = False

    def __init__(self, by_row: Propagation, nodes: int) -> None:
        self._by_row: Propagation = by_row
        self.shape = (len(by_row.indptr) - 1, nodes)

    def _turned(self) -> Csr:
        turned: Csr = kernels.transpose(*self._by_row[:3], self.shape[1])
        return turned

    @cached_property
    def _by_column(self) -> Propagation:
        """P^T = diag(c) (A + I)^T diag(r)."""
        p = self._by_row
        return Propagation(*self._turned(), p.col, p.row, p.loops)

    def _entries(self, held: Propagation) -> Csr:
        written: Csr = kernels.edge_weights(held)
        return written

    def _multiply(self, held: Propagation, h: Numbers, ids: Any, out: Float32) -> None:
        kernels.propagate(held, h if ids is None else h[ids], out)


class GraphOperator(_Rows):
    """P itself."""

    own_index = None

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.propagation, len(graph))
        self.graph = graph
        self.edges = graph.edges + len(graph) * graph.self_loops

    def _turned(self) -> Csr:
        if not self.graph.directed:  # A is its own transpose
            return self._by_row[:3]
        return self.graph.memo("transposed", super()._turned)

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.graph.memo("csr", super().csr)


class RowsOperator(_Rows):
    """P[rows, :] for any rows: what the last layer of a whole pass needs, if its loss is theirs.

    Entries are held a second time, by rows and by columns: 4 bytes each, and no value per edge.
    """

    def __init__(self, graph: Graph, rows: Int32) -> None:
        p = graph.propagation
        indptr, indices, values = kernels.take_rows(p.indptr, p.indices, p.values, p.loops, rows)
        taken = Propagation(indptr, indices, values, p.row[rows], p.col, False)
        super().__init__(taken, len(graph))
        self.edges = len(self._by_row.indices)
        self.own_index = torch.from_numpy(rows)


class Preaggregated(Operator):
    """Layer 1 when P X was computed once: no sampling, `aggregate` reads the rows of P X."""

    own_index = None
    keeps_constants = False
    precomputed = True

    def __init__(self, rows: LazyRows) -> None:
        self.rows, self.edges = rows, 0
        self.shape = (rows.shape[0], rows.shape[0])

    def aggregate(self, h: Input) -> Tensor:
        if h.requires_grad:
            raise self._refusal("changes them before")
        return self._sums

    def times(self, h: Input) -> Tensor:
        return self._sums

    @cached_property
    def _sums(self) -> Tensor:
        return self.rows.dense()

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


def _tensors(parts: Csr) -> tuple[Tensor, Tensor, Tensor]:
    indptr, indices, values = parts
    return torch.from_numpy(indptr), torch.from_numpy(indices), torch.from_numpy(values)
