"""Curves short enough to draw: a million steps become some thousand points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

#: Points of a drawn line: more than a screen has columns, twice.
POINTS = 2000

Floats = npt.NDArray[np.float64]


def thin(values: Floats, points: int = POINTS) -> npt.NDArray[np.int64]:
    """Indices of at most ``points`` values, in order, that keep every spike.

    Both ends stay, and of each bucket of neighbours the least and the greatest.
    """
    n = len(values)
    if n <= points:
        return np.arange(n)
    edges = np.linspace(0, n, points // 2).astype(np.int64)  # a bucket less: room for both ends
    missing = np.isnan(values)
    low, high = np.where(missing, np.inf, values), np.where(missing, -np.inf, values)
    kept = [0, n - 1]
    for start, stop in pairwise(edges):
        kept.append(start + int(low[start:stop].argmin()))
        kept.append(start + int(high[start:stop].argmax()))
    return np.unique(kept)
