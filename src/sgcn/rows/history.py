"""`History`: a row store plus what is known about its rows. Nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sgcn.compute.inputs import LazyRows, WritableStore
from sgcn.rows.dense import DenseRows
from sgcn.rows.sources import allocate

#: A store of so many rows and columns.
MakeStore = Callable[[int, int, torch.dtype], WritableStore]


class History:
    """Last known rows of a layer: `assign` them at a snapshot, `read` and `write` some in between.

    ``valid`` marks the rows that the last snapshot covered or a step wrote since; None means all.
    ``norm`` and ``snapshot_norm`` are squared Frobenius norms now and at the snapshot, of what the
    owner counts (activations, for a table of pre-activations) and keeps up to date.
    ``index_of`` says which row a node has, in a history of some nodes; None means its own number.
    """

    def __init__(
        self,
        dtype: torch.dtype = torch.float32,
        *,
        make_store: MakeStore | None = None,
        index_of: Tensor | None = None,
    ) -> None:
        """``make_store`` says where rows live; without it they are in memory."""
        self.dtype, self.index_of = dtype, index_of
        self._make_store = make_store
        self.store: WritableStore = DenseRows(torch.empty(0, 0, dtype=dtype))
        self.valid: Tensor | None = None
        self.norm = self.snapshot_norm = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        return self.store.shape

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def all_rows(self) -> Tensor:
        """Every row, in the history's own type."""
        table = self.store.table
        if table is None:
            return self.store.read(torch.arange(self.shape[0])).to(self.dtype)
        return table

    def assign(self, rows: Tensor, norm: float) -> None:
        """Take over ``rows`` as all rows; float32 in memory is not even copied."""
        self.valid = None
        self.norm = self.snapshot_norm = norm
        if self._make_store is None:
            self.store = DenseRows(rows.detach().to(self.dtype))
            return
        self._make_room(*rows.shape)
        self.store.write(None, rows)

    def assign_some(self, ids: Tensor, rows: Tensor, nodes: int, norm: float) -> None:
        """Set the rows ``ids`` of a history of ``nodes`` rows, and mark all others invalid."""
        self.norm = self.snapshot_norm = norm
        self._make_room(nodes, rows.shape[1])
        self.valid = torch.zeros(nodes, dtype=torch.bool)
        self.valid[ids.long()] = True
        self.store.write(self._index(ids), rows)

    def read(self, ids: Tensor) -> Tensor:
        return self.store.read(self._index(ids))

    def write(self, ids: Tensor, rows: Tensor) -> None:
        self.store.write(self._index(ids), rows)

    def covers(self, ids: Tensor) -> Tensor | None:
        """Which of the rows ``ids`` are known, as a column; None for all."""
        return None if self.valid is None else self.valid.index_select(0, ids)[:, None]

    def norm_after(self, ids: Tensor, growth: Tensor) -> float:
        """The norm once the squares of rows ``ids`` have grown so; unknown rows do not count."""
        known = self.covers(ids)
        return self.norm + float((growth if known is None else growth * known).sum())

    def follow(self, ids: Tensor, rows: Tensor, norm: float, squares: Callable[[], Tensor]) -> None:
        """Take over what a step made of the rows ``ids``: they are known from now on.

        Those that the snapshot did not cover have drifted from nothing: their ``squares`` count now
        and at the snapshot.
        """
        self.write(ids, rows)
        self.norm, known = norm, self.covers(ids)
        if self.valid is not None and known is not None:
            fresh = float((squares() * ~known).sum())
            self.valid[ids.long()] = True
            self.norm += fresh
            self.snapshot_norm += fresh

    def lazy(self, ids: Tensor) -> LazyRows:
        """The rows ``ids``, for a product that reads them where they are."""
        return LazyRows(self.store, self._index(ids))

    def _index(self, ids: Tensor) -> Tensor:
        return ids if self.index_of is None else self.index_of.index_select(0, ids)

    def _make_room(self, rows: int, columns: int) -> None:
        if self.shape != (rows, columns):
            make = self._make_store or allocate
            self.store = make(rows, columns, self.dtype)
