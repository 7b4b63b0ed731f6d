"""What the twins share: arrays of the kernels' types, and the rows of P."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.kernels import Propagation

Array = npt.NDArray[Any]
Ints = Iterable[int]


def int32(values: Ints) -> Array:
    return np.array(list(values), np.int32)


def float32(values: Iterable[float]) -> Array:
    return np.array(list(values), np.float32)


def pointers(lengths: Ints) -> Array:
    return np.cumsum([0, *lengths], dtype=np.int64)


def distinct(nodes: Ints) -> list[int]:
    """In order of first appearance."""
    return list(dict.fromkeys(int(j) for j in nodes))


def neighbours(p: Propagation, i: int) -> list[tuple[int, float]]:
    """The stored entries (j, A_ij) of row i."""
    span = slice(p.indptr[i], p.indptr[i + 1])
    cols = p.indices[span].tolist()
    values = p.values[span].tolist() if len(p.values) else [1.0] * len(cols)
    return list(zip(cols, values, strict=True))


def entries_of(p: Propagation, i: int) -> list[tuple[int, float]]:
    """The entries (j, (A + I)_ij) of row i, its own first."""
    return [(int(i), 1.0)] * p.loops + neighbours(p, i)


def dense(p: Propagation) -> npt.NDArray[np.float64]:
    """P as a full matrix."""
    matrix = np.zeros((len(p.row), len(p.row)))
    for i in range(len(matrix)):
        for j, value in entries_of(p, i):
            matrix[i, j] = float(p.row[i]) * value * float(p.col[j])
    return matrix
