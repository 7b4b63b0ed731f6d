"""Kernels that draw sources and build blocks.

Each takes a `Propagation` and a thread's scratch arrays. ``position`` (int32, all -1 between calls)
maps a node to its place among the sources; a kernel puts back what it touched, so nothing here
costs O(N). Sizes are known before memory is asked for, or a bound is allocated and only the part
in use is ever touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from sgcn.kernels.random import uniform


@njit(nogil=True, cache=True)
def unique_counts(nodes: Any, position: Any) -> Any:
    """The distinct nodes in order of first appearance, and how often each appears."""
    found = np.empty(len(nodes), np.int32)
    counts = np.zeros(len(nodes), np.int32)
    n = 0
    for j in nodes:
        if position[j] < 0:
            position[j] = n
            found[n] = j
            n += 1
        counts[position[j]] += 1
    for k in range(n):
        position[found[k]] = -1
    return found[:n].copy(), counts[:n].copy()


@njit(nogil=True, cache=True)
def neighbor_block(p: Any, rows: Any, size: int, stream: Any, position: Any, mark: Any) -> Any:
    """``size`` distinct neighbours of every row, uniform; the row's own entry is always kept.

    Floyd's algorithm: one random number a neighbour whatever the degree. ``mark`` is a zeroed byte
    array as long as the largest degree. With ``size`` >= every degree this is the exact block.
    """
    n = len(rows)
    own = 1 if p.loops else 0
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    for k in range(n):
        degree = p.indptr[rows[k] + 1] - p.indptr[rows[k]]
        indptr[k + 1] = indptr[k] + min(degree, size) + own
    indices = np.empty(indptr[n], np.int32)
    weights = np.empty(indptr[n], np.float32)
    weighted = len(p.values) > 0

    # First the global ids: loads that do not wait for each other.
    for k in range(n):
        i = rows[k]
        start = p.indptr[i]
        degree = p.indptr[i + 1] - start
        out = indptr[k]
        scale = p.row[i]
        if own:
            indices[out] = i
            weights[out] = scale
            out += 1
        if degree <= size:
            for e in range(start, start + degree):
                indices[out] = p.indices[e]
                weights[out] = scale * p.values[e] if weighted else scale
                out += 1
        else:
            scale = np.float32(scale * (degree / size))
            first = out
            for last in range(degree - size, degree):
                pick = np.int64(uniform(stream, out) * (last + 1))
                if mark[pick]:
                    pick = last
                mark[pick] = 1
                indices[out] = pick
                out += 1
            for e in range(first, out):
                pick = indices[e]
                mark[pick] = 0
                indices[e] = p.indices[start + pick]
                weights[e] = scale * p.values[start + pick] if weighted else scale

    # Then the local ones: rows first, new sources in order of appearance.
    src = np.empty(n + indptr[n], np.int32)
    for k in range(n):
        position[rows[k]] = k
        src[k] = rows[k]
    count = n
    for e in range(indptr[n]):
        j = indices[e]
        place = position[j]
        if place < 0:
            place = count
            position[j] = place
            src[place] = j
            count += 1
        indices[e] = place
        weights[e] *= p.col[j]
    for k in range(count):
        position[src[k]] = -1
    return indptr, indices, weights, src[:count].copy()


@njit(nogil=True, cache=True)
def labor_block(p: Any, rows: Any, size: int, stream: Any, position: Any) -> Any:
    """LABOR-0: node j has one random number for all rows; row i keeps it if u_j < size / deg(i)."""
    n = len(rows)
    bound = 0
    for i in rows:
        bound += p.indptr[i + 1] - p.indptr[i] + 1
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    indices = np.empty(bound, np.int32)
    weights = np.empty(bound, np.float32)
    src = np.empty(n + bound, np.int32)
    weighted = len(p.values) > 0
    for k in range(n):
        position[rows[k]] = k
        src[k] = rows[k]
    count = n
    out = 0
    for k in range(n):
        i = rows[k]
        if p.loops:
            indices[out] = k
            weights[out] = p.row[i] * p.col[i]
            out += 1
        start, stop = p.indptr[i], p.indptr[i + 1]
        keep = min(1.0, size / max(stop - start, 1))
        scale = np.float32(p.row[i] / keep)
        for e in range(start, stop):
            j = p.indices[e]
            if keep < 1.0 and uniform(stream, j) >= keep:
                continue
            place = position[j]
            if place < 0:
                place = count
                position[j] = place
                src[place] = j
                count += 1
            indices[out] = place
            weights[out] = scale * p.col[j] * (p.values[e] if weighted else np.float32(1.0))
            out += 1
        indptr[k + 1] = out
    for k in range(count):
        position[src[k]] = -1
    return indptr, indices[:out].copy(), weights[:out].copy(), src[:count].copy()


@njit(nogil=True, cache=True)
def restricted_block(p: Any, rows: Any, src: Any, factor: Any, member: Any, position: Any) -> Any:
    """P[rows, src] with column k multiplied by ``factor[k]``; also where each row is in ``src``.

    ``member`` is a zeroed bitmap of all nodes: at one bit a node it stays in the first-level cache,
    and most neighbours of a row are turned away there.
    """
    n = len(rows)
    bound = 0
    for i in rows:
        bound += p.indptr[i + 1] - p.indptr[i] + 1
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    indices = np.empty(bound, np.int32)
    weights = np.empty(bound, np.float32)
    dst_in_src = np.empty(n, np.int32)
    weighted = len(p.values) > 0
    for k in range(len(src)):
        j = src[k]
        position[j] = k
        member[j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    out = 0
    for k in range(n):
        i = rows[k]
        scale = p.row[i]
        own = position[i]
        dst_in_src[k] = own
        if p.loops and own >= 0:
            indices[out] = own
            weights[out] = scale * p.col[i] * factor[own]
            out += 1
        for e in range(p.indptr[i], p.indptr[i + 1]):
            j = p.indices[e]
            if (member[j >> 6] >> np.uint64(j & 63)) & np.uint64(1):
                place = position[j]
                value = scale * p.values[e] if weighted else scale
                indices[out] = place
                weights[out] = value * p.col[j] * factor[place]
                out += 1
        indptr[k + 1] = out
    for j in src:
        position[j] = -1
        member[j >> 6] = np.uint64(0)
    return indptr, indices[:out].copy(), weights[:out].copy(), dst_in_src


@njit(nogil=True, cache=True)
def _gather_draws(head: Any, drawn: Any, draws: int, law: Any, outside: float, position: Any) -> Any:
    """Sources [head, distinct drawn] and their factors: 1 for head, count / (draws p) for drawn.

    ``law[k]`` is the unnormalised probability of ``drawn[k]``, ``outside`` the sum that makes it
    one. ``drawn`` never meets ``head``.
    """
    src = np.empty(len(head) + len(drawn), np.int32)
    factor = np.empty(len(src), np.float32)
    count = len(head)
    for k in range(count):
        src[k] = head[k]
        factor[k] = 1.0
    for k in range(len(drawn)):
        j = drawn[k]
        weight = np.float32(outside / (draws * law[k]))
        place = position[j]
        if place < 0:
            position[j] = count
            src[count] = j
            factor[count] = weight
            count += 1
        else:
            factor[place] += weight
    for k in range(len(head), count):
        position[src[k]] = -1
    return src[:count].copy(), factor[:count].copy()


@njit(nogil=True, cache=True)
def ladies_sources(
    p: Any, rows: Any, size: int, keep: bool, stream: Any, position: Any, mass: Any
) -> Any:
    """``size`` draws from p_j ~ sum over the rows of P_ij^2; with ``keep`` the rows come first.

    ``mass`` is a zeroed float64 array of all nodes. Candidates are found and weighed in one scan
    of the rows' edges.
    """
    bound = 0
    for i in rows:
        bound += p.indptr[i + 1] - p.indptr[i] + 1
    candidates = np.empty(min(bound, len(mass)), np.int32)
    weighted = len(p.values) > 0
    n = 0
    for i in rows:
        scale = np.float64(p.row[i])
        square = scale * scale
        if square == 0.0:
            continue
        if p.loops:
            if mass[i] == 0.0:
                candidates[n] = i
                n += 1
            mass[i] += square
        for e in range(p.indptr[i], p.indptr[i + 1]):
            j = p.indices[e]
            old = mass[j]
            if old == 0.0:
                candidates[n] = j
                n += 1
            mass[j] = old + (square * p.values[e] * p.values[e] if weighted else square)
    if keep:
        for i in rows:
            mass[i] = 0.0

    cumulative = np.empty(n, np.float64)
    total = 0.0
    m = 0
    for k in range(n):
        j = candidates[k]
        here = mass[j] * p.col[j] * p.col[j]
        mass[j] = 0.0
        if here > 0.0:
            total += here
            candidates[m] = j
            cumulative[m] = total
            m += 1
    drawn = np.empty(size if m > 0 else 0, np.int32)
    law = np.empty(len(drawn), np.float64)
    for d in range(len(drawn)):
        k = min(np.searchsorted(cumulative[:m], uniform(stream, d) * total, side="right"), m - 1)
        drawn[d] = candidates[k]
        law[d] = cumulative[k] - (cumulative[k - 1] if k > 0 else 0.0)
    return _gather_draws(rows if keep else rows[:0], drawn, size, law, total, position)


@njit(nogil=True, cache=True)
def alias_table(law: Any) -> Any:
    """Walker's alias table of a probability vector: one draw costs two look-ups."""
    n = len(law)
    threshold = law * n
    alias = np.arange(n).astype(np.int32)
    small = np.empty(n, np.int32)
    large = np.empty(n, np.int32)
    ns = nl = 0
    for k in range(n):
        if threshold[k] < 1.0:
            small[ns] = k
            ns += 1
        else:
            large[nl] = k
            nl += 1
    while ns > 0 and nl > 0:
        ns -= 1
        low, high = small[ns], large[nl - 1]
        alias[low] = high
        threshold[high] -= 1.0 - threshold[low]
        if threshold[high] < 1.0:
            nl -= 1
            small[ns] = high
            ns += 1
    for k in range(nl):
        threshold[large[k]] = 1.0
    for k in range(ns):  # left over by rounding alone
        threshold[small[k]] = 1.0
    return threshold, alias


