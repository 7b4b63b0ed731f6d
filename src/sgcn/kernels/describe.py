"""Kernels that look over a whole graph once: components, labels along edges, equal rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.random import bits
from sgcn.kernels.threads import parallel


@njit(inline="always")
def _root(parent: Any, i: Any) -> Any:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(nogil=True, cache=True)
def components(indptr: Any, indices: Any) -> Any:
    """For every node the smallest node that it is joined to, whatever way the edges point."""
    n = len(indptr) - 1
    parent = np.arange(n).astype(np.int32)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            a, b = _root(parent, i), _root(parent, indices[e])
            if a < b:
                parent[b] = a
            else:
                parent[a] = b
    for i in range(n):  # a parent is never larger than its child: one pass flattens the trees
        parent[i] = parent[parent[i]]
    return parent


@parallel
def same_classes(indptr: Any, indices: Any, y: Any) -> Any:
    """For every row, how many edges join two nodes of one class (>= 0), and how many have a class
    at both ends."""
    n = len(indptr) - 1
    same = np.zeros(n, np.int64)
    both = np.zeros(n, np.int64)
    for i in prange(n):
        if y[i] >= 0:
            for e in range(indptr[i], indptr[i + 1]):
                both[i] += y[indices[e]] >= 0
                same[i] += y[indices[e]] == y[i]
    return same, both


@parallel
def shared_labels(indptr: Any, indices: Any, y: Any) -> Any:
    """For every row, the sum over its edges of |A & B| / |A | B| for the label sets A and B of the
    ends, and the number of edges where there is a label at all."""
    n = len(indptr) - 1
    total = np.zeros(n, np.float64)
    count = np.zeros(n, np.int64)
    for i in prange(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            both = 0
            either = 0
            for c in range(y.shape[1]):
                both += (y[i, c] != 0) & (y[j, c] != 0)
                either += (y[i, c] != 0) | (y[j, c] != 0)
            if either > 0:
                total[i] += both / either
                count[i] += 1
    return total, count


@parallel
def row_hashes(indptr: Any, indices: Any, words: Any, sign: Any) -> Any:
    """A 64-bit hash of every row of a CSR matrix, 0 for a row of zeros; ``words`` are the bits of
    its values.

    The sum over what is not zero, so that it does not matter which zeros are stored. ``sign`` is
    the bit that makes a zero negative.
    """
    hashes = np.zeros(len(indptr) - 1, np.uint64)
    for i in prange(len(hashes)):
        total = np.uint64(0)
        for e in range(indptr[i], indptr[i + 1]):
            word = np.uint64(words[e])
            if word != np.uint64(0) and word != sign:
                total += bits(word, indices[e])
        hashes[i] = total
    return hashes
