"""Plain NumPy twins of the kernels: slow, obvious, and what the tests hold the kernels against.

A twin has the name and the arguments of its kernel, but for three things: scratch arrays and
tables derived from the graph are left out, and what a kernel changes in place is returned. It reads
the same random streams, so integers agree to the bit; it computes weights in float64 and rounds
once, so those agree to a few units in the last place of float32.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.kernels import Propagation

Array = npt.NDArray[Any]
Ints = Iterable[int]
_MASK = (1 << 64) - 1

# -- random.py ----------------------------------------------------------------------------------


def mix(z: int) -> int:
    """The finaliser of SplitMix64 on a 64-bit word."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _MASK
    return z ^ (z >> 31)


def bits(stream: int, counter: int) -> int:
    """Number ``counter`` of ``stream``, which enters before and after the first scramble."""
    stream = int(stream)
    return mix((mix((counter * 0x9E3779B97F4A7C15 + stream) & _MASK) + stream) & _MASK)


def uniform(stream: int, counter: int) -> float:
    """The upper 53 bits as a fraction."""
    return (bits(stream, counter) >> 11) / 2**53


def uniforms(n: int, stream: int) -> Array:
    return np.array([uniform(stream, k) for k in range(n)])


def below(stream: int, counter: int, n: int) -> int:
    """A whole number from 0 to n - 1."""
    return int(uniform(stream, counter) * n)


def permutation(n: int, stream: int) -> Array:
    order = list(range(n))
    for k in reversed(range(1, n)):
        other = below(stream, k, k + 1)
        order[k], order[other] = order[other], order[k]
    return _int32(order)


# -- small words --------------------------------------------------------------------------------


def _int32(values: Ints) -> Array:
    return np.array(list(values), np.int32)


def _float32(values: Iterable[float]) -> Array:
    return np.array(list(values), np.float32)


def _pointers(lengths: Ints) -> Array:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _distinct(nodes: Ints) -> list[int]:
    """In order of first appearance."""
    return list(dict.fromkeys(int(j) for j in nodes))


def _neighbours(p: Propagation, i: int) -> list[tuple[int, float]]:
    """The stored entries (j, A_ij) of row i."""
    span = slice(p.indptr[i], p.indptr[i + 1])
    cols = p.indices[span].tolist()
    values = p.values[span].tolist() if len(p.values) else [1.0] * len(cols)
    return list(zip(cols, values, strict=True))


def _entries(p: Propagation, i: int) -> list[tuple[int, float]]:
    """The entries (j, (A + I)_ij) of row i, its own first."""
    return [(int(i), 1.0)] * p.loops + _neighbours(p, i)


def dense(p: Propagation) -> npt.NDArray[np.float64]:
    """P as a full matrix."""
    matrix = np.zeros((len(p.row), len(p.row)))
    for i in range(len(matrix)):
        for j, value in _entries(p, i):
            matrix[i, j] = float(p.row[i]) * value * float(p.col[j])
    return matrix


# -- blocks.py ----------------------------------------------------------------------------------


def unique_counts(nodes: Ints) -> tuple[Array, Array]:
    listed = [int(j) for j in nodes]
    found = _distinct(listed)
    return _int32(found), _int32(listed.count(j) for j in found)


def _block(
    rows: Ints, kept: Sequence[list[tuple[int, float]]]
) -> tuple[Array, Array, Array, Array]:
    """CSR arrays of rows of (global id, weight): rows are the first sources, then the new ids."""
    entries = [entry for row in kept for entry in row]
    src = _distinct([*rows, *(j for j, _ in entries)])
    place = {j: k for k, j in enumerate(src)}
    return (
        _pointers(len(row) for row in kept),
        _int32(place[j] for j, _ in entries),
        _float32(weight for _, weight in entries),
        _int32(src),
    )


def neighbor_block(
    p: Propagation, rows: Array, size: int, stream: int
) -> tuple[Array, Array, Array, Array]:
    P = dense(p)
    kept: list[list[tuple[int, float]]] = []
    for i in rows:
        cols = [j for j, _ in _neighbours(p, i)]
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
        cols = [j for j, _ in _neighbours(p, i)]
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
    kept = [[(i, j) for j, _ in _entries(p, i) if j in place] for i in rows]
    entries = [entry for row in kept for entry in row]
    return (
        _pointers(map(len, kept)),
        _int32(place[j] for _, j in entries),
        _float32(P[i, j] * float(factor[place[j]]) for i, j in entries),
        _int32(place.get(int(i), -1) for i in rows),
    )


