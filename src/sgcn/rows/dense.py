"""Dense rows, in memory or in a memory-mapped file, with 32 or 16 bits a number."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sgcn.compute.buffers import dropped, product, rows_of, rows_product


class DenseRows:
    """A tensor of float32, bfloat16 or float16; only rows that are read become float32."""

    def __init__(self, table: Tensor) -> None:
        self.table, self.dtype = table, table.dtype
        self.shape = (table.shape[0], table.shape[1])

    def read(self, ids: Tensor) -> Tensor:
        return rows_of(self.table, ids).float()

    def write(self, ids: Tensor | None, rows: Tensor) -> None:
        if ids is None:
            self.table.copy_(rows.detach())
        else:
            self.table.index_copy_(0, ids.long(), rows.detach().to(self.table.dtype))

    def times(self, ids: Tensor | None, weight: Tensor) -> Tensor:
        if ids is None and self.table.dtype == torch.float32:
            return product(self.table, weight)
        if ids is None:
            ids = torch.arange(len(self.table), dtype=torch.int32)
        return rows_product(self.table, ids, weight)

    def dropped(self, ids: Tensor, stream: np.uint64, share: float) -> DenseRows:
        return DenseRows(dropped(self.read(ids), stream, share))


class MappedRows(DenseRows):
    """Rows in a file that the system reads and writes as they are used; gone when nobody has it."""

    def __init__(self, rows: int, columns: int, dtype: torch.dtype, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="rows-", dir=folder)
        size = rows * columns
        try:
            # Room for all of it now: a mapping that finds the disk full later ends the process.
            os.posix_fallocate(handle, 0, max(size, 1) * dtype.itemsize)
            data = torch.from_file(name, shared=True, size=size, dtype=dtype)
        finally:
            os.close(handle)
            os.unlink(name)  # the mapping lives on; a crash leaves no file behind
        super().__init__(data.view(rows, columns))
