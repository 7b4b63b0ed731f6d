"""Kernels that draw sources and build blocks.

Each takes a `Propagation` and a thread's scratch arrays (see `Scratch`); a kernel puts back what it
touched, so nothing here costs O(N). Sizes are known before memory is asked for, or a bound is
allocated and only the part in use is ever touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from sgcn.kernels.memory import AHEAD, index, prefetch
from sgcn.kernels.random import bits, uniform

_ALL = 1 << 62  # neighbours: more than any node has
_WORD, _BIT = np.uint64(6), np.uint64(63)  # bit j & 63 of word j >> 6


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
def _local_ids(p: Any, rows: Any, indices: Any, weights: Any, position: Any) -> Any:
    """Turn global ids, in place, into places among the sources, and multiply by the columns' scale.

    The sources, which are returned: rows first, then the others in order of appearance. Whether a
    node is new is a coin toss that no branch predictor foresees, hence the arithmetic.
    """
    src = np.empty(min(len(rows) + len(indices), len(p.row)) + 1, np.int32)
    count = len(rows)
    for k in range(count):
        position[rows[k]] = k
        src[k] = rows[k]
    entries = len(indices)
    for e in range(entries):
        if e + AHEAD < entries:
            prefetch(position, indices[e + AHEAD])
            prefetch(p.col, indices[e + AHEAD])
        j = index(indices[e])
        place = position[j]
        new = place < 0
        place = np.int32(count) if new else place
        src[index(count)] = indices[e]
        position[j] = place
        count += new
        indices[e] = place
        weights[e] *= p.col[j]
    for k in range(count):
        position[index(src[k])] = -1
    return src[:count].copy()


@njit(nogil=True, cache=True)
def row_pointers(p: Any, rows: Any, most: int = _ALL) -> Any:
    """Where every row begins in P[rows, :], with its own entry and ``most`` neighbours at most."""
    own = 1 if p.loops else 0
    indptr = np.empty(len(rows) + 1, np.int64)
    indptr[0] = 0
    for k in range(len(rows)):
        if k + AHEAD < len(rows):
            prefetch(p.indptr, rows[k + AHEAD])
        degree = p.indptr[rows[k] + 1] - p.indptr[rows[k]]
        indptr[k + 1] = indptr[k] + min(degree, most) + own
    return indptr


@njit(nogil=True, cache=True)
def neighbor_block(p: Any, rows: Any, size: int, stream: Any, position: Any, mark: Any) -> Any:
    """``size`` distinct neighbours of every row, uniform; the row's own entry is always kept.

    Floyd's algorithm: one random number a neighbour whatever the degree. ``mark`` is a zeroed byte
    array as long as the largest degree. With ``size`` >= every degree this is the exact block.
    """
    n = len(rows)
    own = 1 if p.loops else 0
    indptr = row_pointers(p, rows, size)
    indices = np.empty(indptr[n], np.int32)
    weights = np.empty(indptr[n], np.float32)
    weighted = len(p.values) > 0

    # First choose places in the rows, and ask for what is there; then read it.
    for k in range(n):
        i = rows[k]
        start = p.indptr[i]
        degree = p.indptr[i + 1] - start
        if degree <= size:
            prefetch(p.indices, start)
            continue
        first = indptr[k] + own
        for out in range(first, first + size):
            last = degree - size + out - first
            pick = np.int64(uniform(stream, out) * (last + 1))
            if mark[pick]:
                pick = last
            mark[pick] = 1
            indices[out] = pick
            prefetch(p.indices, start + pick)
        for out in range(first, first + size):
            mark[indices[out]] = 0
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
            for here in range(out, out + size):
                pick = start + indices[here]
                indices[here] = p.indices[pick]
                weights[here] = scale * p.values[pick] if weighted else scale
    return indptr, indices, weights, _local_ids(p, rows, indices, weights, position)


@njit(nogil=True, cache=True)
def exact_block(p: Any, rows: Any, indptr: Any, indices: Any, weights: Any, position: Any) -> Any:
    """P[rows, :] into ``indices`` and ``weights``, in one pass; the sources, as in `_local_ids`."""
    n, entries = len(rows), len(p.indices)
    src = np.empty(min(n + len(indices), len(p.row)) + 1, np.int32)
    for k in range(n):
        position[rows[k]] = k
        src[k] = rows[k]
    count = n
    weighted = len(p.values) > 0
    for k in range(n):
        if k + AHEAD < n:
            _prefetch_row(p, rows[k + AHEAD])
        i = rows[k]
        out = index(indptr[k])
        scale = p.row[i]
        if p.loops:
            indices[out] = k
            weights[out] = scale * p.col[i]
            out += index(1)
        for e in range(p.indptr[i], p.indptr[i + 1]):
            if e + AHEAD < entries:
                prefetch(position, p.indices[e + AHEAD])
                prefetch(p.col, p.indices[e + AHEAD])
            j = index(p.indices[e])
            place = position[j]
            new = place < 0
            place = np.int32(count) if new else place
            src[index(count)] = p.indices[e]
            position[j] = place
            count += new
            indices[out] = place
            weights[out] = (scale * p.values[e] if weighted else scale) * p.col[j]
            out += index(1)
    for k in range(count):
        position[index(src[k])] = -1
    return src[:count].copy()


@njit(nogil=True, cache=True)
def labor_block(p: Any, rows: Any, size: int, stream: Any, position: Any) -> Any:
    """LABOR-0: node j has one random number for all rows; row i keeps it if u_j < size / deg(i)."""
    n = len(rows)
    bound = row_pointers(p, rows)[-1]
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    # Every neighbour is written, and stays if the next one is written behind it.
    buffer = np.empty(bound + 1, np.int32)
    values = np.empty(bound + 1 if len(p.values) > 0 else 0, np.float32)
    out = index(0)
    for k in range(n):
        if k + AHEAD < n:
            _prefetch_row(p, rows[k + AHEAD])
        i = rows[k]
        start, stop = p.indptr[i], p.indptr[i + 1]
        if p.loops:
            buffer[out] = i
            if len(values) > 0:
                values[out] = 1.0
            out += index(1)
        # u < keep, to the bit, without leaving the integers
        limit = index(np.ceil(min(1.0, size / max(stop - start, 1)) * 2.0**53))
        for e in range(start, stop):
            j = p.indices[index(e)]
            buffer[out] = j
            if len(values) > 0:
                values[out] = p.values[index(e)]
            out += index(bits(stream, j) >> np.uint64(11) < limit)
        indptr[k + 1] = out
    indices = buffer[: np.int64(out)].copy()
    weights = np.ones(len(indices), np.float32)
    for k in range(n):
        i = rows[k]
        keep = min(1.0, size / max(p.indptr[i + 1] - p.indptr[i], 1))
        for e in range(indptr[k], indptr[k + 1]):
            weights[e] = p.row[i] / keep
        if p.loops:
            weights[indptr[k]] = p.row[i]
    weights[: len(values)] *= values[: len(weights)]
    return indptr, indices, weights, _local_ids(p, rows, indices, weights, position)


@njit(inline="always")
def _prefetch_row(p: Any, i: Any) -> None:
    for e in range(p.indptr[i], p.indptr[i + 1], 16):  # a cache line holds 16 ids
        prefetch(p.indices, e)


@njit(nogil=True, cache=True)
def restricted_block(p: Any, rows: Any, src: Any, factor: Any, scratch: Any) -> Any:
    """P[rows, src] with column k multiplied by ``factor[k]``; also where each row is in ``src``.

    Most neighbours of a row are turned away by the bitmap.
    """
    position, member = scratch.position, scratch.member
    n = len(rows)
    bound = row_pointers(p, rows)[-1]
    indptr = np.empty(n + 1, np.int64)
    indptr[0] = 0
    dst_in_src = np.empty(n, np.int32)
    for k in range(len(src)):
        j = index(src[k])
        position[j] = k
        member[j >> _WORD] |= index(1) << (j & _BIT)

    # Every neighbour is written, and stays if the next one is written behind it: no branch.
    buffer = np.empty(bound + 1, np.int32)
    values = np.empty(bound + 1 if len(p.values) > 0 else 0, np.float32)
    out = index(0)
    for k in range(n):
        if k + AHEAD < n:
            _prefetch_row(p, rows[k + AHEAD])
        i = rows[k]
        dst_in_src[k] = position[i]
        if p.loops:
            buffer[out] = i
            if len(values) > 0:
                values[out] = 1.0
            out += index(position[i] >= 0)
        for e in range(p.indptr[i], p.indptr[i + 1]):
            j = index(p.indices[index(e)])
            buffer[out] = j
            if len(values) > 0:
                values[out] = p.values[index(e)]
            out += (member[j >> _WORD] >> (j & _BIT)) & index(1)
        indptr[k + 1] = out

    indices = np.empty(indptr[n], np.int32)
    weights = np.empty(indptr[n], np.float32)
    for k in range(n):
        scale = p.row[rows[k]]
        for e in range(indptr[k], indptr[k + 1]):
            j = index(buffer[e])
            place = position[j]
            value = scale * values[e] if len(values) > 0 else scale
            indices[e] = place
            weights[e] = value * p.col[j] * factor[place]
    for k in range(len(src)):
        j = index(src[k])
        position[j] = -1
        member[j >> _WORD] = 0
    return indptr, indices, weights, dst_in_src


@njit(nogil=True, cache=True)
def _gather_draws(
    head: Any, drawn: Any, draws: int, law: Any, outside: float, position: Any
) -> Any:
    """Sources [head, distinct drawn] and their factors: 1 for head, count / (draws p) for drawn.

    ``law[k]`` is the unnormalised probability of ``drawn[k]``, ``outside`` the sum that makes it
    one. ``drawn`` never meets ``head``.
    """
    src = np.empty(len(head) + len(drawn), np.int32)
    factor = np.empty(len(src), np.float64)
    count = len(head)
    for k in range(count):
        src[k] = head[k]
        factor[k] = 1.0
    for k in range(len(drawn)):
        j = index(drawn[k])
        weight = outside / (draws * law[k])
        place = position[j]
        if place < 0:
            position[j] = count
            src[count] = drawn[k]
            factor[count] = weight
            count += 1
        else:
            factor[place] += weight
    for k in range(len(head), count):
        position[src[k]] = -1
    return src[:count].copy(), factor[:count].astype(np.float32)


@njit(inline="always")
def _weight(p: Any, e: Any) -> Any:
    """A_ij of the stored edge ``e``."""
    return p.values[e] if len(p.values) > 0 else np.float32(1.0)


@njit(nogil=True, cache=True)
def square_sums(p: Any) -> Any:
    """Of every row, without its own entry: the sum and the largest of (A_ij c_j)^2."""
    sums, peaks = np.zeros((2, len(p.row)), np.float64)
    for i in range(len(p.row)):
        for e in range(p.indptr[i], p.indptr[i + 1]):
            entry = np.float64(p.col[p.indices[e]]) * _weight(p, e)
            sums[i] += entry * entry
            peaks[i] = max(peaks[i], entry * entry)
    return sums, peaks


@njit(inline="always")
def _spread(u: float, draw: int, size: int, stratified: bool) -> Any:
    """A uniform number; the first ``size`` stratified ones fall one into each of ``size`` parts."""
    return (draw + u) / size if stratified and draw < size else u


@njit(nogil=True, cache=True)
def _picks(cumulative: Any, size: int, stream: Any, stratified: bool) -> Any:
    """``size`` draws of a place from the law whose sums are ``cumulative``; none if it is empty."""
    last = len(cumulative) - 1
    picks = np.empty(size if last >= 0 else 0, np.int64)
    for d in range(len(picks)):
        u = _spread(uniform(stream, d), d, size, stratified)
        picks[d] = min(np.searchsorted(cumulative, u * cumulative[last], side="right"), last)
    return picks


@njit(nogil=True, cache=True)
def ladies_draws(p: Any, rows: Any, size: int, ladies: Any, stream: Any, position: Any) -> Any:
    """``size`` draws from p_j ~ sum over the rows of P_ij^2, without weighing the candidates.

    ``stratified`` spreads the rows that are drawn: a row gets the draws it would get on average,
    rounded up or down. The mean number of draws of any j stays what it was: let T be the tries, the
    first ``size`` of them spread. Then j is drawn E[T] p_j times, and E[T] is the same for all j.

    If the entry (i, j) is drawn with chance ~ P_ij^2, then j has just this law. A row is drawn by
    its `square_sums`, then a neighbour by rejection: uniform, accepted with chance (its square) /
    (the row's peak), which takes at most deg(i) tries on average and most often a few.

    Returns sources, how often each was drawn, and the sum over all entries. With ``keep`` the rows
    come first, with count 0, and draws that fall on them are repeated; the sum is then that of the
    entries off the diagonal, and -1 says that nearly all is in the rows' own columns and repeating
    would not end: use `ladies_sources`.
    """
    keep, stratified, sums, peaks = ladies
    n = len(rows)
    own = p.loops and not keep  # the diagonal may be drawn
    cumulative = np.empty(n, np.float64)
    total = 0.0
    for k in range(n):
        if k + AHEAD < n:
            prefetch(p.indptr, rows[k + AHEAD])
        i = rows[k]
        _prefetch_row(p, i)  # all rows will be scanned in the end, and these draws are scattered
        square = sums[i] + (np.float64(p.col[i]) * p.col[i] if own else 0.0)
        total += square * p.row[i] * p.row[i]
        cumulative[k] = total
    draws = size if total > 0.0 else 0
    count = n if keep else 0
    src = np.empty(count + draws, np.int32)
    counts = np.zeros(count + draws, np.int32)
    for k in range(count):
        src[k] = rows[k]
        position[rows[k]] = k

    counter = 0
    tries = 0
    taken = 0
    repeats_left = 3 * size + 64
    while taken < draws and repeats_left > 0:
        u = _spread(uniform(stream, counter), tries, size, stratified)
        at = np.searchsorted(cumulative, u * total, side="right")
        counter += 1
        tries += 1
        i = rows[min(at, n - 1)]
        start = p.indptr[i]
        degree = p.indptr[i + 1] - start
        mine = np.float64(p.col[i]) * p.col[i] if own else 0.0
        peak = max(peaks[i], mine)
        while True:
            place = uniform(stream, counter) * (degree + own)
            counter += 1
            pick = np.int64(place)
            j = np.int64(i)
            square = mine
            if pick < degree:
                j = np.int64(p.indices[start + pick])
                entry = np.float64(p.col[j]) * _weight(p, start + pick)
                square = entry * entry
            if (place - pick) * peak < square:  # the fraction left over is uniform as well
                break
        place = position[j]
        if place < 0:
            position[j] = count
            src[count] = j
            counts[count] = 1
            count += 1
        elif keep and place < n:
            repeats_left -= 1
            continue
        else:
            counts[place] += 1
        taken += 1
    for k in range(count):
        position[src[k]] = -1
    if taken < draws:
        total = -1.0
    return src[:count].copy(), counts[:count].copy(), total


@njit(nogil=True, cache=True)
def weigh_draws(
    indptr: Any, indices: Any, weights: Any, counts: Any, draws: int, total: float, loops: bool
) -> None:
    """Multiply drawn columns of P[R, src], in place, by count_j / (draws p_j), LADIES' law.

    The block holds all that p_j is made of: the squares of column j. ``total`` is the sum over all
    entries of R, from `ladies_draws`; columns of count 0 were kept, not drawn, and do not count
    in it.
    """
    mass = np.zeros(len(counts), np.float64)
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            # A kept column's own entry is not in ``total``; rows are the first columns then.
            if not (loops and indices[e] == k and counts[k] == 0):
                mass[indices[e]] += np.float64(weights[e]) * weights[e]
    drawn = 0.0
    for j in range(len(counts)):
        if counts[j] == 0:
            total -= mass[j]
        else:
            drawn += mass[j]
    total = max(total, drawn)  # it is that much at least, whatever rounding left of the difference
    for j in range(len(counts)):
        mass[j] = counts[j] * total / (draws * mass[j]) if counts[j] > 0 else 1.0
    for e in range(len(indices)):
        weights[e] *= np.float32(mass[indices[e]])


@njit(nogil=True, cache=True)
def ladies_sources(
    p: Any, rows: Any, size: int, ladies: Any, stream: Any, position: Any, mass: Any
) -> Any:
    """The same law by listing and weighing every candidate; factors 1, count / (size p).

    Slower, but it ends whatever the rows are. ``mass`` is a zeroed float64 array of all nodes.
    """
    candidates = np.empty(min(row_pointers(p, rows)[-1], len(mass)), np.int32)
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
            mass[j] = old + square * _weight(p, e) * _weight(p, e)
    if ladies.keep:
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
    picks = _picks(cumulative[:m], size, stream, ladies.stratified)
    law = np.empty(len(picks), np.float64)
    for d in range(len(picks)):
        k = picks[d]
        law[d] = cumulative[k] - (cumulative[k - 1] if k > 0 else 0.0)
    head = rows if ladies.keep else rows[:0]
    return _gather_draws(head, candidates[picks], size, law, total, position)


# Another stream: numbers that made the first attempt fail are not random any more.
_FRESH = np.uint64(0x5851F42D4C957F2D)


@njit(nogil=True, cache=True)
def ladies_block(
    p: Any, rows: Any, size: int, ladies: Any, stream: Any, scratch: Any, mass: Any, target: Any
) -> Any:
    """LADIES' block in one call: between two kernels a thread would have to wait for the GIL."""
    src, counts, total = ladies_draws(p, rows, size, ladies, stream, scratch.position)
    if total < 0.0:
        src, factor = ladies_sources(p, rows, size, ladies, stream ^ _FRESH, scratch.position, mass)
    else:
        factor = np.ones(len(src), np.float32)
    indptr, indices, weights, places = restricted_block(p, rows, src, factor, scratch)
    if total >= 0.0:
        weigh_draws(indptr, indices, weights, counts, size, total, p.loops)
    rescale_rows(indptr, weights, rows, target)
    return indptr, indices, weights, src, places


@njit(nogil=True, cache=True)
def alias_table(law: Any) -> Any:
    """Walker's alias table of a probability vector: one draw costs two look-ups."""
    n = len(law)
    threshold = law * n
    alias = np.arange(n).astype(np.int32)
    small, large = np.flatnonzero(threshold < 1.0), np.flatnonzero(threshold >= 1.0)
    ns, nl = len(small), len(large)
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
    k = index(scaled)
    return np.int64(k) if scaled - np.float64(k) < threshold[k] else np.int64(alias[k])


@njit(nogil=True, cache=True)
def law_sources(columns: Any, head: Any, size: int, stream: Any, position: Any) -> Any:
    """``size`` draws from a `ColumnLaw` without ``head``; sources and factors, head first.

    Draws that fall on ``head`` are repeated; only where head holds most of the mass are the other
    nodes listed instead (then the list is short against head, or the graph small).
    """
    law, threshold, alias = columns
    outside = 1.0
    for j in head:
        outside -= law[j]
        position[j] = 0
    if outside > 0.2:
        drawn = np.empty(size, np.int32)
        counter = 0
        taken = 0
        while taken < size:
            # A random number costs less than the wait for its slot: draw it again when it is due.
            slot = np.int64(uniform(stream, counter + AHEAD) * len(threshold))
            prefetch(threshold, slot)
            prefetch(alias, slot)
            j = _alias_draw(threshold, alias, stream, counter)
            counter += 1
            drawn[taken] = j
            taken += position[index(j)] < 0
    else:
        free = position[: len(law)] < 0  # a thread's array may be longer than this graph
        others = np.flatnonzero(free & (law > 0.0)).astype(np.int32)
        cumulative = np.cumsum(law[others])
        outside = cumulative[-1] if len(others) > 0 else 0.0
        drawn = others[_picks(cumulative, size, stream, False)]
    for j in head:
        position[j] = -1
    return _gather_draws(head, drawn, size, law[drawn], outside, position)


@njit(nogil=True, cache=True)
def rescale_rows(indptr: Any, weights: Any, rows: Any, target: Any) -> None:
    """Scale the rows of a block, in place, to the sums ``target[rows]``; empty rows stay empty.

    Without a ``target`` all rows stay as they are.
    """
    for k in range(len(indptr) - 1 if len(target) > 0 else 0):
        total = 0.0
        for e in range(indptr[k], indptr[k + 1]):
            total += weights[e]
        if total > 0.0:
            scale = target[rows[k]] / total  # float64: tiny rows must not become infinite
            for e in range(indptr[k], indptr[k + 1]):
                weights[e] = np.float32(weights[e] * scale)


@njit(nogil=True, cache=True)
def row_sums(p: Any) -> Any:
    """The true row sums of P."""
    sums = np.empty(len(p.row), np.float32)
    for i in range(len(sums)):
        total = np.float64(p.col[i]) if p.loops else 0.0
        for e in range(p.indptr[i], p.indptr[i + 1]):
            total += p.col[p.indices[e]] * _weight(p, e)
        sums[i] = total * p.row[i]
    return sums


@njit(nogil=True, cache=True)
def column_law(p: Any) -> Any:
    """p_j ~ squared norm of column j of P, the law of FastGCN."""
    law = np.zeros(len(p.row), np.float64)
    for i in range(len(law)):
        square = np.float64(p.row[i]) * p.row[i]
        if p.loops:
            law[i] += square
        for e in range(p.indptr[i], p.indptr[i + 1]):
            law[p.indices[e]] += square * _weight(p, e) * _weight(p, e)
    total = 0.0
    for j in range(len(law)):
        law[j] *= np.float64(p.col[j]) * p.col[j]
        total += law[j]
    if total > 0.0:
        law /= total
    else:
        law[:] = 1.0 / len(law)
    return law
