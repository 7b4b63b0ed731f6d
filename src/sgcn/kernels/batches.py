"""Whole batches in one call.

A thread that comes back from a kernel has to wait for the GIL; with a few threads, and batches of
less than a millisecond, that is what limits them. So all layers are drawn by one call, and so are
the loss weights: NumPy lets the GIL go as well.

A block is (indptr, indices, weights, sources, places of the rows among them); its rows are the
sources of the block before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from sgcn.kernels.blocks import (
    exact_block,
    labor_block,
    ladies_block,
    law_block,
    neighbor_block,
    rescale_rows,
    restricted_block,
    row_pointers,
    unique_counts,
)
from sgcn.kernels.random import permutation
from sgcn.kernels.subgraphs import node_block, reweight_parts


@njit(nogil=True, cache=True)
def distinct(seeds: Any, position: Any) -> Any:
    """The distinct seeds in order of first appearance, and their shares of all seeds."""
    rows, counts = unique_counts(seeds, position)
    shares = np.empty(len(rows), np.float32)
    for k in range(len(rows)):
        shares[k] = counts[k] / len(seeds)
    return rows, shares


@njit(nogil=True, cache=True)
def _neighbor(
    p: Any, rows: Any, size: int, stream: Any, target: Any, position: Any, mark: Any
) -> Any:
    indptr, indices, weights, src = neighbor_block(p, rows, size, stream, position, mark)
    rescale_rows(indptr, weights, rows, target)
    return indptr, indices, weights, src, np.arange(len(rows)).astype(np.int32)


@njit(nogil=True, cache=True)
def neighbor_batch(
    p: Any, seeds: Any, sizes: Any, streams: Any, target: Any, position: Any, mark: Any
) -> Any:
    """`neighbor_block` for every layer, the last one first; rows of the first, and their shares."""
    rows, shares = distinct(seeds, position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        block = _neighbor(p, above, sizes[layer], streams[layer], target, position, mark)
        drawn.append(block)
        above = block[3]
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def vrgcn_batch(
    p: Any, seeds: Any, sizes: Any, streams: Any, target: Any, position: Any, mark: Any
) -> Any:
    """`neighbor_batch`, and P[R, :] of every layer as well."""
    rows, shares, drawn = neighbor_batch(p, seeds, sizes, streams, target, position, mark)
    above, exact = rows, []
    for layer in range(len(sizes)):
        indptr = row_pointers(p, above)
        indices, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        src = exact_block(p, above, indptr, indices, weights, position)
        exact.append((indptr, indices, weights, src, np.arange(len(above)).astype(np.int32)))
        above = drawn[layer][3]
    return rows, shares, drawn, exact


@njit(nogil=True, cache=True)
def labor_batch(p: Any, seeds: Any, sizes: Any, streams: Any, target: Any, position: Any) -> Any:
    """`labor_block` for every layer, as in `neighbor_batch`."""
    rows, shares = distinct(seeds, position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        indptr, indices, weights, src = labor_block(
            p, above, sizes[layer], streams[layer], position
        )
        rescale_rows(indptr, weights, above, target)
        drawn.append((indptr, indices, weights, src, np.arange(len(above)).astype(np.int32)))
        above = src
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def ladies_batch(
    p: Any,
    seeds: Any,
    sizes: Any,
    keep: bool,
    stratified: bool,
    streams: Any,
    position: Any,
    member: Any,
    mass: Any,
    sums: Any,
    peaks: Any,
    target: Any,
) -> Any:
    """`ladies_block` for every layer, as in `neighbor_batch`."""
    rows, shares = distinct(seeds, position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        size, stream = sizes[layer], streams[layer]
        block = ladies_block(
            p, above, size, keep, stratified, stream, position, member, mass, sums, peaks, target
        )
        drawn.append(block)
        above = block[3]
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def law_batch(
    p: Any,
    seeds: Any,
    sizes: Any,
    keep: bool,
    law: Any,
    threshold: Any,
    alias: Any,
    streams: Any,
    position: Any,
    member: Any,
    target: Any,
) -> Any:
    """`law_block` for every layer, as in `neighbor_batch`."""
    rows, shares = distinct(seeds, position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        size, stream = sizes[layer], streams[layer]
        block = law_block(
            p, above, keep, law, threshold, alias, size, stream, position, member, target
        )
        drawn.append(block)
        above = block[3]
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def node_batch(
    p: Any,
    law: Any,
    threshold: Any,
    alias: Any,
    size: int,
    stream: Any,
    position: Any,
    member: Any,
    target: Any,
    mask: Any,
    seeds: int,
) -> Any:
    """`node_block`, weighed, with loss weights: the inverse chance of the nodes in ``mask``."""
    indptr, indices, weights, nodes, places, kept = node_block(
        p, law, threshold, alias, size, stream, position, member
    )
    rescale_rows(indptr, weights, nodes, target)
    shares = np.empty(len(nodes), np.float32)
    for k in range(len(nodes)):
        shares[k] = mask[nodes[k]] / (kept[k] * seeds)
    return indptr, indices, weights, nodes, places, shares


@njit(nogil=True, cache=True)
def part_batch(
    p: Any,
    part: Any,
    order: Any,
    starts: Any,
    step: int,
    taken: int,
    between: float,
    stream: Any,
    position: Any,
    member: Any,
    target: Any,
    mask: Any,
    share: float,
) -> Any:
    """P on the ``taken`` parts of this step, entries between two of them times ``between``.

    Nodes of ``mask`` have the loss weight ``share``.
    """
    parts = len(starts) - 1
    turn = permutation(parts, stream)
    chosen = np.empty(taken, np.int64)
    count = 0
    for k in range(taken):
        chosen[k] = turn[(step * taken + k) % parts]
        count += starts[chosen[k] + 1] - starts[chosen[k]]
    nodes = np.empty(count, np.int32)
    out = 0
    for c in chosen:
        for k in range(starts[c], starts[c + 1]):
            nodes[out] = order[k]
            out += 1
    ones = np.ones(count, np.float32)
    indptr, indices, weights, places = restricted_block(p, nodes, nodes, ones, member, position)
    if between != 1.0:
        reweight_parts(indptr, indices, weights, part[nodes], between)
    rescale_rows(indptr, weights, nodes, target)
    shares = np.empty(count, np.float32)
    for k in range(count):
        shares[k] = mask[nodes[k]] * share
    return indptr, indices, weights, nodes, places, shares
