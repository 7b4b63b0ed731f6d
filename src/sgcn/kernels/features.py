"""Kernels that standardise rows of features as they pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.threads import parallel


@njit(nogil=True, cache=True)
def add_moments(part: Any, chosen: Any, origin: Any, total: Any, squares: Any) -> None:
    """Add the chosen rows' differences from ``origin``, and their squares, to the sums."""
    for k in range(len(chosen)):
        row = part[chosen[k]]
        for f in range(len(row)):
            difference = row[f] - origin[f]
            total[f] += difference
            squares[f] += difference * difference


@parallel
def standardise(part: Any, shift: Any, scale: Any, out: Any) -> None:
    """out = (part - shift) * scale, rounded to float32 once."""
    for i in prange(len(part)):
        row, made = part[i], out[i]
        for f in range(len(row)):
            made[f] = np.float32((row[f] - shift[f]) * scale[f])
