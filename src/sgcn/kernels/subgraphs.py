"""Kernels of the subgraph samplers (GraphSAINT, Cluster-GCN): one node set for all layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from sgcn.kernels.random import uniform


@njit(nogil=True, cache=True)
def edge_nodes(p: Any, linked: Any, draws: int, stream: Any) -> Any:
    """End points of ``draws`` edges with GraphSAINT's law p(u, v) ~ 1/deg(u) + 1/deg(v).

    A uniform node among the ``linked`` ones (degree > 0), then a uniform neighbour of it, has
    exactly this law, and needs no table of edges.
    """
    nodes = np.empty(2 * draws if len(linked) > 0 else 0, np.int32)
    for d in range(len(nodes) // 2):
        i = linked[np.int64(uniform(stream, 2 * d) * len(linked))]
        start = p.indptr[i]
        degree = p.indptr[i + 1] - start
        nodes[2 * d] = i
        nodes[2 * d + 1] = p.indices[start + np.int64(uniform(stream, 2 * d + 1) * degree)]
    return nodes


@njit(nogil=True, cache=True)
def edge_hits(p: Any) -> Any:
    """The probability that one drawn edge touches node v, times the number of linked nodes.

    Also sound for directed graphs: row i reads from j, and the edge (i, j) is drawn from row i.
    """
    hits = np.zeros(len(p.row), np.float64)
    for i in range(len(hits)):
        degree = p.indptr[i + 1] - p.indptr[i]
        if degree == 0:
            continue
        hits[i] += 1.0
        for e in range(p.indptr[i], p.indptr[i + 1]):
            if p.indices[e] != i:
                hits[p.indices[e]] += 1.0 / degree
    return hits


@njit(nogil=True, cache=True)
def _has_edge(p: Any, i: int, j: int) -> Any:
    """Whether row i, sorted, holds j."""
    low, high = p.indptr[i], p.indptr[i + 1]
    while low < high:
        middle = (low + high) // 2
        if p.indices[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low < p.indptr[i + 1] and p.indices[low] == j


@njit(nogil=True, cache=True)
def reweight_edges(
    p: Any, block: Any, nodes: Any, hits: Any, linked: int, draws: int, directed: bool
) -> None:
    """Divide off-diagonal entries, in place, by Pr(j kept | i kept) under ``draws`` edge draws.

    With a, b, q the probabilities that one draw touches i, j, both:
    Pr(i, j) = 1 - (1-a)^m - (1-b)^m + (1-a-b+q)^m.
    """
    indptr, indices, weights = block
    missed = (1.0 - hits[nodes] / linked) ** draws
    for k in range(len(nodes)):
        i = nodes[k]
        degree = p.indptr[i + 1] - p.indptr[i]
        for e in range(indptr[k], indptr[k + 1]):
            other = indices[e]
            if other == k:
                continue
            j = nodes[other]
            both = 1.0 / degree
            if not directed or _has_edge(p, j, i):
                both += 1.0 / (p.indptr[j + 1] - p.indptr[j])
            apart = max(0.0, 1.0 - (hits[i] + hits[j] - both) / linked) ** draws
            joint = 1.0 - missed[k] - missed[other] + apart
            weights[e] *= np.float32((1.0 - missed[k]) / joint)


@njit(nogil=True, cache=True)
def reweight_nodes(
    indptr: Any, indices: Any, weights: Any, counts: Any, law: Any, draws: int
) -> Any:
    """Multiply off-diagonal entries, in place, by count_j / (draws p_j), given that row i is kept.

    Given that i was drawn at least once, one draw fewer is free: E[count_j | i kept] is
    draws p_j (1 - (1-p_i)^(draws-1)) / (1 - (1-p_i)^draws), and that is what is divided by.
    By expm1 and log1p, which do not round a tiny p away. Returns every node's chance to be kept.
    """
    kept = np.empty(len(counts), np.float64)
    for k in range(len(counts)):
        missed = np.log1p(-law[k])  # the logarithm of one draw's chance to miss
        kept[k] = -np.expm1(draws * missed)
        rest = -np.expm1((draws - 1) * missed)
        for e in range(indptr[k], indptr[k + 1]):
            other = indices[e]
            if other != k:
                factor = counts[other] / (draws * law[other]) * (kept[k] / rest)
                weights[e] = np.float32(weights[e] * factor)
    return kept


@njit(nogil=True, cache=True)
def walk_nodes(p: Any, roots: int, length: int, stream: Any) -> Any:
    """Every node that ``roots`` uniform random walks of ``length`` steps visit, with repeats."""
    total = len(p.row)
    nodes = np.empty(roots * (length + 1), np.int32)
    out = 0
    for _ in range(roots):
        i = np.int64(uniform(stream, out) * total)
        nodes[out] = i
        out += 1
        for _ in range(length):
            start = p.indptr[i]
            degree = p.indptr[i + 1] - start
            if degree > 0:
                i = p.indices[start + np.int64(uniform(stream, out) * degree)]
            nodes[out] = i
            out += 1
    return nodes


@njit(nogil=True, cache=True)
def count_walks(
    p: Any, roots: int, length: int, streams: Any, position: Any, node_counts: Any, pair_counts: Any
) -> None:
    """GraphSAINT's pre-sampling: in how many of the samples each node, and each stored edge, is."""
    for stream in streams:
        nodes = walk_nodes(p, roots, length, stream)
        for i in nodes:
            position[i] = 0
        for i in nodes:
            if position[i] == 0:
                position[i] = 1
                node_counts[i] += 1
                for e in range(p.indptr[i], p.indptr[i + 1]):
                    if position[p.indices[e]] >= 0:
                        pair_counts[e] += 1
        for i in nodes:
            position[i] = -1


@njit(nogil=True, cache=True)
def reweight_walks(
    p: Any, indptr: Any, indices: Any, weights: Any, nodes: Any, node_counts: Any, pair_counts: Any
) -> None:
    """Divide off-diagonal entries, in place, by the estimate (C_ij + 1) / (C_i + 1).

    The sample at hand counts as one more, so nothing is ever divided by zero.
    """
    for k in range(len(nodes)):
        i = nodes[k]
        e = p.indptr[i]
        for out in range(indptr[k], indptr[k + 1]):
            other = indices[out]
            if other == k:
                continue
            while p.indices[e] != nodes[other]:  # both run through row i in the same order
                e += 1
            weights[out] *= np.float32((node_counts[i] + 1.0) / (pair_counts[e] + 1.0))


@njit(nogil=True, cache=True)
def reweight_parts(indptr: Any, indices: Any, weights: Any, part: Any, factor: float) -> None:
    """Multiply, in place, the entries between different parts by ``factor``."""
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            if part[k] != part[indices[e]]:
                weights[e] *= np.float32(factor)
