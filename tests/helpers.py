"""What several test files share: small graphs, a dense P, the invariants of a batch, statistics."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import stats

from sgcn import SAMPLERS, Batch, Block, Graph, Key, NodeSet, Sampler, make_sampler
from sgcn.samplers.base import scratch

# The error level of every statistical test: the chance that a right sampler fails it. Seeds are
# fixed, so a test that passes passes always.
LEVEL = 1e-6

# Comparisons in float32 are relative; below its smallest normal number there are no digits left.
TINY = 2.0**-126


# -- graphs -------------------------------------------------------------------------------------


def power_law(nodes: int = 60, edges: int = 240, seed: int = 0) -> tuple[Any, Any]:
    """End points of random edges with power-law degrees, duplicates and loops among them."""
    rng = np.random.default_rng(seed)
    chance = (1.0 + np.arange(nodes)) ** -0.8
    ends = rng.choice(nodes, (2, edges), p=chance / chance.sum())
    return ends[0], ends[1]


def zoo_graph(name: str, **options: Any) -> Graph:
    """A small graph with one awkward thing about it."""
    src, dst = power_law()
    match name:
        case "power-law":
            return Graph.from_edges(src, dst, **options)
        case "isolated":
            return Graph.from_edges(src, dst, nodes=75, **options)
        case "hub":
            return Graph.from_edges(np.zeros(30, int), np.arange(1, 31), **options)
        case "self-loops":
            return Graph.from_edges([0, 1, 1, 2, 3, 3], [0, 1, 2, 2, 4, 3], nodes=6, **options)
        case "weighted":
            weights = np.random.default_rng(1).gamma(2.0, size=len(src))
            return Graph.from_edges(src, dst, weights, **options)
        case "directed":
            return Graph.from_edges(src, dst, nodes=65, directed=True, **options)
        case "one-node":
            return Graph.from_edges([], [], nodes=1, **options)
        case "one-edge":
            return Graph.from_edges([0], [1], **options)
    raise KeyError(name)


ZOO = (
    "power-law",
    "isolated",
    "hub",
    "self-loops",
    "weighted",
    "directed",
    "one-node",
    "one-edge",
)


def dense_adjacency(graph: Graph) -> np.ndarray:
    """A, as stored, with an entry for every edge."""
    A = np.zeros((len(graph), len(graph)))
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.indptr))
    A[rows, graph.indices] = 1.0 if graph.values is None else graph.values
    return A


def dense_propagation(A: np.ndarray, normalization: str, self_loops: bool) -> np.ndarray:
    """P by its definition: D^-1/2 (A + I) D^-1/2 or D^-1 (A + I), with 1 on a loop's diagonal."""
    if self_loops:
        A = A - np.diag(A.diagonal()) + np.eye(len(A))
    degrees = A.sum(axis=1)
    inverse = np.divide(1.0, degrees, out=np.zeros(len(A)), where=degrees > 0)
    if normalization == "row":
        return inverse[:, None] * A
    return np.sqrt(inverse)[:, None] * A * np.sqrt(inverse)


def propagation_of(graph: Graph) -> np.ndarray:
    return dense_propagation(dense_adjacency(graph), graph.normalization, graph.self_loops)


@st.composite
def graphs(draw: Callable[..., Any], most: int = 12) -> Graph:
    """Any small graph: isolated nodes, hubs, loops, duplicates, weights, directions, both P."""
    n = draw(st.integers(1, most))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * n))
    if draw(st.booleans()):  # a hub
        edges += [(0, j) for j in range(1, n)]
    weights = None
    if draw(st.booleans()):
        weight = st.floats(0, 100, width=32, allow_subnormal=False)
        weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges)))
    ends = np.array(edges, int).reshape(-1, 2)
    return Graph.from_edges(
        ends[:, 0],
        ends[:, 1],
        weights,
        nodes=n,
        directed=draw(st.booleans()),
        normalization=draw(st.sampled_from(["sym", "row"])),
        self_loops=draw(st.booleans()),
    )


streams = st.integers(0, 2**64 - 1).map(np.uint64)


# -- samplers -----------------------------------------------------------------------------------

# Every sampler and variant at sizes that leave something out of a graph of ten nodes.
SMALL: dict[str, Sampler] = {
    "exact": make_sampler("exact"),
    "neighbor": make_sampler("neighbor", sizes=2),
    "vrgcn": make_sampler("vrgcn"),
    "labor": make_sampler("labor", sizes=2),
    "fastgcn": make_sampler("fastgcn", sizes=6, keep_destinations=False),
    "fastgcn-keep": make_sampler("fastgcn", sizes=5, keep_destinations=True),
    "ladies": make_sampler("ladies", sizes=6, keep_destinations=False),
    "ladies-keep": make_sampler("ladies", sizes=4, keep_destinations=True),
    "saint-node": make_sampler("saint", variant="node", size=8),
    "saint-edge": make_sampler("saint", variant="edge", size=4),
    "saint-walk": make_sampler("saint", variant="walk", size=3),
    "cluster": make_sampler("cluster", parts=5, parts_per_batch=2),
}
assert {sampler.name for sampler in SMALL.values()} == set(SAMPLERS)


def weighted_by(sampler: Sampler, weighting: str) -> Sampler:
    """``sampler`` with another weighting; `exact` has none."""
    if sampler.name == "exact":
        return sampler
    return dataclasses.replace(sampler, weighting=weighting)  # type: ignore[call-arg]  # not in base


def dense_block(block: Block, n: int) -> np.ndarray:
    """M as an n x n matrix over global ids; rows that are no destinations stay zero."""
    M = np.zeros((n, n))
    M[entry_rows(block), block.src[block.indices]] = block.weights
    return M


