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
    law_sources,
    neighbor_block,
    rescale_rows,
    restricted_block,
    row_pointers,
    unique_counts,
)
from sgcn.kernels.subgraphs import reweight_nodes, reweight_parts


@njit(nogil=True, cache=True)
def distinct(seeds: Any, position: Any) -> Any:
    """The distinct seeds in order of first appearance, and their shares of all seeds."""
    rows, counts = unique_counts(seeds, position)
    return rows, (counts / len(seeds)).astype(np.float32)


@njit(inline="always")
def _block(rows: Any, parts: Any, target: Any) -> Any:
    """A block whose sources begin with its rows, with rows weighed."""
    indptr, indices, weights, src = parts
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
        parts = neighbor_block(p, above, sizes[layer], streams[layer], position, mark)
        drawn.append(_block(above, parts, target))
        above = parts[3]
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def vrgcn_batch(
    p: Any, seeds: Any, sizes: Any, streams: Any, target: Any, position: Any, mark: Any
) -> Any:
    """`neighbor_batch`, and P[R, :] of every layer as well."""
    rows, shares, drawn = neighbor_batch(p, seeds, sizes, streams, target, position, mark)
    above, exact = rows, []
    for below in drawn:
        indptr = row_pointers(p, above)
        indices, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
        src = exact_block(p, above, indptr, indices, weights, position)
        exact.append((indptr, indices, weights, src, below[4]))
        above = below[3]
    return rows, shares, drawn, exact


@njit(nogil=True, cache=True)
def labor_batch(p: Any, seeds: Any, sizes: Any, streams: Any, target: Any, position: Any) -> Any:
    """`labor_block` for every layer, as in `neighbor_batch`."""
    rows, shares = distinct(seeds, position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        parts = labor_block(p, above, sizes[layer], streams[layer], position)
        drawn.append(_block(above, parts, target))
        above = parts[3]
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def ladies_batch(
    p: Any, seeds: Any, sizes: Any, streams: Any, ladies: Any, scratch: Any, mass: Any, target: Any
) -> Any:
    """`ladies_block` for every layer, as in `neighbor_batch`."""
    rows, shares = distinct(seeds, scratch.position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        block = ladies_block(p, above, sizes[layer], ladies, streams[layer], scratch, mass, target)
        drawn.append(block)
        above = block[3]
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def law_batch(
    p: Any, seeds: Any, sizes: Any, streams: Any, columns: Any, keep: bool, scratch: Any,
    target: Any,
) -> Any:  # fmt: skip
    """FastGCN's block for every layer, as in `neighbor_batch`."""
    rows, shares = distinct(seeds, scratch.position)
    above, drawn = rows, []
    for layer in range(len(sizes)):
        head = above if keep else above[:0]
        src, factor = law_sources(columns, head, sizes[layer], streams[layer], scratch.position)
        indptr, indices, weights, places = restricted_block(p, above, src, factor, scratch)
        rescale_rows(indptr, weights, above, target)
        drawn.append((indptr, indices, weights, src, places))
        above = src
    return rows, shares, drawn


@njit(nogil=True, cache=True)
def node_batch(
    p: Any, columns: Any, size: int, stream: Any, scratch: Any, target: Any, mask: Any, seeds: int
) -> Any:
    """P on the nodes drawn, weighed, with loss weights: the inverse chance of those in ``mask``."""
    nobody = np.empty(0, np.int32)
    nodes, factor = law_sources(columns, nobody, size, stream, scratch.position)
    ones, law = np.ones(len(nodes), np.float32), columns.law[nodes]
    indptr, indices, weights, places = restricted_block(p, nodes, nodes, ones, scratch)
    counts = np.rint(factor * size * law)
    kept = reweight_nodes(indptr, indices, weights, counts, law, size)
    rescale_rows(indptr, weights, nodes, target)
    shares = (mask[nodes] / (kept * seeds)).astype(np.float32)
    return indptr, indices, weights, nodes, places, shares


@njit(nogil=True, cache=True)
def part_batch(
    p: Any, nodes: Any, part: Any, between: float, scratch: Any, target: Any, mask: Any,
    share: float,
) -> Any:  # fmt: skip
    """P on ``nodes``, entries between parts times ``between``; loss weights ``share`` or 0."""
    ones = np.ones(len(nodes), np.float32)
    indptr, indices, weights, places = restricted_block(p, nodes, nodes, ones, scratch)
    if between != 1.0:
        reweight_parts(indptr, indices, weights, part[nodes], between)
    rescale_rows(indptr, weights, nodes, target)
    return indptr, indices, weights, nodes, places, (mask[nodes] * share).astype(np.float32)
