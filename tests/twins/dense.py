"""Twins of `kernels/dense.py`."""

from __future__ import annotations

import numpy as np

from twins.words import Array


def product(a: Array, ids: Array | None, a_turned: bool, b: Array, b_turned: bool) -> Array:
    left = (a if ids is None else a[ids]).astype(np.float64)
    right = b.astype(np.float64)
    return (left.T if a_turned else left) @ (right.T if b_turned else right)
