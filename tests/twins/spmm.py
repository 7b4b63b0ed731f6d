"""Twins of `kernels/spmm.py`.

In float32 and in the order of the edges, each operation rounded by itself: equal to the bit.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sgcn.kernels import Propagation
from twins.words import Array


def spmm(indptr: Array, indices: Array, weights: Array, h: Array) -> Array:
    out = np.zeros((len(indptr) - 1, h.shape[1]), np.float32)
    for k, (start, stop) in enumerate(pairwise(indptr.tolist())):
        for e in range(start, stop):
            out[k] += weights[e] * h[indices[e]]
    return out


def propagate(p: Propagation, h: Array) -> Array:
    scaled = p.col[:, None] * h
    out = np.zeros((len(p.row), h.shape[1]), np.float32)
    for i in range(len(out)):
        if p.loops:
            out[i] = scaled[i]
        for e in range(p.indptr[i], p.indptr[i + 1]):
            term = scaled[p.indices[e]]
            out[i] += p.values[e] * term if len(p.values) else term
        out[i] *= p.row[i]
    return out
