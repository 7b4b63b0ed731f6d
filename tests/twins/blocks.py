"""Twins of `kernels/blocks.py`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sgcn.kernels import Propagation
from twins.random import below, uniform
from twins.words import (
    Array,
    Ints,
    dense,
    distinct,
    entries_of,
    float32,
    int32,
    neighbours,
    pointers,
)


def unique_counts(nodes: Ints) -> tuple[Array, Array]:
    listed = [int(j) for j in nodes]
    found = distinct(listed)
    return int32(found), int32(listed.count(j) for j in found)


def _block(
    rows: Ints, kept: Sequence[list[tuple[int, float]]]
) -> tuple[Array, Array, Array, Array]:
    """CSR arrays of rows of (global id, weight): rows are the first sources, then the new ids."""
    entries = [entry for row in kept for entry in row]
    src = distinct([*rows, *(j for j, _ in entries)])
    place = {j: k for k, j in enumerate(src)}
    return (
        pointers(len(row) for row in kept),
        int32(place[j] for j, _ in entries),
        float32(weight for _, weight in entries),
        int32(src),
    )


def neighbor_block(
    p: Propagation, rows: Array, size: int, stream: int
) -> tuple[Array, Array, Array, Array]:
    P = dense(p)
    kept: list[list[tuple[int, float]]] = []
    for i in rows:
        cols = [j for j, _ in neighbours(p, i)]
        row = [(int(i), P[i, i])] * p.loops
        if len(cols) <= size:
            row += [(j, P[i, j]) for j in cols]
        else:
            counter = sum(map(len, kept)) + len(row)
            picks = _floyd(len(cols), size, stream, counter)
            row += [(cols[k], P[i, cols[k]] * len(cols) / size) for k in picks]
        kept.append(row)
    return _block(rows, kept)


def row_pointers(p: Propagation, rows: Array) -> Array:
    return exact_block(p, rows)[0]


def exact_block(p: Propagation, rows: Array) -> tuple[Array, Array, Array, Array]:
    return neighbor_block(p, rows, len(p.row), 0)


def _floyd(n: int, size: int, stream: int, counter: int) -> list[int]:
    """``size`` distinct numbers below n (Floyd's algorithm)."""
    picks: list[int] = []
    for k, last in enumerate(range(n - size, n)):
        pick = below(stream, counter + k, last + 1)
        picks.append(last if pick in picks else pick)
    return picks


def labor_block(
    p: Propagation, rows: Array, size: int, stream: int
) -> tuple[Array, Array, Array, Array]:
    P = dense(p)
    kept: list[list[tuple[int, float]]] = []
    for i in rows:
        cols = [j for j, _ in neighbours(p, i)]
        chance = min(1.0, size / max(len(cols), 1))
        row = [(int(i), P[i, i])] * p.loops
        row += [(j, P[i, j] / chance) for j in cols if uniform(stream, j) < chance]
        kept.append(row)
    return _block(rows, kept)


def restricted_block(
    p: Propagation, rows: Array, src: Array, factor: Array
) -> tuple[Array, Array, Array, Array]:
    P = dense(p)
    place = {int(j): k for k, j in enumerate(src)}
    kept = [[(i, j) for j, _ in entries_of(p, i) if j in place] for i in rows]
    entries = [entry for row in kept for entry in row]
    return (
        pointers(map(len, kept)),
        int32(place[j] for _, j in entries),
        float32(P[i, j] * float(factor[place[j]]) for i, j in entries),
        int32(place.get(int(i), -1) for i in rows),
    )


def _with_draws(
    head: Ints, drawn: Sequence[int], draws: int, law: dict[int, float]
) -> tuple[Array, Array]:
    """Sources [head, distinct drawn] with factors 1 and count / (draws p); ``law`` is any scale."""
    total = sum(law.values())
    first, found = distinct(head), distinct(drawn)
    factor = [drawn.count(j) * total / (draws * law[j]) for j in found]
    return int32(first + found), float32([1.0] * len(first) + factor)


def _draws(law: dict[int, float], size: int, stream: int, stratified: bool = False) -> list[int]:
    """``size`` draws by inversion of the summed law: independent, or one in each of equal parts."""
    nodes = [j for j, mass in law.items() if mass > 0]
    if not nodes:
        return []
    cumulative = np.cumsum([law[j] for j in nodes])
    points = np.array([uniform(stream, d) for d in range(size)])
    points = (np.arange(size) + points) / size if stratified else points
    points = points * cumulative[-1]
    places = np.searchsorted(cumulative, points, side="right")
    return [nodes[min(k, len(nodes) - 1)] for k in places]


def square_sums(p: Propagation) -> tuple[Array, Array]:
    squares = [
        [(value * float(p.col[j])) ** 2 for j, value in neighbours(p, i)] for i in range(len(p.row))
    ]
    return np.array([sum(row) for row in squares]), np.array(
        [max(row, default=0.0) for row in squares]
    )


def ladies_draws(
    p: Propagation, rows: Array, size: int, keep: bool, stratified: bool, stream: int
) -> tuple[Array, Array, float]:
    entries = [
        [(j, (value * float(p.col[j])) ** 2) for j, value in neighbours(p, i)]
        + [(int(i), float(p.col[i]) ** 2)] * (p.loops and not keep)
        for i in rows
    ]
    scale = [float(p.row[i]) ** 2 for i in rows]
    sums = [r * sum(s for _, s in row) for r, row in zip(scale, entries, strict=True)]
    total = sum(sums)
    head = rows.tolist() if keep else []
    counts = dict.fromkeys(head, 0)
    counters, repeats = itertools.count(), 0
    while total > 0 and sum(counts.values()) < size:
        u = uniform(stream, next(counters))
        tries = sum(counts.values()) + repeats
        point = ((tries + u) / size if stratified and tries < size else u) * total
        at = int(np.searchsorted(np.cumsum(sums), point, side="right"))
        row = entries[min(at, len(rows) - 1)]
        peak = max(s for _, s in row)
        while True:  # a uniform entry, kept with chance (its square) / (the largest)
            slot, part = divmod(uniform(stream, next(counters)) * len(row), 1.0)
            j, square = row[int(slot)]
            if part * peak < square:
                break
        if j not in head:
            counts[j] = counts.get(j, 0) + 1
            continue
        repeats += 1
        if repeats == 3 * size + 64:
            total = -1.0
    return int32(counts), int32(counts.values()), total


def weigh_draws(
    indptr: Array,
    indices: Array,
    weights: Array,
    counts: Array,
    draws: int,
    total: float,
    loops: bool,
) -> Array:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    squares = weights.astype(np.float64) ** 2
    if loops:  # the diagonal of kept columns is not in the total
        squares[(rows == indices) & (counts[indices] == 0)] = 0.0
    mass = np.bincount(indices, squares, len(counts))
    total = max(total - mass[counts == 0].sum(), mass[counts > 0].sum())
    factor = np.ones(len(counts))
    factor[counts > 0] = counts[counts > 0] * total / (draws * mass[counts > 0])
    return (weights * factor[indices]).astype(np.float32)


def ladies_sources(
    p: Propagation, rows: Array, size: int, keep: bool, stratified: bool, stream: int
) -> tuple[Array, Array]:
    mass: dict[int, float] = {}  # in the order in which the rows' entries meet the nodes
    for i in rows:
        for j, value in entries_of(p, i):
            mass[j] = mass.get(j, 0.0) + float(p.row[i]) ** 2 * value * value
    head = rows.tolist() if keep else []
    law = {j: m * float(p.col[j]) * float(p.col[j]) for j, m in mass.items() if j not in head}
    return _with_draws(head, _draws(law, size, stream, stratified), size, law)


def alias_table(law: Array) -> tuple[Array, Array]:
    """Nodes with less than the mean share get the rest of their slot from one with more."""
    threshold = law * len(law)
    alias = np.arange(len(law), dtype=np.int32)
    poor = [k for k in range(len(law)) if threshold[k] < 1]
    rich = [k for k in range(len(law)) if threshold[k] >= 1]
    while poor and rich:
        low, high = poor.pop(), rich[-1]
        alias[low] = high
        threshold[high] -= 1 - threshold[low]
        if threshold[high] < 1:
            poor.append(rich.pop())
    threshold[poor + rich] = 1
    return threshold, alias


def law_sources(
    law: Array, threshold: Array, alias: Array, head: Array, size: int, stream: int
) -> tuple[Array, Array]:
    kept = set(head.tolist())
    others = {j: float(mass) for j, mass in enumerate(law) if j not in kept}
    # One by one, as the kernel subtracts: where 0.2 is left, rounding decides between the two ways.
    if np.subtract.accumulate([1.0, *law[head]])[-1] <= 0.2:
        return _with_draws(head, _draws(others, size, stream), size, others)
    drawn: list[int] = []
    counter = 0
    while len(drawn) < size:  # draws that fall on the head are repeated
        slot, part = divmod(uniform(stream, counter) * len(law), 1.0)
        j = int(slot) if part < threshold[int(slot)] else int(alias[int(slot)])
        if j not in kept:
            drawn.append(j)
        counter += 1
    return _with_draws(head, drawn, size, others)


def rescale_rows(indptr: Array, weights: Array, rows: Array, target: Array) -> Array:
    scaled = weights.astype(np.float64)
    for k, (start, stop) in enumerate(pairwise(indptr)):
        if scaled[start:stop].sum() > 0:
            scaled[start:stop] *= target[rows[k]] / scaled[start:stop].sum()
    return scaled.astype(np.float32)


def row_sums(p: Propagation) -> Array:
    return np.asarray(dense(p).sum(axis=1), np.float32)


def column_law(p: Propagation) -> Array:
    squares = (dense(p) ** 2).sum(axis=0)
    if squares.sum() == 0:
        return np.full(len(squares), 1 / len(squares))
    law: Array = squares / squares.sum()
    return law
