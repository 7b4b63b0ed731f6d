"""Twins of `kernels/synthetic.py`."""

from __future__ import annotations

import numpy as np

from twins.csr import csr_of
from twins.random import bits, uniform
from twins.words import Array


def draw_edges(
    codes: Array,
    first: int,
    stream: int,
    order: Array,
    bounds: Array,
    homophily: float,
    bend: float,
    power: float,
) -> Array:
    """The codes, in the place of those that came."""
    communities = len(bounds) - 1
    low, high = bend**power, (1 + bend) ** power

    def node(community: int, u: float) -> int:
        start, stop = bounds[community], bounds[community + 1]
        rank = int((stop - start) * ((low + u * (high - low)) ** (1 / power) - bend))
        return int(order[start + min(max(rank, 0), stop - start - 1)])

    made = []
    for k in range(first, first + len(codes)):
        a, b, c, d = (uniform(stream, 4 * k + part) for part in range(4))
        home = away = int(a * communities)
        if b >= homophily and communities > 1:
            others = [other for other in range(communities) if other != home]
            away = others[int((b - homophily) / (1 - homophily) * (communities - 1))]
        i, j = sorted((node(home, c), node(away, d)))
        made.append(np.iinfo(np.int64).max if i == j else i << 32 | j)
    return np.array(made, np.int64)


def absorb_edges(codes: Array, have: int) -> Array:
    """The distinct edges."""
    edges = set(codes.tolist()) - {np.iinfo(np.int64).max}
    return np.array(sorted(edges), np.int64)


def rows_of_edges(codes: Array, n: int, pieces: int) -> tuple[Array, Array]:
    rows: list[list[int]] = [[] for _ in range(n)]
    for code in codes.tolist():
        rows[code >> 32].append(code & 0xFFFFFFFF)
        rows[code & 0xFFFFFFFF].append(code >> 32)
    return csr_of([sorted(row) for row in rows])


def noisy_rows(centres: Array, group: Array, scale: float, noise: float, stream: int) -> Array:
    width = centres.shape[1]

    def bell(counter: int) -> float:
        word = bits(stream, counter)
        parts = [word >> shift & 0xFFFF for shift in (0, 16, 32, 48)]
        return float((sum(parts) - 131070) * 3**0.5 / 65536)

    bells = [[bell(i * width + f) for f in range(width)] for i in range(len(group))]
    noises = noise * np.array(bells, np.float64).reshape(len(group), width)
    rows: Array = (scale * centres[group].astype(np.float64) + noises).astype(np.float32)
    return rows
