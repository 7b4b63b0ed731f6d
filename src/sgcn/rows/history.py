"""`History`: a row store plus what is known about its rows. Nothing else."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from sgcn.compute.inputs import LazyRows
from sgcn.rows.dense import DenseRows
from sgcn.rows.sources import allocate


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
        folder: Path | None = None,
        index_of: Tensor | None = None,
    ) -> None:
        self._dtype, self._folder, self.index_of = dtype, folder, index_of
        self.store = DenseRows(torch.empty(0, 0, dtype=dtype))
        self.valid: Tensor | None = None
        self.norm = self.snapshot_norm = 0.0

    @property
    def dtype(self) -> torch.dtype:
        return self._dtype

    @property
    def shape(self) -> tuple[int, int]:
        return self.store.shape

    @property
    def data(self) -> Tensor:
        return self.store.data

    @property
    def nbytes(self) -> int:
        return self.data.numel() * self.data.element_size()

    def assign(self, rows: Tensor, norm: float) -> None:
        """Take over ``rows`` as all rows; float32 in memory is not even copied."""
        self.valid = None
        self.norm = self.snapshot_norm = norm
        if self._folder is None:
            self.store = DenseRows(rows.detach().to(self._dtype))
            return
        self._make_room(*rows.shape)
        self.data.copy_(rows.detach())

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

    def validate(self, ids: Tensor, fresh_norm: float) -> None:
        """Rows ``ids`` are known from now on.

        Those that the snapshot did not cover have drifted from nothing: their squared norm
        ``fresh_norm`` counts now and at the snapshot.
        """
        assert self.valid is not None
        self.valid[ids.long()] = True
        self.norm += fresh_norm
        self.snapshot_norm += fresh_norm

    def lazy(self, ids: Tensor) -> LazyRows:
        """The rows ``ids``, for a product that reads them where they are."""
        return LazyRows(self.store, self._index(ids))

    def _index(self, ids: Tensor) -> Tensor:
        return ids if self.index_of is None else self.index_of.index_select(0, ids)

    def _make_room(self, rows: int, columns: int) -> None:
        if self.shape != (rows, columns):
            self.store = allocate(rows, columns, self._dtype, self._folder)