def _with_draws(
    head: Ints, drawn: Sequence[int], draws: int, law: dict[int, float]
) -> tuple[Array, Array]:
    """Sources [head, distinct drawn] with factors 1 and count / (draws p); ``law`` is any scale."""
    total = sum(law.values())
    first, found = _distinct(head), _distinct(drawn)
    factor = [drawn.count(j) * total / (draws * law[j]) for j in found]
    return _int32(first + found), _float32([1.0] * len(first) + factor)


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
        [(value * float(p.col[j])) ** 2 for j, value in _neighbours(p, i)]
        for i in range(len(p.row))
    ]
    return np.array([sum(row) for row in squares]), np.array(
        [max(row, default=0.0) for row in squares]
    )


def ladies_draws(
    p: Propagation, rows: Array, size: int, keep: bool, stratified: bool, stream: int
) -> tuple[Array, Array, float]:
    entries = [
        [(j, (value * float(p.col[j])) ** 2) for j, value in _neighbours(p, i)]
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
    return _int32(counts), _int32(counts.values()), total


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
        for j, value in _entries(p, i):
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
    if 1.0 - np.cumsum([0.0, *law[head]])[-1] <= 0.2:
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


# -- subgraphs.py -------------------------------------------------------------------------------


def edge_law(p: Propagation) -> npt.NDArray[np.float64]:
    """Q_ij: the chance that one draw takes the edge (i, j), by a linked node i, then a neighbour.

    Of an undirected graph Q_ij + Q_ji is GraphSAINT's law, (1/deg(i) + 1/deg(j)) / linked.
    """
    degrees = np.diff(p.indptr)
    linked = max(int((degrees > 0).sum()), 1)
    law = np.zeros((len(degrees), len(degrees)))
    for i, degree in enumerate(degrees):
        for j, _ in _neighbours(p, i):
            law[i, j] = 1 / (linked * int(degree))
    return law


def edge_nodes(p: Propagation, linked: Array, draws: int, stream: int) -> Array:
    nodes: list[int] = []
    for d in range(draws if len(linked) else 0):
        i = int(linked[below(stream, 2 * d, len(linked))])
        cols = [j for j, _ in _neighbours(p, i)]
        nodes += [i, cols[below(stream, 2 * d + 1, len(cols))]]
    return _int32(nodes)


def edge_hits(p: Propagation) -> Array:
    law, linked = edge_law(p), int((np.diff(p.indptr) > 0).sum())
    hits: Array = (law.sum(axis=0) + law.sum(axis=1) - law.diagonal()) * linked
    return hits


def reweight_edges(
    p: Propagation, indptr: Array, indices: Array, weights: Array, nodes: Array, draws: int
) -> Array:
    law = edge_law(p)
    touches = law.sum(axis=0) + law.sum(axis=1) - law.diagonal()
    out = weights.astype(np.float64)
    for k, other, e in _off_diagonal(indptr, indices):
        i, j = nodes[k], nodes[other]
        either = touches[i] + touches[j] - law[i, j] - law[j, i]
        missed_i, missed_j = (1 - touches[i]) ** draws, (1 - touches[j]) ** draws
        both = 1 - missed_i - missed_j + max(0.0, 1 - either) ** draws
        out[e] *= (1 - missed_i) / both
    return out.astype(np.float32)


def _off_diagonal(indptr: Array, indices: Array) -> list[tuple[int, int, int]]:
    """(row, column, entry) of the entries of a square block that are not on its diagonal."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    places = zip(rows.tolist(), indices.tolist(), range(len(indices)), strict=True)
    return [(k, other, e) for k, other, e in places if k != other]


def reweight_nodes(
    indptr: Array, indices: Array, weights: Array, counts: Array, law: Array, draws: int
) -> Array:
    out = weights.astype(np.float64)
    for k, other, e in _off_diagonal(indptr, indices):
        kept = 1 - (1 - law[k]) ** draws
        expected = draws * law[other] * (1 - (1 - law[k]) ** (draws - 1)) / kept
        out[e] *= counts[other] / expected
    return out.astype(np.float32)


def walk_nodes(p: Propagation, roots: int, length: int, stream: int) -> Array:
    nodes: list[int] = []
    for _ in range(roots):
        nodes.append(below(stream, len(nodes), len(p.row)))
        for _ in range(length):
            cols = [j for j, _ in _neighbours(p, nodes[-1])] or [nodes[-1]]
            nodes.append(cols[below(stream, len(nodes), len(cols))])
    return _int32(nodes)


def count_walks(p: Propagation, roots: int, length: int, streams: Array) -> tuple[Array, Array]:
    """Counts of nodes and of stored edges, both of whose ends a sample holds."""
    seen = np.zeros((len(streams), len(p.row)), np.int32)
    for sample, stream in zip(seen, streams, strict=True):
        sample[walk_nodes(p, roots, length, stream)] = 1
    rows = np.repeat(np.arange(len(p.row)), np.diff(p.indptr))
    together = seen.T @ seen
    return together.diagonal().copy(), together[rows, p.indices]


def reweight_walks(
    p: Propagation,
    indptr: Array,
    indices: Array,
    weights: Array,
    nodes: Array,
    node_counts: Array,
    pair_counts: Array,
) -> Array:
    out = weights.astype(np.float64)
    for k, other, e in _off_diagonal(indptr, indices):
        i = nodes[k]
        stored = p.indptr[i] + p.indices[p.indptr[i] : p.indptr[i + 1]].tolist().index(nodes[other])
        out[e] *= (node_counts[i] + 1) / (pair_counts[stored] + 1)
    return out.astype(np.float32)


def reweight_parts(
    indptr: Array, indices: Array, weights: Array, part: Array, factor: float
) -> Array:
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    between = part[rows] != part[indices]
    return np.where(between, weights * factor, weights).astype(np.float32)


# -- csr.py -------------------------------------------------------------------------------------


def _rows(indptr: Array, indices: Array) -> list[list[int]]:
    return [row.tolist() for row in np.split(indices, indptr[1:-1])]


def _csr(rows: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    return _pointers(map(len, rows)), _int32(j for row in rows for j in row)


def scatter_edges(
    rows: Array, cols: Array, n: int, both: bool, drop_loops: bool
) -> tuple[Array, Array]:
    listed: list[list[int]] = [[] for _ in range(n)]
    for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
        if i != j or not drop_loops:
            listed[i].append(j)
        if i != j and both:
            listed[j].append(i)
    return _csr(listed)


def sorted_rows(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """What ``sort_rows`` and then ``compact_rows`` make: rows in order, without duplicates."""
    return _csr([sorted(set(row)) for row in _rows(indptr, indices)])


def weighted_degrees(indptr: Array, values: Array) -> Array:
    return np.array([row.sum() for row in np.split(values.astype(np.float64), indptr[1:-1])])


def rows_are_sorted(indptr: Array, indices: Array) -> bool:
    return all(row == sorted(set(row)) for row in _rows(indptr, indices))


def is_symmetric(indptr: Array, indices: Array) -> bool:
    edges = {(i, j) for i, row in enumerate(_rows(indptr, indices)) for j in row}
    return edges == {(j, i) for i, j in edges}


def drop_self_loops(indptr: Array, indices: Array) -> tuple[Array, Array]:
    return _csr([[j for j in row if j != i] for i, row in enumerate(_rows(indptr, indices))])


def count_self_loops(indptr: Array, indices: Array) -> int:
    return sum(row.count(i) for i, row in enumerate(_rows(indptr, indices)))


# -- text.py ------------------------------------------------------------------------------------


def split_fields(
    data: Array, delimiter: int, comments: Array, columns: int
) -> tuple[list[tuple[int, list[bytes]]], int, int, int]:
    """Every row as (number of its line, fields), then the bytes used, the lines seen, and -1."""
    rows: list[tuple[int, list[bytes]]] = []
    used = 0
    whole = data.tobytes().split(b"\n")[:-1]
    for number, line in enumerate(whole):
        used += len(line) + 1
        text = line.strip(b" \t\r")
        if not text or text[0] in comments:
            continue
        fields = line.split(bytes([delimiter])) if delimiter else text.split()
        fields = [field.strip(b" \t\r") for field in fields]
        if len(fields) != columns:
            return rows, used, number + 1, len(fields)
        quoted = (len(f) >= 2 and f.startswith(b'"') and f.endswith(b'"') for f in fields)
        rows.append((number, [f[1:-1] if q else f for f, q in zip(fields, quoted, strict=True)]))
    return rows, used, len(whole), -1


def whole_numbers(fields: Sequence[bytes]) -> tuple[list[int], int]:
    """The numbers before the first field that is none, and its place or -1."""
    numbers: list[int] = []
    for place, field in enumerate(fields):
        digits = field[1:] if field[:1] in (b"+", b"-") else field
        if not digits.isdigit() or abs(int(field)) > 2**63 - 1:
            return numbers, place
        numbers.append(int(field))
    return numbers, -1


def real_numbers(fields: Sequence[bytes]) -> tuple[list[float], int]:
    """The numbers before the first field that is none, and its place or -1."""
    numbers: list[float] = []
    for place, field in enumerate(fields):
        try:
            if set(field) & set(b"_ \t\r\n\x0b\x0c"):
                return numbers, place
            numbers.append(float(field) if field else float("nan"))
        except ValueError:
            return numbers, place
    return numbers, -1


def json_items(data: Array, at: int) -> tuple[int, int]:
    """Strings are struck out, then whole inner lists and objects, innermost first."""
    text = data.tobytes()[at:].decode("latin-1")
    text = re.sub(r'"(?:[^"\\]|\\.)*("|\\?\Z)', lambda found: "x" * len(found[0]), text, flags=re.S)
    inner = 1
    while inner:
        text, inner = re.subn(r"[\[{][^\[\]{}]*[\]}]", lambda found: "x" * len(found[0]), text)
    ends = [k for k, letter in enumerate(text) if letter in "[]{}"]
    close = ends[0] if ends and text[ends[0]] in "]}" else -1
    comma = text.rfind(",", 0, ends[0] if ends else len(text))
    return (at + comma if comma >= 0 else -1), (at + close if close >= 0 else -1)


# -- names.py -----------------------------------------------------------------------------------


def number_names(
    data: Array, starts: Ints, ends: Ints, known: Sequence[bytes] = ()
) -> tuple[Array, list[bytes]]:
    """The number of each field, and all names in order; those of earlier calls are ``known``."""
    numbers = {name: number for number, name in enumerate(known)}
    fields = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
    found = _int32([numbers.setdefault(field, len(numbers)) for field in fields])
    return found, list(numbers)


# -- features.py --------------------------------------------------------------------------------


def add_moments(part: Array, chosen: Array, origin: Array) -> tuple[Array, Array]:
    rows = part[chosen].astype(np.float64) - origin
    return rows.sum(0), (rows * rows).sum(0)


def standardise(part: Array, shift: Array, scale: Array) -> Array:
    rows: Array = (part - shift) * scale
    return rows.astype(np.float32)


# -- describe.py --------------------------------------------------------------------------------


def components(indptr: Array, indices: Array) -> Array:
    rows = _rows(indptr, indices)
    joined = np.eye(len(rows), dtype=bool)
    for i, row in enumerate(rows):
        joined[i, row] = joined[row, i] = True
    for k in range(len(rows)):  # Warshall: paths through the nodes up to k
        joined |= joined[:, [k]] & joined[[k]]
    return _int32(joined.argmax(1).tolist())


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
    return enumerate(_rows(indptr, indices))


def row_hashes(words: Array, sign: int) -> Array:
    hashes = [
        sum(bits(word, f) for f, word in enumerate(row) if word not in (0, sign)) & _MASK
        for row in words.tolist()
    ]
    return np.array(hashes, np.uint64)


def sparse_row_hashes(indptr: Array, indices: Array, words: Array, sign: int) -> Array:
    table = np.zeros((len(indptr) - 1, int(indices.max(initial=-1)) + 1), words.dtype)
    table[np.repeat(np.arange(len(table)), np.diff(indptr)), indices] = words
    return row_hashes(table, sign)


# -- synthetic.py -------------------------------------------------------------------------------


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
    return _csr([sorted(row) for row in rows])


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


# -- spmm.py ------------------------------------------------------------------------------------
# In float32 and in the order of the edges, each operation rounded by itself: equal to the bit.


def spmm(indptr: Array, indices: Array, weights: Array, h: Array) -> Array:
    out = np.zeros((len(indptr) - 1, h.shape[1]), np.float32)
    for k, (start, stop) in enumerate(pairwise(indptr.tolist())):
        for e in range(start, stop):
            out[k] += weights[e] * h[indices[e]]
    return out


def propagate(p: Propagation, lo: int, rows: int, h: Array) -> Array:
    scaled = p.col[:, None] * h
    out = np.zeros((rows, h.shape[1]), np.float32)
    for k, i in enumerate(range(lo, lo + rows)):
        if p.loops:
            out[k] = scaled[i]
        for e in range(p.indptr[i], p.indptr[i + 1]):
            term = scaled[p.indices[e]]
            out[k] += p.values[e] * term if len(p.values) else term
        out[k] *= p.row[i]
    return out


# -- dense.py -----------------------------------------------------------------------------------


def product(a: Array, ids: Array | None, a_turned: bool, b: Array, b_turned: bool) -> Array:
    left = (a if ids is None else a[ids]).astype(np.float64)
    right = b.astype(np.float64)
    return (left.T if a_turned else left) @ (right.T if b_turned else right)


# -- activations.py -----------------------------------------------------------------------------


def elu(z: Array) -> Array:
    return np.where(z > 0, z, np.expm1(np.minimum(z.astype(np.float64), 0.0)))