@njit(inline="always")
def _alias_draw(threshold: Any, alias: Any, stream: Any, counter: Any) -> Any:
    scaled = uniform(stream, counter) * len(threshold)
    k = np.int64(scaled)
    return np.int64(k if scaled - k < threshold[k] else alias[k])


@njit(nogil=True, cache=True)
def law_sources(
    law: Any, threshold: Any, alias: Any, head: Any, size: int, stream: Any, position: Any
) -> Any:
    """``size`` draws from ``law`` over all nodes but ``head``; sources and factors, head first.

    Draws that fall on ``head`` are repeated; only where head holds most of the mass are the other
    nodes listed instead (then the list is short against head, or the graph small).
    """
    outside = 1.0
    for j in head:
        outside -= law[j]
        position[j] = 0
    drawn = np.empty(size, np.int32)
    count = size
    if outside > 0.2:
        counter = 0
        for d in range(size):
            j = _alias_draw(threshold, alias, stream, counter)
            counter += 1
            while position[j] >= 0:
                j = _alias_draw(threshold, alias, stream, counter)
                counter += 1
            drawn[d] = j
    else:
        others = np.empty(len(law), np.int32)
        cumulative = np.empty(len(law), np.float64)
        outside = 0.0
        m = 0
        for j in range(len(law)):
            if position[j] < 0 and law[j] > 0.0:
                outside += law[j]
                others[m] = j
                cumulative[m] = outside
                m += 1
        count = size if m > 0 else 0
        for d in range(count):
            u = uniform(stream, d) * outside
            drawn[d] = others[min(np.searchsorted(cumulative[:m], u, side="right"), m - 1)]
    for j in head:
        position[j] = -1
    return _gather_draws(head, drawn[:count], size, law[drawn[:count]], outside, position)


