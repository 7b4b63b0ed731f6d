"""Twins of `kernels/activations.py`."""

from __future__ import annotations

import numpy as np

from twins.words import Array


def elu(z: Array) -> Array:
    return np.where(z > 0, z, np.expm1(np.minimum(z.astype(np.float64), 0.0)))
