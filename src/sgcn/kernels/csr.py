"""Kernels that turn an edge list into sorted rows without duplicates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.threads import parallel

_BEHIND = np.int32(2**31 - 1)  # all columns


@njit(nogil=True, cache=True)
def count_edges(degrees: Any, rows: Any, cols: Any, both: bool, drop_loops: bool) -> None:
    """Add a part of an edge list to the length of every row."""
    for e in range(len(rows)):
        i, j = rows[e], cols[e]
        if i != j:
            degrees[i] += 1
            degrees[j] += both
        elif not drop_loops:
            degrees[i] += 1


@njit(nogil=True, cache=True)
def place_edges(
    indices: Any, cursor: Any, rows: Any, cols: Any, both: bool, drop_loops: bool
) -> None:
    """Put the columns of a part of an edge list where ``cursor`` says, and move it on."""
    for e in range(len(rows)):
        i, j = rows[e], cols[e]
        if i == j and drop_loops:
            continue
        indices[cursor[i]] = j
        cursor[i] += 1
        if both and i != j:
            indices[cursor[j]] = i
            cursor[j] += 1


@njit(nogil=True, cache=True)
def place_weighted_edges(
    indices: Any, values: Any, cursor: Any, rows: Any, cols: Any, weights: Any
) -> None:
    """`place_edges` with a weight beside each column, without loops."""
    for e in range(len(rows)):
        i = rows[e]
        if i != cols[e]:
            indices[cursor[i]], values[cursor[i]] = cols[e], weights[e]
            cursor[i] += 1


@njit(nogil=True, cache=True)
def scatter_edges(rows: Any, cols: Any, n: int, both: bool, drop_loops: bool) -> Any:
    """Counting sort of the edges by row; with ``both`` every edge also in the other direction."""
    indptr = np.zeros(n + 1, np.int64)
    count_edges(indptr[1:], rows, cols, both, drop_loops)
    for i in range(n):
        indptr[i + 1] += indptr[i]
    indices = np.empty(indptr[n], np.int32)
    place_edges(indices, indptr[:-1].copy(), rows, cols, both, drop_loops)
    return indptr, indices


@njit(nogil=True, cache=True)
def _sort_row(row: Any) -> Any:
    """Sort a row in place and move its distinct entries to the front; their number."""
    ordered = True
    for k in range(1, len(row)):
        if row[k] < row[k - 1]:
            ordered = False
            break
    if not ordered:
        row[:] = np.sort(row)
    m = 0
    for k in range(len(row)):
        if k == 0 or row[k] != row[k - 1]:
            row[m] = row[k]
            m += 1
    return m


@njit(nogil=True, cache=True)
def sort_rows(indptr: Any, indices: Any) -> Any:
    """Sort every row in place and drop duplicates; the kept number of entries of each row."""
    kept = np.zeros(len(indptr) - 1, np.int64)
    for i in range(len(kept)):
        kept[i] = _sort_row(indices[indptr[i] : indptr[i + 1]])
    return kept


@parallel
def sort_many_rows(indptr: Any, indices: Any) -> Any:
    """`sort_rows` on all cores: for graphs whose sorting takes longer than waking them."""
    kept = np.zeros(len(indptr) - 1, np.int64)
    for i in prange(len(kept)):
        kept[i] = _sort_row(indices[indptr[i] : indptr[i + 1]])
    return kept


@njit(nogil=True, cache=True)
def _sort_weighted_row(row: Any, values: Any) -> Any:
    order = np.argsort(row, kind="mergesort")  # stable: sums do not depend on chance
    row[:], values[:] = row[order], values[order]
    m = 0
    k = 0
    while k < len(row):
        j, total = row[k], values[k]
        k += 1
        while k < len(row) and row[k] == j:
            total += values[k]
            k += 1
        if total != 0:
            row[m], values[m] = j, total
            m += 1
    return m


@parallel
def sort_weighted_rows(indptr: Any, indices: Any, values: Any) -> Any:
    """`sort_many_rows` with weights: those of a duplicate add up, and zeros are dropped."""
    kept = np.zeros(len(indptr) - 1, np.int64)
    for i in prange(len(kept)):
        row = slice(indptr[i], indptr[i + 1])
        kept[i] = _sort_weighted_row(indices[row], values[row])
    return kept


@njit(nogil=True, cache=True)
def merge_rows(one: Any, other: Any, merged_indices: Any, merged_values: Any) -> Any:
    """The entries of two matrices with sorted rows, the larger where both have one; pointers."""
    indptr, indices, values = one
    other_indptr, other_indices, other_values = other
    fitted = np.zeros_like(indptr)
    out = 0
    for i in range(len(indptr) - 1):
        a, b = indptr[i], other_indptr[i]
        while a < indptr[i + 1] or b < other_indptr[i + 1]:
            j = indices[a] if a < indptr[i + 1] else _BEHIND
            k = other_indices[b] if b < other_indptr[i + 1] else _BEHIND
            value = values[a] if j <= k else other_values[b]
            if j == k:
                value = max(value, other_values[b])
            merged_indices[out], merged_values[out] = min(j, k), value
            a += j <= k
            b += k <= j
            out += 1
        fitted[i + 1] = out
    return fitted


@njit(nogil=True, cache=True)
def compact_rows(indptr: Any, indices: Any, kept: Any) -> Any:
    """Close, in place, the gaps that duplicates left; the new row pointers."""
    out = 0
    fitted = np.empty_like(indptr)
    for i in range(len(kept)):
        start = indptr[i]
        fitted[i] = out
        for k in range(kept[i]):
            indices[out] = indices[start + k]
            out += 1
    fitted[len(kept)] = out
    return fitted


@njit(nogil=True, cache=True)
def weighted_degrees(indptr: Any, values: Any) -> Any:
    """Row sums of A."""
    degrees = np.empty(len(indptr) - 1, np.float64)
    for i in range(len(degrees)):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += values[e]
        degrees[i] = total
    return degrees


@njit(nogil=True, cache=True)
def rows_are_sorted(indptr: Any, indices: Any) -> Any:
    """Whether every row is strictly increasing: sorted and free of duplicates."""
    for i in range(len(indptr) - 1):
        for e in range(indptr[i] + 1, indptr[i + 1]):
            if indices[e] <= indices[e - 1]:
                return False
    return True


@njit(nogil=True, cache=True)
def is_symmetric(indptr: Any, indices: Any) -> Any:
    """Whether sorted rows hold every edge in both directions: one merge-like pass."""
    n = len(indptr) - 1
    cursor = indptr[:-1].copy()
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if cursor[j] == indptr[j + 1] or indices[cursor[j]] != i:
                return False
            cursor[j] += 1
    return True


@njit(nogil=True, cache=True)
def drop_self_loops(indptr: Any, indices: Any, kept: Any) -> Any:
    """All but diagonal entries to ``kept``, which may be ``indices`` itself; the row pointers."""
    fitted = np.empty_like(indptr)
    out = 0
    for i in range(len(indptr) - 1):
        fitted[i] = out
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] != i:
                kept[out] = indices[e]
                out += 1
    fitted[len(indptr) - 1] = out
    return fitted


@njit(nogil=True, cache=True)
def count_self_loops(indptr: Any, indices: Any) -> Any:
    """How many diagonal entries are stored."""
    count = 0
    for i in range(len(indptr) - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == i:
                count += 1
    return count