@njit(nogil=True, cache=True)
def rescale_rows(indptr: Any, weights: Any, target: Any) -> None:
    """Scale every row of a block, in place, to the sum ``target``; empty rows stay empty."""
    for k in range(len(indptr) - 1):
        total = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            total += weights[e]
        if total > 0.0:
            scale = np.float32(target[k] / total)
            for e in range(indptr[k], indptr[k + 1]):
                weights[e] *= scale


@njit(nogil=True, cache=True)
def row_sums(p: Any) -> Any:
    """The true row sums of P."""
    sums = np.empty(len(p.row), np.float32)
    weighted = len(p.values) > 0
    for i in range(len(sums)):
        total = np.float64(p.col[i]) if p.loops else 0.0
        for e in range(p.indptr[i], p.indptr[i + 1]):
            total += p.col[p.indices[e]] * (p.values[e] if weighted else np.float32(1.0))
        sums[i] = total * p.row[i]
    return sums


@njit(nogil=True, cache=True)
def column_law(p: Any) -> Any:
    """p_j ~ squared norm of column j of P, the law of FastGCN."""
    law = np.zeros(len(p.row), np.float64)
    weighted = len(p.values) > 0
    for i in range(len(law)):
        square = np.float64(p.row[i]) * p.row[i]
        if p.loops:
            law[i] += square
        for e in range(p.indptr[i], p.indptr[i + 1]):
            law[p.indices[e]] += square * p.values[e] * p.values[e] if weighted else square
    total = 0.0
    for j in range(len(law)):
        law[j] *= np.float64(p.col[j]) * p.col[j]
        total += law[j]
    if total > 0.0:
        law /= total
    else:
        law[:] = 1.0 / len(law)
    return law
