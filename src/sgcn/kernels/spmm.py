"""Sparse times dense, row by row: every output row is summed by one thread in one fixed order, so
the result does not depend on the number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange


@njit(nogil=True, cache=True, parallel=True)
def spmm(indptr: Any, indices: Any, weights: Any, h: Any, out: Any) -> None:
    """out = M h."""
    for k in prange(len(indptr) - 1):
        acc = out[k]
        acc[:] = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            w = weights[e]
            row = h[indices[e]]
            for f in range(len(acc)):
                acc[f] += w * row[f]


@njit(nogil=True, cache=True, parallel=True)
def spmm_gather(indptr: Any, indices: Any, weights: Any, ids: Any, table: Any, out: Any) -> None:
    """out = M table[ids], reading the table in place: the gathered rows are never written down."""
    for k in prange(len(indptr) - 1):
        acc = out[k]
        acc[:] = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            w = weights[e]
            row = table[ids[indices[e]]]
            for f in range(len(acc)):
                acc[f] += w * row[f]


@njit(nogil=True, cache=True, parallel=True)
def propagate(
    indptr: Any,
    indices: Any,
    values: Any,
    row: Any,
    col: Any,
    loops: bool,
    lo: int,
    h: Any,
    out: Any,
) -> None:
    """out = P[lo : lo + len(out), :] h with P = diag(row) (A + I) diag(col)."""
    weighted = len(values) > 0
    for k in prange(len(out)):
        i = lo + k
        acc = out[k]
        own = row[i] * col[i] if loops else np.float32(0.0)
        start = h[i]
        for f in range(len(acc)):
            acc[f] = own * start[f]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            w = row[i] * col[j]
            if weighted:
                w *= values[e]
            source = h[j]
            for f in range(len(acc)):
                acc[f] += w * source[f]


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
    cursor = turned[:-1].copy()
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            place = cursor[indices[e]]
            cursor[indices[e]] += 1
            rows[place] = k
            if len(weights) > 0:
                values[place] = weights[e]
    return turned, rows, values


@njit(nogil=True, cache=True, parallel=True)
def sparse_rows_times(indptr: Any, indices: Any, data: Any, ids: Any, w: Any, out: Any) -> None:
    """out = X[ids] w for sparse feature rows X."""
    for k in prange(len(ids)):
        acc = out[k]
        acc[:] = 0.0
        i = ids[k]
        for e in range(indptr[i], indptr[i + 1]):
            value = data[e]
            row = w[indices[e]]
            for f in range(len(acc)):
                acc[f] += value * row[f]


@njit(nogil=True, cache=True, parallel=True)
def sparse_rows_times_transposed(
    indptr: Any, indices: Any, data: Any, ids: Any, g: Any, out: Any, pieces: int
) -> None:
    """out = X[ids]^T g; threads split the columns of g, so that no two write to one place."""
    width = g.shape[1]
    out[:] = 0.0
    for piece in prange(pieces):
        lo, hi = piece * width // pieces, (piece + 1) * width // pieces
        for k in range(len(ids)):
            i = ids[k]
            row = g[k]
            for e in range(indptr[i], indptr[i + 1]):
                value = data[e]
                acc = out[indices[e]]
                for f in range(lo, hi):
                    acc[f] += value * row[f]


@njit(nogil=True, cache=True)
def sparse_rows_dense(indptr: Any, indices: Any, data: Any, ids: Any, out: Any) -> None:
    """out = X[ids] written out."""
    out[:] = 0.0
    for k in range(len(ids)):
        for e in range(indptr[ids[k]], indptr[ids[k] + 1]):
            out[k, indices[e]] += data[e]


@njit(nogil=True, cache=True)
def edge_weights(indptr: Any, indices: Any, values: Any, row: Any, col: Any, loops: bool) -> Any:
    """CSR arrays of P with its values written out, own entries first in their rows."""
    n = len(row)
    extra = 1 if loops else 0
    out_ptr = np.empty(n + 1, np.int64)
    out_idx = np.empty(len(indices) + extra * n, np.int32)
    out_val = np.empty(len(out_idx), np.float32)
    out = 0
    for i in range(n):
        out_ptr[i] = out
        if loops:
            out_idx[out] = i
            out_val[out] = row[i] * col[i]
            out += 1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            out_idx[out] = j
            out_val[out] = row[i] * col[j] * (values[e] if len(values) > 0 else np.float32(1.0))
            out += 1
    out_ptr[n] = out
    return out_ptr, out_idx, out_val
