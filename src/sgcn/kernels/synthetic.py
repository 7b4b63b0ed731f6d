"""Kernels of the graph generator; every number depends on its counter alone, not on the thread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from sgcn.kernels.random import bits, uniform
from sgcn.kernels.threads import parallel

_LOW_HALF = np.int64(0xFFFFFFFF)
_NO_EDGE = np.int64(np.iinfo(np.int64).max)  # sorts behind every edge
_SIXTEEN = np.uint64(0xFFFF)


@njit(inline="always")
def _rank(size: Any, u: Any, low: float, high: float, bend: float, root: float) -> Any:
    """A number k below ``size`` with probability ~ (k / size + bend)^-a.

    The law's inverse in closed form, so a draw needs no table.
    """
    rank = np.int64(size * ((low + u * (high - low)) ** root - bend))
    return min(max(rank, 0), size - 1)


@parallel
def draw_edges(
    codes: Any, first: int, stream: Any, order: Any, bounds: Any, homophily: float, bend: float,
    power: float,
) -> None:  # fmt: skip
    """Fill ``codes`` with edges as ``smaller << 32 | larger``, draws ``first`` and on.

    Community c owns the entries ``bounds[c]`` to ``bounds[c + 1]`` of ``order``, its hubs first.
    An edge starts in any community and ends in the same one with chance ``homophily``, otherwise
    in another. A draw that hits one node twice is no edge, and sorts last. ``power`` is 1 - a.
    """
    communities = len(bounds) - 1
    low, high, root = bend**power, (1.0 + bend) ** power, 1.0 / power
    for k in prange(len(codes)):
        counter = 4 * (first + k)
        home = np.int64(uniform(stream, counter) * communities)
        away = home
        u = uniform(stream, counter + 1)
        if u >= homophily and communities > 1:
            away = np.int64((u - homophily) / (1.0 - homophily) * (communities - 1))
            away += away >= home
        u, v = uniform(stream, counter + 2), uniform(stream, counter + 3)
        i = bounds[home] + _rank(bounds[home + 1] - bounds[home], u, low, high, bend, root)
        j = bounds[away] + _rank(bounds[away + 1] - bounds[away], v, low, high, bend, root)
        codes[k] = i << 32 | j
    # Places become nodes in a loop of their own: without powers in between, the processor waits
    # for many scattered reads at once.
    for k in prange(len(codes)):
        i, j = np.int64(order[codes[k] >> 32]), np.int64(order[codes[k] & _LOW_HALF])
        codes[k] = _NO_EDGE if i == j else min(i, j) << 32 | max(i, j)


@njit(nogil=True, cache=True)
def absorb_edges(codes: Any, have: int) -> Any:
    """Merge the sorted tail ``codes[have:]`` into the sorted, distinct head; the new head's length.

    In place but for a copy of what is new in the tail.
    """
    count = have
    at = 0
    for k in range(have, len(codes)):
        code = codes[k]
        if code == _NO_EDGE:
            break
        while at < have and codes[at] < code:
            at += 1
        known = at < have and codes[at] == code
        if not known and (count == have or codes[count - 1] != code):
            codes[count] = code
            count += 1
    if have == 0:
        return count
    fresh = codes[have:count].copy()
    out, left = count - 1, have - 1
    for k in range(len(fresh) - 1, -1, -1):
        while left >= 0 and codes[left] > fresh[k]:
            codes[out] = codes[left]
            out -= 1
            left -= 1
        codes[out] = fresh[k]
        out -= 1
    return count


@parallel
def rows_of_edges(codes: Any, n: int, pieces: int) -> Any:
    """CSR arrays with both directions of sorted, distinct edges, whatever ``pieces`` is.

    Rows come out sorted without sorting them: an edge's smaller end is appended to its larger one
    in rising order, and all of these stand before the edges that the row's node is the smaller of.
    A piece owns a range of rows and reads every edge that may touch it, so no two write to one
    row; ranges are such that all pieces have about as many larger ends.
    """
    indptr = np.zeros(n + 1, np.int64)
    bounds = (n * np.sqrt(np.arange(pieces + 1) / pieces)).astype(np.int64)
    bounds[pieces] = n
    stops = np.searchsorted(codes, bounds << 32)
    for piece in prange(pieces):
        lo, hi = bounds[piece], bounds[piece + 1]
        for k in range(stops[piece + 1]):
            j = codes[k] & _LOW_HALF
            if lo <= j < hi:
                indptr[j + 1] += 1
            if k >= stops[piece]:
                indptr[(codes[k] >> 32) + 1] += 1
    for i in range(n):
        indptr[i + 1] += indptr[i]
    cursor = indptr[:-1].copy()
    indices = np.empty(indptr[n], np.int32)
    for piece in prange(pieces):
        lo, hi = bounds[piece], bounds[piece + 1]
        for k in range(stops[piece + 1]):
            i, j = codes[k] >> 32, codes[k] & _LOW_HALF
            if lo <= j < hi:
                indices[cursor[j]] = i
                cursor[j] += 1
            if k >= stops[piece]:
                indices[cursor[i]] = j
                cursor[i] += 1
    return indptr, indices


@njit(inline="always")
def _bell(stream: Any, counter: Any) -> Any:
    """Mean 0, variance 1, nearly normal: four 16-bit uniforms added.

    Integers and one multiplication, so the same bits on every machine, at the price of one hash.
    """
    b = bits(stream, counter)
    total = np.int64(b & _SIXTEEN) + np.int64((b >> np.uint64(16)) & _SIXTEEN)
    total += np.int64((b >> np.uint64(32)) & _SIXTEEN) + np.int64(b >> np.uint64(48))
    return np.float32(total - 131070) * np.float32(3.0**0.5 / 65536)


@parallel
def noisy_rows(centres: Any, group: Any, scale: float, noise: float, stream: Any) -> Any:
    """Row i is ``scale * centres[group[i]] + noise * bell``."""
    width = centres.shape[1]
    rows = np.empty((len(group), width), np.float32)
    for i in prange(len(group)):
        for f in range(width):
            bell = _bell(stream, i * width + f)
            rows[i, f] = np.float32(scale) * centres[group[i], f] + np.float32(noise) * bell
    return rows
