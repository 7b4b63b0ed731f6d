"""Which store fits: for what a graph brings, and for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from sgcn.compute.inputs import RowStore
from sgcn.errors import SgcnError
from sgcn.graph import is_sparse
from sgcn.rows.dense import DenseRows, MappedRows
from sgcn.rows.sparse import SparseRows


def store_of(x: Any) -> RowStore:
    """The features ``x`` of a graph as they are: nothing is copied that has a type we can read."""
    if x is None:
        raise SgcnError("the graph has no features (x), expected one row for each node")
    if is_sparse(x):
        csr = (
            x.indptr.astype(np.int64, copy=False),
            x.indices.astype(np.int32, copy=False),
            x.data.astype(np.float32, copy=False),
        )
        return SparseRows(csr, (int(x.shape[0]), int(x.shape[1])))
    dtype = np.float16 if x.dtype == np.float16 and x.ndim == 2 else np.float32
    return DenseRows(torch.from_numpy(np.ascontiguousarray(x, dtype=dtype)))


def allocate(
    rows: int, columns: int, dtype: torch.dtype = torch.float32, folder: Path | None = None
) -> DenseRows:
    """New rows of zeros: in memory, or in a file of ``folder``."""
    if folder is not None:
        return MappedRows(rows, columns, dtype, folder)
    return DenseRows(torch.zeros(rows, columns, dtype=dtype))
