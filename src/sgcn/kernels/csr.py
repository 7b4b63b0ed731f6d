"""Edge lists become sorted rows without duplicates (`sorted_rows`), and the kernels of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.threads import parallel

#: Edges as (row, column, weight), some at a time, as often as they are wanted; or no weights.
Parts = Callable[[], Iterable[tuple[Any, Any, Any]]]
#: Makes an array of a length and a type: in memory, or wherever it is to be.
Empty = Callable[[int, Any], Any]

_BEHIND = np.int32(2**31 - 1)  # all columns
_MANY = 1 << 20  # entries from which sorting on all cores pays


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
    indices: Any, values: Any, cursor: Any, rows: Any, cols: Any, weights: Any, both: bool,
    drop_loops: bool,
) -> None:  # fmt: skip
    """Put columns, and weights if ``values`` has room, where ``cursor`` says, and move it on."""
    weighted = len(values) > 0
    for e in range(len(rows)):
        i, j = rows[e], cols[e]
        if i == j and drop_loops:
            continue
        indices[cursor[i]] = j
        if weighted:
            values[cursor[i]] = weights[e]
        cursor[i] += 1
        if both and i != j:
            indices[cursor[j]] = i
            cursor[j] += 1


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
def turn_rows(
    indptr: Any, indices: Any, weights: Any, cursor: Any, turned_rows: Any, turned_weights: Any
) -> None:
    """Put every entry where ``cursor`` has its column's row of the transpose, and move it on."""
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            place = cursor[indices[e]]
            cursor[indices[e]] += 1
            turned_rows[place] = k
            if len(weights) > 0:
                turned_weights[place] = weights[e]


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


def sorted_rows(
    edges: Parts, n: int, *, both: bool, drop_loops: bool = True, weighted: bool = False,
    empty: Empty = np.empty,
) -> tuple[Any, ...]:  # fmt: skip
    """Row pointers and rising columns; if ``weighted``, weights too, and a repeated edge has a sum.

    With ``both`` every edge counts in the other direction too. Of two weights it then takes the
    larger one, so that a matrix which is symmetric already stays as it is.
    """
    alike = both and not weighted  # weights of each direction are added up first
    indptr, indices, values = _unsorted_rows(edges, n, alike, drop_loops, weighted, empty)
    if not weighted:
        kept = (sort_many_rows if len(indices) > _MANY else sort_rows)(indptr, indices)
        return _fitted(compact_rows(indptr, indices, kept), indices)
    kept = sort_weighted_rows(indptr, indices, values)
    compact_rows(indptr, values, kept)
    made = _fitted(compact_rows(indptr, indices, kept), indices, values)
    return _both_ways(made, empty) if both else made


def _unsorted_rows(
    edges: Parts, n: int, both: bool, drop_loops: bool, weighted: bool, empty: Empty
) -> tuple[Any, ...]:
    """Rows of edges in the order in which they come."""
    indptr = np.zeros(n + 1, np.int64)
    for rows, cols, _ in edges():
        count_edges(indptr[1:], rows, cols, both, drop_loops)
    np.cumsum(indptr, out=indptr)
    indices = empty(indptr[-1], np.int32)
    values = empty(indptr[-1] if weighted else 0, np.float32)
    cursor = indptr[:-1].copy()
    for rows, cols, weights in edges():
        place_edges(indices, values, cursor, rows, cols, weights, both, drop_loops)
    return indptr, indices, values


def _both_ways(rows: tuple[Any, ...], empty: Empty) -> tuple[Any, ...]:
    """Sorted rows and those of the other direction together."""
    indptr, indices, values = rows
    turned = np.zeros_like(indptr)
    count_edges(turned[1:], indices, indices, False, False)
    np.cumsum(turned, out=turned)
    back, merged = (
        (empty(length, np.int32), empty(length, np.float32))
        for length in (len(indices), 2 * len(indices))
    )
    turn_rows(indptr, indices, values, turned[:-1].copy(), *back)
    return _fitted(merge_rows(rows, (turned, *back), *merged), *merged)


def _fitted(indptr: Any, *arrays: Any) -> tuple[Any, ...]:
    """Arrays without the room that nothing came for."""
    stored = indptr[-1]
    return indptr, *(array if len(array) == stored else array[:stored] for array in arrays)
