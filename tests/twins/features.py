"""Twins of `kernels/features.py`."""

from __future__ import annotations

import numpy as np

from twins.words import Array


def add_moments(part: Array, chosen: Array, origin: Array) -> tuple[Array, Array]:
    rows = part[chosen].astype(np.float64) - origin
    return rows.sum(0), (rows * rows).sum(0)


def standardise(part: Array, shift: Array, scale: Array) -> Array:
    rows: Array = (part - shift) * scale
    return rows.astype(np.float32)
