"""Twins of `kernels/describe.py`."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from twins.csr import rows_of
from twins.random import MASK, bits
from twins.words import Array, int32


def components(indptr: Array, indices: Array) -> Array:
    rows = rows_of(indptr, indices)
    joined = np.eye(len(rows), dtype=bool)
    for i, row in enumerate(rows):
        joined[i, row] = joined[row, i] = True
    for k in range(len(rows)):  # Warshall: paths through the nodes up to k
        joined |= joined[:, [k]] & joined[[k]]
    return int32(joined.argmax(1).tolist())


def same_classes(indptr: Array, indices: Array, y: Array) -> tuple[Array, Array]:
    known = [[y[j] for j in row if min(y[i], y[j]) >= 0] for i, row in _numbered(indptr, indices)]
    same = [classes.count(y[i]) for i, classes in enumerate(known)]
    return np.array(same, np.int64), np.array([len(classes) for classes in known], np.int64)


def shared_labels(indptr: Array, indices: Array, y: Array) -> tuple[Array, Array]:
    sets = [set(np.flatnonzero(row).tolist()) for row in y]
    pairs = [[(sets[i], sets[j]) for j in row] for i, row in _numbered(indptr, indices)]
    pairs = [[(a, b) for a, b in row if a | b] for row in pairs]
    total = [sum(len(a & b) / len(a | b) for a, b in row) for row in pairs]
    return np.array(total, np.float64), np.array([len(row) for row in pairs], np.int64)


def _numbered(indptr: Array, indices: Array) -> Iterable[tuple[int, list[int]]]:
    return enumerate(rows_of(indptr, indices))


def row_hashes(indptr: Array, indices: Array, words: Array, sign: int) -> Array:
    table = np.zeros((len(indptr) - 1, int(indices.max(initial=-1)) + 1), words.dtype)
    table[np.repeat(np.arange(len(table)), np.diff(indptr)), indices] = words
    hashes = [
        sum(bits(word, f) for f, word in enumerate(row) if word not in (0, sign)) & MASK
        for row in table.tolist()
    ]
    return np.array(hashes, np.uint64)
