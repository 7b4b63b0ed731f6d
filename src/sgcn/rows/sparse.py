"""Sparse rows (CSR), which stay sparse through their first product. Read-only: features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sgcn.compute.buffers import applied, empty
from sgcn.kernels import spmm as kernels
from sgcn.kernels.dropout import drop_entries

Csr = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]


class SparseRows:
    """A CSR matrix: row pointers, column indices, values."""

    table = None
    dtype = torch.float32

    def __init__(self, csr: Csr, shape: tuple[int, int]) -> None:
        self.csr, self.shape = csr, shape

    def read(self, ids: Tensor) -> Tensor:
        out = empty(len(ids), self.shape[1])
        kernels.sparse_rows_dense(*self.csr, ids.numpy(), out.numpy())
        return out

    def times(self, ids: Tensor | None, weight: Tensor) -> Tensor:
        if ids is None:
            ids = torch.arange(self.shape[0], dtype=torch.int32)
        return applied(_SparseTimes, weight, ids, self)

    def dropped(self, ids: Tensor, stream: np.uint64, share: float) -> SparseRows:
        csr = drop_entries(*self.csr, ids.numpy(), stream, share)
        return SparseRows(csr, (len(ids), self.shape[1]))


class _SparseTimes(torch.autograd.Function):
    """X[ids] W; the gradient by W is X[ids]^T g."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, store: SparseRows) -> Tensor:
        ctx.ids, ctx.store = ids, store
        out = empty(len(ids), weight.shape[1])
        w = weight.detach().contiguous().numpy()
        kernels.sparse_rows_times(*store.csr, ids.numpy(), w, out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        store: SparseRows = ctx.store
        out = empty(store.shape[1], g.shape[1])
        kernels.sparse_rows_times_transposed(
            *store.csr, ctx.ids.numpy(), g.contiguous().numpy(), out.numpy()
        )
        return out, None, None