def entry_rows(block: Block) -> np.ndarray:
    """The destination (global id) of every entry."""
    return np.repeat(block.dst, np.diff(block.indptr))


def check_block(graph: Graph, block: Block) -> None:
    """Everything that a block promises, whatever drew it."""
    assert (block.indptr.dtype, block.indices.dtype) == (np.int64, np.int32)
    assert block.weights.dtype == np.float32
    assert block.src.dtype == block.dst.dtype == block.dst_in_src.dtype == np.int32
    assert block.shape == (len(block.dst), len(block.src))

    assert len(block.indptr) == len(block.dst) + 1
    assert block.indptr[0] == 0
    assert block.indptr[-1] == block.edges == len(block.weights)
    assert (np.diff(block.indptr) >= 0).all()
    for ids in (block.src, block.dst):
        assert len(np.unique(ids)) == len(ids)
        assert ((ids >= 0) & (ids < len(graph))).all()
    assert ((block.indices >= 0) & (block.indices < len(block.src))).all()

    place = {int(j): k for k, j in enumerate(block.src)}
    assert block.dst_in_src.tolist() == [place.get(int(i), -1) for i in block.dst]

    assert np.isfinite(block.weights).all()
    assert (block.weights >= 0).all()
    rows, cols = entry_rows(block), block.src[block.indices]
    assert len(set(zip(rows.tolist(), cols.tolist(), strict=True))) == block.edges
    stored = dense_adjacency(graph) > 0
    assert (stored | (np.eye(len(graph)) > 0) if graph.self_loops else stored)[rows, cols].all()


def check_batch(graph: Graph, batch: Batch, depth: int) -> None:
    assert len(batch.blocks) == depth
    for block in (*batch.blocks, *batch.exact):
        check_block(graph, block)
    for below, above in zip(batch.blocks, batch.blocks[1:], strict=False):
        assert below.dst is above.src
    assert batch.nodes is batch.blocks[-1].dst
    assert batch.inputs is batch.blocks[0].src
    assert batch.edges == sum(block.edges for block in batch.blocks)
    assert batch.loss_weights.dtype == np.float32
    assert batch.loss_weights.shape == batch.nodes.shape
    assert np.isfinite(batch.loss_weights).all()
    assert (batch.loss_weights >= 0).all()


def assert_scratch_is_clean() -> None:
    """No kernel left a trace in this thread's scratch arrays."""
    for name, array in scratch._arrays.items():
        assert (array == (-1 if name == "position" else 0)).all(), name


def digest(*batches: Batch) -> str:
    """A hash of every bit of the batches."""
    state = hashlib.sha256()
    for batch in batches:
        for block in (*batch.blocks, *batch.exact):
            for field in dataclasses.fields(block):
                array = getattr(block, field.name)
                state.update(f"{field.name} {array.dtype} {array.shape}".encode())
                state.update(array.tobytes())
        state.update(batch.loss_weights.tobytes())
    return state.hexdigest()


# -- statistics ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Moments:
    """Sums over many samples of M and of its squares, and how often each row was kept."""

    kept: np.ndarray
    nonzero: np.ndarray
    total: np.ndarray
    squares: np.ndarray
    loss: np.ndarray
    loss_squares: np.ndarray
    samples: int


def sample_moments(
    graph: Graph,
    sampler: Sampler,
    seeds: Any,
    samples: int,
    change: Callable[[Block], np.ndarray] = lambda block: block.weights,
    seed: int = 7,
) -> Moments:
    """Moments of M over keys (seed, 0..samples-1); ``change`` may put other weights in place."""
    n, nodes = len(graph), NodeSet(seeds, len(graph))
    places, values, rows, loss = [], [], [], []
    for epoch in range(samples):
        batch = sampler.sample(graph, nodes, Key(seed, epoch), depth=1)
        (block,) = batch.blocks
        places.append(entry_rows(block).astype(np.int64) * n + block.src[block.indices])
        values.append(np.asarray(change(block), np.float64))
        rows.append(block.dst)
        loss.append(batch.loss_weights.astype(np.float64))
    place, value = np.concatenate(places), np.concatenate(values)
    row, share = np.concatenate(rows), np.concatenate(loss)

    def summed(weights: np.ndarray) -> np.ndarray:
        return np.bincount(place, weights, n * n).reshape(n, n)

    return Moments(
        kept=np.bincount(row, minlength=n),
        nonzero=summed(value != 0),
        total=summed(value),
        squares=summed(value**2),
        loss=np.bincount(row, share, n),
        loss_squares=np.bincount(row, share**2, n),
        samples=samples,
    )


def z_test(total: Any, squares: Any, count: Any, expected: Any, extra_variance: Any = 0.0) -> float:
    """The chance, at most, of means this far from ``expected`` if they were right.

    A two-sided z-test of every mean total / count, Bonferroni over all of them. Differences below
    float32 rounding (2**-20 relative) count as none, so a quantity without variance has to be
    right exactly. ``extra_variance`` is that of ``expected`` itself, where it is an estimate.
    """
    mean = total / count
    variance = np.maximum(squares / count - mean**2, 0.0) / count + extra_variance
    gap = np.maximum(np.abs(mean - expected) - 2.0**-20 * np.abs(expected), 0.0)
    z = np.divide(gap, np.sqrt(variance), out=np.where(gap > 0, np.inf, 0.0), where=variance > 0)
    return float(min(1.0, 2 * stats.norm.sf(z.max(initial=0.0)) * max(z.size, 1)))


def chi_square(observed: Any, expected: Any) -> float:
    """p-value of counts against their expectation (multinomial, one constraint)."""
    observed, expected = np.asarray(observed, float), np.asarray(expected, float)
    assert expected.min() > 20, "too few for the chi-square approximation"
    return float(stats.chisquare(observed, expected).pvalue)
