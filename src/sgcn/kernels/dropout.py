"""Dropout as a function of a stream: nothing is kept, and every pass of a step drops the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.random import bits, uniform
from sgcn.kernels.threads import parallel

_PIECE = 1 << 14  # numbers that a thread takes at a time


@parallel
def drop(values: Any, stream: Any, share: Any, out: Any) -> None:
    """out = values, each with chance ``share`` set to 0 and else divided by its chance to stay.

    Chances are multiples of 2^-16: a random number decides on four values, by 16 of its bits each.
    """
    source, target = values.reshape(-1), out.reshape(-1)
    limit = min(int(share * 65536.0 + 0.5), 65535)
    scale = np.float32(65536.0 / (65536.0 - limit))
    for piece in prange((len(source) + _PIECE - 1) // _PIECE):
        lo, hi = piece * _PIECE, min((piece + 1) * _PIECE, len(source))
        words = np.empty((hi - lo + 3) // 4, np.uint64)
        for k in range(len(words)):
            words[k] = bits(stream, lo // 4 + k)
        parts, old, new = words.view(np.uint16), source[lo:hi], target[lo:hi]
        for k in range(len(old)):
            new[k] = old[k] * scale if parts[k] >= limit else np.float32(0.0)


@njit(nogil=True, cache=True)
def drop_entries(indptr: Any, indices: Any, data: Any, ids: Any, stream: Any, share: Any) -> Any:
    """CSR arrays of X[ids] with entries left out; number e belongs to entry e of X."""
    scale = np.float32(1.0 / (1.0 - share))
    out_ptr = np.zeros(len(ids) + 1, np.int64)
    for k in range(len(ids)):
        out_ptr[k + 1] = out_ptr[k] + indptr[ids[k] + 1] - indptr[ids[k]]
    out_idx, out_val = np.empty(out_ptr[-1], np.int32), np.empty(out_ptr[-1], np.float32)
    out = 0
    for k in range(len(ids)):
        for e in range(indptr[ids[k]], indptr[ids[k] + 1]):
            if uniform(stream, e) >= share:
                out_idx[out], out_val[out] = indices[e], data[e] * scale
                out += 1
        out_ptr[k + 1] = out
    return out_ptr, out_idx[:out], out_val[:out]
