"""Row tables: features that are read, histories that are read and written.

A model's first layer gets `Rows`: a promise of feature rows. Layers that can, read them from the
table in place or keep them sparse; the others call `dense`.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sgcn.compute.buffers import applied, empty, product, rows_of, rows_product
from sgcn.graph import is_sparse
from sgcn.kernels import spmm as kernels


@dataclass(frozen=True, eq=False)
class Features:
    """The feature table X: dense float32, CSR that stays sparse until the first product, or dense
    float16, of which only the rows that are read become float32."""

    dense: Tensor | None
    sparse: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]] | None
    shape: tuple[int, int]
    half: Tensor | None = None

    @staticmethod
    def of(x: Any) -> Features:
        if is_sparse(x):
            parts = (
                x.indptr.astype(np.int64, copy=False),
                x.indices.astype(np.int32, copy=False),
                x.data.astype(np.float32, copy=False),
            )
            return Features(None, parts, (int(x.shape[0]), int(x.shape[1])))
        if x.dtype == np.float16 and x.ndim == 2:
            half = torch.from_numpy(np.ascontiguousarray(x))
            return Features(None, None, (half.shape[0], half.shape[1]), half)
        table = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
        return Features(table, None, (table.shape[0], table.shape[1]))

    @property
    def table(self) -> Tensor | None:
        """The dense table, float32 or float16."""
        return self.dense if self.dense is not None else self.half

    def rows(self, ids: Any) -> Rows:
        """A promise of the rows ``ids``."""
        return Rows(self, torch.as_tensor(ids))

    def all(self) -> Rows:
        return Rows(self, torch.arange(self.shape[0], dtype=torch.int32), is_all=True)


@dataclass(frozen=True, eq=False)
class Rows:
    """``features[ids]``, not gathered yet."""

    features: Features
    ids: Tensor
    is_all: bool = False  # simply all rows in order

    requires_grad: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ids), self.features.shape[1]

    @property
    def is_sparse(self) -> bool:
        return self.features.sparse is not None

    def take(self, places: Tensor) -> Rows:
        """The rows at ``places`` of this selection."""
        return Rows(self.features, self.ids.index_select(0, places))

    def dense(self) -> Tensor:
        """The rows as a tensor."""
        if self.features.dense is not None:
            return self.features.dense if self.is_all else rows_of(self.features.dense, self.ids)
        if self.features.half is not None:
            return self.features.half.index_select(0, self.ids).float()
        assert self.features.sparse is not None
        out = empty(*self.shape)
        kernels.sparse_rows_dense(*self.features.sparse, self.ids.numpy(), out.numpy())
        return out

    def __matmul__(self, weight: Tensor) -> Tensor:
        table = self.features.table
        if table is not None:
            whole = self.is_all and table.dtype == torch.float32
            return product(table, weight) if whole else rows_product(table, self.ids, weight)
        return applied(_SparseTimes, weight, self)


class _SparseTimes(torch.autograd.Function):
    """X[ids] W for sparse X; the gradient by W is X[ids]^T g."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Rows) -> Tensor:
        assert rows.features.sparse is not None
        ctx.rows = rows
        out = empty(len(rows.ids), weight.shape[1])
        w = weight.detach().contiguous().numpy()
        kernels.sparse_rows_times(*rows.features.sparse, rows.ids.numpy(), w, out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        rows: Rows = ctx.rows
        assert rows.features.sparse is not None
        out = empty(rows.shape[1], g.shape[1])
        kernels.sparse_rows_times_transposed(
            *rows.features.sparse,
            rows.ids.numpy(),
            g.contiguous().numpy(),
            out.numpy(),
        )
        return out, None


class Table:
    """A history of N rows: `assign` it whole, `read` and `write` some. Nothing else.

    float32 or bfloat16; in memory (pinned when a GPU will read it) or in a memory-mapped file.
    ``valid`` marks the rows that the last `assign` covered; None means all. ``place`` says which
    row a node has, in a table of some nodes; None means the row of its number.
    """

    def __init__(
        self,
        dtype: torch.dtype = torch.float32,
        *,
        folder: Path | None = None,
        pin: bool = False,
        place: Tensor | None = None,
    ) -> None:
        self.place = place
        self.dtype = dtype
        self.folder = folder
        self.pin = pin
        self.data = torch.empty(0, 0, dtype=dtype)
        self.valid: Tensor | None = None

    def assign(self, rows: Tensor) -> None:
        """Take over ``rows`` as the whole table; float32 in memory is not even copied."""
        self.valid = None
        if self.folder is None and not self.pin:
            self.data = rows.detach().to(self.dtype)
            return
        if self.data.shape != rows.shape:
            self.data = self._allocate(rows.shape[0], rows.shape[1])
        self.data.copy_(rows.detach())

    def assign_some(self, ids: Tensor, rows: Tensor, nodes: int) -> None:
        """Set the rows ``ids`` of a table of ``nodes`` rows and mark all others invalid."""
        if self.data.shape != (nodes, rows.shape[1]):
            self.data = self._allocate(nodes, rows.shape[1])
        self.valid = torch.zeros(nodes, dtype=torch.bool)
        self.valid[ids.long()] = True
        self.write(ids, rows)

    def read(self, ids: Tensor) -> Tensor:
        return rows_of(self.data, self._rows(ids)).float()

    def promise(self, ids: Tensor) -> Rows:
        """The rows ``ids``, for a product that reads them where they are."""
        data, shape = self.data, (self.data.shape[0], self.data.shape[1])
        whole = data.dtype == torch.float32
        table = Features(data, None, shape) if whole else Features(None, None, shape, data)
        return table.rows(self._rows(ids))

    def write(self, ids: Tensor, rows: Tensor) -> None:
        self.data.index_copy_(0, self._rows(ids).long(), rows.detach().to(self.dtype))

    def _rows(self, ids: Tensor) -> Tensor:
        return ids if self.place is None else self.place.index_select(0, ids)

    @property
    def nbytes(self) -> int:
        return self.data.numel() * self.data.element_size()

    def _allocate(self, n: int, width: int) -> Tensor:
        if self.folder is None:
            return torch.zeros(n, width, dtype=self.dtype, pin_memory=self.pin)
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="table-", dir=self.folder)
        try:
            # Room for all of it now: a mapping that finds the disk full later ends the process.
            os.posix_fallocate(handle, 0, n * width * self.dtype.itemsize)
            mapped = torch.from_file(name, shared=True, size=n * width, dtype=self.dtype)
        finally:
            os.close(handle)
            os.unlink(name)  # the mapping lives on; a crash leaves no file behind
        return mapped.view(n, width)
