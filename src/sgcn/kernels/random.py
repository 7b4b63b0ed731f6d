"""Counter-based random numbers inside kernels; see `sgcn.rng` for the streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@njit(inline="always")
def _mix(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * _M1
    z = (z ^ (z >> np.uint64(27))) * _M2
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def bits(stream: Any, counter: Any) -> Any:
    """Number ``counter`` of ``stream``: 64 random bits.

    The stream enters twice, so that two streams which meet at one counter part again at the next.
    """
    z = _mix(np.uint64(counter) * _GOLDEN + stream)
    return _mix(z + stream)


@njit(inline="always")
def uniform(stream: Any, counter: Any) -> Any:
    """Number ``counter`` of ``stream``, uniform on [0, 1) with 53 bits."""
    return np.float64(bits(stream, counter) >> np.uint64(11)) * _TO_UNIT


@njit(nogil=True, cache=True)
def uniforms(n: int, stream: Any) -> Any:
    """Numbers 0..n-1 of ``stream``, uniform on [0, 1)."""
    out = np.empty(n, np.float64)
    for k in range(n):
        out[k] = uniform(stream, k)
    return out


@njit(nogil=True, cache=True)
def permutation(n: int, stream: Any) -> Any:
    """A uniformly random order of 0..n-1 (Fisher-Yates)."""
    order = np.arange(n).astype(np.int32)
    for k in range(n - 1, 0, -1):
        other = np.int64(uniform(stream, k) * (k + 1))
        order[k], order[other] = order[other], order[k]
    return order
