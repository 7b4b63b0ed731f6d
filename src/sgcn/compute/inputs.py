"""What operators read: tensors, and rows of a store that are not gathered yet."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor


class RowStore(Protocol):
    """Anything with a row for each node: features, P X, histories, outputs.

    ``read`` gives float32 rows. A store that can do better than to gather rows says so: ``table``
    is its dense table if it has one, and ``times`` multiplies rows where they are.
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> torch.dtype: ...

    @property
    def table(self) -> Tensor | None:
        """All rows as one dense tensor (float32 or 16 bits), or None if there is no such thing."""

    def read(self, ids: Tensor) -> Tensor: ...

    def times(self, ids: Tensor | None, weight: Tensor) -> Tensor:
        """rows[ids] W, of all rows for None; the gradient goes to W."""

    def dropped(self, ids: Tensor, stream: np.uint64, share: float) -> RowStore:
        """The rows ``ids`` alone, after dropout by ``stream``."""


class WritableStore(RowStore, Protocol):
    """A store whose rows change."""

    def write(self, ids: Tensor | None, rows: Tensor) -> None:
        """Set the rows ``ids``, or all rows for None; a gradient does not follow."""


class LazyRows:
    """``store[ids]``, not gathered yet: layers that can, read the rows where they are."""

    requires_grad = False

    def __init__(self, store: RowStore, ids: Tensor | None = None) -> None:
        self.store, self._ids = store, ids

    @property
    def is_all(self) -> bool:
        """Whether it is simply all rows in order."""
        return self._ids is None

    @property
    def ids(self) -> Tensor:
        count = self.store.shape[0]
        return torch.arange(count, dtype=torch.int32) if self._ids is None else self._ids

    @property
    def shape(self) -> tuple[int, int]:
        rows = self.store.shape[0] if self._ids is None else len(self._ids)
        return rows, self.store.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the store has no dense table."""
        return self.store.table is None

    def take(self, index: Tensor) -> LazyRows:
        """The rows at ``index`` of this selection."""
        return LazyRows(self.store, self.ids.index_select(0, index))

    def dropped(self, stream: np.uint64, share: float) -> LazyRows:
        """The rows after dropout, read once."""
        return LazyRows(self.store.dropped(self.ids, stream, share))

    def in_place(self) -> tuple[Tensor, Tensor | None]:
        """A tensor, and which of its rows are meant (None: all): the table, if a kernel can read
        it where it is."""
        table = self.store.table
        if table is None or table.device.type != "cpu":
            return self.dense(), None
        return table, self._ids

    def dense(self) -> Tensor:
        """The rows as a float32 tensor."""
        table = self.store.table
        if self.is_all and table is not None and table.dtype == torch.float32:
            return table
        return self.store.read(self.ids)

    def __matmul__(self, weight: Tensor) -> Tensor:
        if len(weight) != self.shape[1]:  # kernels do not look
            raise ValueError(f"weights for {len(weight)} columns, but rows have {self.shape[1]}")
        return self.store.times(self._ids, weight)


#: What a layer may be given: rows as a tensor, or rows of a store.
Input = Tensor | LazyRows


def as_tensor(h: Any) -> Tensor:
    """``h`` gathered, if it is not yet."""
    return h.dense() if isinstance(h, LazyRows) else h
