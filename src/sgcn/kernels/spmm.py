"""Sparse times dense, row by row: every output row is summed by one thread in one fixed order, so
the result does not depend on the number of threads.

Rows go to threads in pieces with the same number of edges. Within a piece a stripe of `LANES`
columns is summed at a time, in registers; the last stripe of a width that is no multiple of it
overlaps the one before, and sums those columns again. Tables are contiguous: float32, or 16 bits a
number (see `lanes`), of which sums are float32 all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.csr import turn_rows
from sgcn.kernels.lanes import LANES, add, load, number, scale, store, zeros
from sgcn.kernels.memory import AHEAD, prefetch
from sgcn.kernels.threads import parallel

_PIECES = 32
_LINE = 16  # float32 numbers in a cache line


@njit(nogil=True, cache=True)
def _cut(indptr: Any, rows: int, piece: int) -> int:
    """Where ``piece`` starts, so that all have as many edges (a row counts as one more)."""
    target = indptr[0] + (indptr[rows] - indptr[0] + rows) * piece // _PIECES
    first, last = 0, rows
    while first < last:
        middle = (first + last) // 2
        if indptr[middle] + middle < target:
            first = middle + 1
        else:
            last = middle
    return first


@njit(inline="always")
def _row(ids: Any, place: Any) -> Any:
    return np.int64(place) if ids is None else np.int64(ids[place])


@njit(inline="always")
def _soon(table: Any, at: Any) -> None:
    for line in range(0, LANES, _LINE):
        prefetch(table, at + line)


@parallel
def spmm(indptr: Any, indices: Any, weights: Any, table: Any, ids: Any, out: Any) -> None:
    """out = M table, or M table[ids] if ``ids`` is not None: read in place, never written down."""
    rows, width = out.shape
    source, target = table.reshape(-1), out.reshape(-1)
    last = len(indices) - 1
    for piece in prange(_PIECES):
        lo, hi = _cut(indptr, rows, piece), _cut(indptr, rows, piece + 1)
        if width < LANES:
            for k in range(lo, hi):
                acc = out[k]
                acc[:] = 0.0
                for e in range(indptr[k], indptr[k + 1]):
                    w, at = weights[e], _row(ids, indices[e]) * width
                    for f in range(width):
                        acc[f] += w * number(source, at + f)
            continue
        for k in range(lo, hi):
            for stripe in range(0, width, LANES):
                f = min(stripe, width - LANES)
                total = zeros()
                for e in range(indptr[k], indptr[k + 1]):
                    _soon(source, _row(ids, indices[min(e + AHEAD, last)]) * width + f)
                    row = load(source, _row(ids, indices[e]) * width + f)
                    total = add(total, scale(weights[e], row))
                store(target, k * width + f, total)


@parallel
def propagate(p: Any, h: Any, out: Any) -> None:
    """out = P h for a `Propagation`, which may have fewer rows than columns.

    For each stripe diag(col) h is written down first, N rows of two cache lines: what the edges
    read at random is then small enough to stay in the cache, and scaled already. That does not pay
    for few rows of P; the sums are the same.
    """
    indptr, indices, values, row, col, loops = p
    (nodes, width), rows = h.shape, len(out)
    weighted = len(values) > 0
    source = h.reshape(-1)
    if width < LANES:
        for piece in prange(_PIECES):
            for i in range(_cut(indptr, rows, piece), _cut(indptr, rows, piece + 1)):
                acc = out[i]
                for f in range(width):
                    own = number(source, i * width + f)
                    acc[f] = col[i] * own if loops else np.float32(0.0)
                for e in range(indptr[i], indptr[i + 1]):
                    j = np.int64(indices[e])
                    w = values[e] if weighted else np.float32(1.0)
                    for f in range(width):
                        acc[f] += w * (col[j] * number(source, j * width + f))
                for f in range(width):
                    acc[f] *= row[i]
        return
    target = out.reshape(-1)
    few = indptr[rows] - indptr[0] < nodes
    scaled = np.empty(0 if few else nodes * LANES, np.float32)
    last = len(indices) - 1
    for stripe in range(0, width, LANES):
        f = min(stripe, width - LANES)
        if few:
            for piece in prange(_PIECES):
                for i in range(_cut(indptr, rows, piece), _cut(indptr, rows, piece + 1)):
                    total = zeros()
                    if loops:
                        total = scale(col[i], load(source, i * width + f))
                    for e in range(indptr[i], indptr[i + 1]):
                        j = np.int64(indices[e])
                        term = scale(col[j], load(source, j * width + f))
                        if weighted:
                            term = scale(values[e], term)
                        total = add(total, term)
                    store(target, i * width + f, scale(row[i], total))
            continue
        for piece in prange(_PIECES):
            for i in range(nodes * piece // _PIECES, nodes * (piece + 1) // _PIECES):
                store(scaled, i * LANES, scale(col[i], load(source, i * width + f)))
        for piece in prange(_PIECES):
            for i in range(_cut(indptr, rows, piece), _cut(indptr, rows, piece + 1)):
                total = zeros()
                if loops:
                    total = load(scaled, i * LANES)
                for e in range(indptr[i], indptr[i + 1]):
                    _soon(scaled, np.int64(indices[min(e + AHEAD, last)]) * LANES)
                    term = load(scaled, np.int64(indices[e]) * LANES)
                    if weighted:
                        term = scale(values[e], term)
                    total = add(total, term)
                store(target, i * width + f, scale(row[i], total))


@njit(nogil=True, cache=True)
def take_rows(indptr: Any, indices: Any, values: Any, loops: bool, rows: Any) -> Any:
    """CSR arrays of (A + I)[rows, :], own entries first in their rows."""
    own = 1 if loops else 0
    out_ptr = np.zeros(len(rows) + 1, np.int64)
    for k in range(len(rows)):
        out_ptr[k + 1] = out_ptr[k] + indptr[rows[k] + 1] - indptr[rows[k]] + own
    out_idx = np.empty(out_ptr[-1], np.int32)
    out_val = np.ones(out_ptr[-1] if len(values) > 0 else 0, np.float32)
    for k in range(len(rows)):
        lo, hi, out = indptr[rows[k]], indptr[rows[k] + 1], out_ptr[k]
        if loops:
            out_idx[out] = rows[k]
        for e in range(lo, hi):
            out_idx[out + own + e - lo] = indices[e]
            if len(values) > 0:
                out_val[out + own + e - lo] = values[e]
    return out_ptr, out_idx, out_val


@njit(nogil=True, cache=True)
def transpose(indptr: Any, indices: Any, weights: Any, columns: int) -> Any:
    """CSR arrays of M^T (counting sort by column)."""
    turned = np.zeros(columns + 1, np.int64)
    for j in indices:
        turned[j + 1] += 1
    for j in range(columns):
        turned[j + 1] += turned[j]
    rows = np.empty(len(indices), np.int32)
    values = np.empty(len(weights), np.float32)
    turn_rows(indptr, indices, weights, turned[:-1].copy(), rows, values)
    return turned, rows, values


@parallel
def sparse_rows_times(indptr: Any, indices: Any, data: Any, ids: Any, w: Any, out: Any) -> None:
    """out = X[ids] w for sparse feature rows X."""
    width = out.shape[1]
    striped = width - width % LANES
    source, target = w.reshape(-1), out.reshape(-1)
    for k in prange(len(ids)):
        lo, hi = indptr[ids[k]], indptr[ids[k] + 1]
        for f in range(0, striped, LANES):
            total = zeros()
            for e in range(lo, hi):
                row = load(source, np.int64(indices[e]) * width + f)
                total = add(total, scale(data[e], row))
            store(target, k * width + f, total)
        rest = out[k, striped:]
        rest[:] = 0.0
        for e in range(lo, hi):
            for f in range(len(rest)):
                rest[f] += data[e] * w[indices[e], striped + f]


@parallel
def sparse_rows_times_transposed(
    indptr: Any, indices: Any, data: Any, ids: Any, g: Any, out: Any
) -> None:
    """out = X[ids]^T g; threads split the columns of g, so that no two write to one place."""
    width = g.shape[1]
    stripes = width // LANES
    source, target = g.reshape(-1), out.reshape(-1)
    out[:] = 0.0
    for stripe in prange(stripes + 1):
        first = stripe * LANES
        for k in range(len(ids)):
            lo, hi = indptr[ids[k]], indptr[ids[k] + 1]
            if stripe < stripes:
                row = load(source, k * width + first)
                for e in range(lo, hi):
                    at = np.int64(indices[e]) * width + first
                    store(target, at, add(load(target, at), scale(data[e], row)))
            else:
                for e in range(lo, hi):
                    for f in range(first, width):
                        out[indices[e], f] += data[e] * g[k, f]


@njit(nogil=True, cache=True)
def sparse_rows_dense(indptr: Any, indices: Any, data: Any, ids: Any, out: Any) -> None:
    """out = X[ids] written out."""
    out[:] = 0.0
    for k in range(len(ids)):
        for e in range(indptr[ids[k]], indptr[ids[k] + 1]):
            out[k, indices[e]] += data[e]


@njit(nogil=True, cache=True)
def edge_weights(p: Any) -> Any:
    """CSR arrays of P with its values written out, own entries first in their rows."""
    every = np.arange(len(p.row))
    indptr, indices, values = take_rows(p.indptr, p.indices, p.values, p.loops, every)
    weights = values if len(values) > 0 else np.ones(len(indices), np.float32)
    for i in every:
        for e in range(indptr[i], indptr[i + 1]):
            weights[e] *= p.row[i] * p.col[indices[e]]
    return indptr, indices, weights
