"""Twins of `kernels/csr.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from twins.words import Array, int32, pointers


def rows_of(indptr: Array, indices: Array) -> list[list[int]]:
    return [row.tolist() for row in np.split(indices, indptr[1:-1])]


def csr_of(rows: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    return pointers(map(len, rows)), int32(j for row in rows for j in row)


def scatter_edges(
    rows: Array, cols: Array, n: int, both: bool, drop_loops: bool
) -> tuple[Array, Array]:
    listed: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
        if i != j or not drop_loops:
            listed[i].append(j)
        if i != j and both:
            listed[j].append(i)
    return csr_of(listed)


def sorted_rows(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """What ``sort_rows`` and then ``compact_rows`` make: rows in order, without duplicates."""
    return csr_of([sorted(set(row)) for row in rows_of(indptr, indices)])


def weighted_rows(
    rows: Array, cols: Array, weights: Array, n: int, both: bool, drop_loops: bool
) -> tuple[Array, Array, Array]:
    """`sorted_rows` with weights: repeated edges add up, both directions take the larger."""
    matrix = sp.coo_array((weights, (rows, cols)), shape=(n, n)).tocsr()
    if drop_loops:
        matrix.setdiag(0)
    matrix = matrix.maximum(matrix.T).tocsr() if both else matrix
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


def weighted_degrees(indptr: Array, values: Array) -> Array:
    return np.array([row.sum() for row in np.split(values.astype(np.float64), indptr[1:-1])])


def rows_are_sorted(indptr: Array, indices: Array) -> bool:
    return all(row == sorted(set(row)) for row in rows_of(indptr, indices))


def is_symmetric(indptr: Array, indices: Array) -> bool:
    edges = {(i, j) for i, row in enumerate(rows_of(indptr, indices)) for j in row}
    return edges == {(j, i) for i, j in edges}


def drop_self_loops(indptr: Array, indices: Array) -> tuple[Array, Array]:
    return csr_of([[j for j in row if j != i] for i, row in enumerate(rows_of(indptr, indices))])


def count_self_loops(indptr: Array, indices: Array) -> int:
    return sum(row.count(i) for i, row in enumerate(rows_of(indptr, indices)))
