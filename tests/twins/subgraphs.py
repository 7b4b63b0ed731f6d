"""Twins of `kernels/subgraphs.py`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sgcn.kernels import Propagation
from twins.random import below
from twins.words import Array, int32, neighbours


def edge_law(p: Propagation) -> npt.NDArray[np.float64]:
    """Q_ij: the chance that one draw takes the edge (i, j), by a linked node i, then a neighbour.

    Of an undirected graph Q_ij + Q_ji is GraphSAINT's law, (1/deg(i) + 1/deg(j)) / linked.
    """
    degrees = np.diff(p.indptr)
    linked = max(int((degrees > 0).sum()), 1)
    law = np.zeros((len(degrees), len(degrees)))
    for i, degree in enumerate(degrees):
        for j, _ in neighbours(p, i):
            law[i, j] = 1 / (linked * int(degree))
    return law


def edge_nodes(p: Propagation, linked: Array, draws: int, stream: int) -> Array:
    nodes: list[int] = []
    for d in range(draws if len(linked) else 0):
        i = int(linked[below(stream, 2 * d, len(linked))])
        cols = [j for j, _ in neighbours(p, i)]
        nodes += [i, cols[below(stream, 2 * d + 1, len(cols))]]
    return int32(nodes)


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
        # 1 - (1 - p)^n as a sum: p (1 + (1 - p) + ... + (1 - p)^(n - 1))
        missed = (1 - law[k]) ** np.arange(draws)
        out[e] *= counts[other] / (draws * law[other]) * (missed.sum() / missed[:-1].sum())
    return out.astype(np.float32)


def walk_nodes(p: Propagation, roots: int, length: int, stream: int) -> Array:
    nodes: list[int] = []
    for _ in range(roots):
        nodes.append(below(stream, len(nodes), len(p.row)))
        for _ in range(length):
            cols = [j for j, _ in neighbours(p, nodes[-1])] or [nodes[-1]]
            nodes.append(cols[below(stream, len(nodes), len(cols))])
    return int32(nodes)


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
