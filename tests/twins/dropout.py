"""Twins of `kernels/dropout.py`."""

from __future__ import annotations

import numpy as np

from twins.random import bits, uniform
from twins.words import Array, int32


def drop(values: Array, stream: int, share: float) -> Array:
    """16 bits of a random number decide on each value."""
    limit = min(round(share * 65536), 65535)
    flat = values.ravel()
    kept = [bits(stream, k // 4) >> 16 * (k % 4) & 0xFFFF >= limit for k in range(len(flat))]
    out = np.where(kept, flat * np.float32(65536 / (65536 - limit)), np.float32(0.0))
    return out.reshape(values.shape)


def drop_entries(
    indptr: Array, indices: Array, data: Array, ids: Array, stream: int, share: float
) -> tuple[Array, Array, Array]:
    entries = [np.arange(indptr[i], indptr[i + 1]) for i in ids]
    kept = [[e for e in row if uniform(stream, int(e)) >= share] for row in entries]
    chosen = int32([e for row in kept for e in row])
    out_ptr = np.cumsum([0, *map(len, kept)])
    return out_ptr, indices[chosen], data[chosen] * np.float32(1.0 / (1.0 - share))
