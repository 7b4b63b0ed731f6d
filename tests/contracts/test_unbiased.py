"""Contract 1: E[M | row kept] = P for `unbiased`, the documented bias for `hajek` and `row`.

Every sampler x P (sym, row) x self-loops x graph. Each test samples with a fixed seed and asks
whether the mean of every entry agrees with P: a z-test, Bonferroni over the entries, at the error
level `LEVEL`. The same test, on the same samples, must reject two wrong weightings: the importance
factor left out, and weights that are a tenth too large.

The walks of `saint` know the chance of an entry only by pre-sampling. The test pre-samples more
than a user would, and adds the variance of that estimate to the variance of the mean.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from helpers import (
    LEVEL,
    SMALL,
    Moments,
    dense_block,
    propagation_of,
    sample_moments,
    weighted_by,
    z_test,
)
from sgcn import Graph, Key, Loader, make_sampler
from sgcn.samplers import saint

SAMPLES = 5000
SEEDS = [0, 1, 2, 5, 8, 9]  # the hub, others, the isolated node
COVERAGE = 20_000
SUBGRAPH = [name for name in SMALL if SMALL[name].draws_nodes]


def small_graph(kind: str, normalization: str, self_loops: bool) -> Graph:
    """Ten nodes: a hub, two triangles, a leaf, an isolated node."""
    src = [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 7]
    dst = [1, 2, 3, 4, 5, 6, 2, 3, 4, 5, 6, 8]
    options = {"nodes": 10, "normalization": normalization, "self_loops": self_loops}
    if kind == "undirected":
        return Graph.from_edges(src, dst, **options)
    src, dst = src + dst[3:9], dst + src[3:9]  # some edges in both directions
    return Graph.from_edges(src, dst, 1 + np.arange(18) % 3 / 4, directed=True, **options)


every_sampler = pytest.mark.parametrize("name", SMALL)
every_p = [
    pytest.mark.parametrize("kind", ["undirected", "weighted directed"]),
    pytest.mark.parametrize("normalization", ["sym", "row"]),
    pytest.mark.parametrize("self_loops", [True, False]),
]


def over_every_p(test):
    for mark in every_p:
        test = mark(test)
    return test


@functools.cache
def sampled(name: str, kind: str, normalization: str, self_loops: bool) -> tuple[Graph, Moments]:
    """The unbiased samples that several tests look at."""
    graph = small_graph(kind, normalization, self_loops)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saint, "_COVERAGE", COVERAGE)
        return graph, sample_moments(graph, weighted_by(SMALL[name], "unbiased"), SEEDS, SAMPLES)


def pre_sampling_variance(name: str, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Relative variances of the estimated chances: of entries given their row, and of nodes.

    A chance q estimated from C cases has relative variance (1 - q) / (q C). Others know theirs.
    """
    entries, nodes = np.zeros((len(graph), len(graph))), np.zeros(len(graph))
    if name == "saint-walk":
        samples, counts, pairs = SMALL[name]._presampled(graph)
        rows = np.repeat(np.arange(len(graph)), graph.degrees)
        chance = pairs / counts[rows]
        off = rows != graph.indices
        entries[rows[off], graph.indices[off]] = ((1 - chance) / (chance * counts[rows]))[off]
        nodes = (samples - counts) / (samples * counts)
    return entries, nodes


def entries_p_value(moments: Moments, P: np.ndarray, relative: np.ndarray, change=1.0) -> float:
    """p-value of the means of M times ``change``, over the entries of rows that were kept."""
    i, j = np.nonzero((P > 0) & (moments.kept[:, None] > 0))
    factor = np.broadcast_to(change, P.shape)[i, j]
    return z_test(
        moments.total[i, j] * factor,
        moments.squares[i, j] * factor**2,
        moments.kept[i],
        P[i, j],
        (P**2 * relative)[i, j],
    )


@every_sampler
@over_every_p
def test_unbiased_means(name, kind, normalization, self_loops):
    graph, moments = sampled(name, kind, normalization, self_loops)
    P = propagation_of(graph)
    relative, _ = pre_sampling_variance(name, graph)
    reached = (P > 0) & (moments.kept[:, None] > 0)
    assert moments.nonzero[reached].min() > 200, "too few for the normal approximation"
    assert not moments.total[P == 0].any()

    assert entries_p_value(moments, P, relative) > LEVEL

    # The test has power: it sees a tenth too much ...
    assert entries_p_value(moments, P, relative, change=1.1) < LEVEL
    # ... and the importance factor left out, as if every kept entry weighed P_ij.
    if name != "exact":
        i, j = np.nonzero(reached)
        hits = moments.nonzero[i, j]
        left_out = z_test(hits * P[i, j], hits * P[i, j] ** 2, moments.kept[i], P[i, j])
        assert left_out < LEVEL


@over_every_p
def test_the_published_factor_of_saint_forgets_that_the_row_is_kept(
    kind, normalization, self_loops
):
    """count / (s p) is unbiased for a row that is there anyway, not for one that was drawn too."""
    graph, moments = sampled("saint-node", kind, normalization, self_loops)
    P, size = propagation_of(graph), SMALL["saint-node"].size
    law = (P**2).sum(axis=0) / (P**2).sum()
    kept = 1 - (1 - law) ** size
    ratio = np.divide(1 - (1 - law) ** (size - 1), kept, out=np.ones(10), where=kept > 0)
    off_diagonal = np.where(np.eye(10) > 0, 1.0, ratio[:, None])
    assert entries_p_value(moments, P, np.zeros((10, 10))) > LEVEL
    assert entries_p_value(moments, P, np.zeros((10, 10)), change=off_diagonal) < LEVEL


def test_entries_between_parts_need_their_factor():
    """Cluster-GCN as published leaves P_ij between parts: biased, and the test sees it."""
    graph = small_graph("undirected", "sym", True)
    sampler = make_sampler(
        "cluster", parts=5, parts_per_batch=2, weighting="unbiased", rescale_between=False
    )
    moments = sample_moments(graph, sampler, SEEDS, SAMPLES)
    assert entries_p_value(moments, propagation_of(graph), np.zeros((10, 10))) < LEVEL


@pytest.mark.parametrize("name", [name for name in SMALL if not SMALL[name].draws_nodes])
@pytest.mark.parametrize("normalization", ["sym", "row"])
def test_layers_are_independent(name, normalization):
    """E[M2 M1] = P P: each layer is unbiased given the one above, with randomness of its own."""
    graph = small_graph("undirected", normalization, True)
    sampler = weighted_by(SMALL[name], "unbiased")
    total, squares = np.zeros((10, 10)), np.zeros((10, 10))
    for epoch in range(SAMPLES // 2):
        first, second = sampler.sample(graph, SEEDS, Key(11, epoch), depth=2).blocks
        product = dense_block(second, 10) @ dense_block(first, 10)
        total += product
        squares += product**2
    P = propagation_of(graph)
    i, j = np.nonzero(P @ P)
    i, j = np.stack([i, j])[:, np.isin(i, SEEDS)]
    count = np.full(len(i), SAMPLES // 2)
    assert z_test(total[i, j], squares[i, j], count, (P @ P)[i, j]) > LEVEL
    assert z_test(1.2 * total[i, j], 1.44 * squares[i, j], count, (P @ P)[i, j]) < LEVEL


# -- hajek and row ------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["hajek", "row"])
@pytest.mark.parametrize("name", [name for name in SMALL if name != "exact"])
@over_every_p
def test_rescaled_rows_have_their_sum(name, weighting, kind, normalization, self_loops):
    """`hajek`: the true row sum of P. `row`: 1. For every row that holds anything."""
    graph = small_graph(kind, normalization, self_loops)
    sampler = weighted_by(SMALL[name], weighting)
    P = propagation_of(graph)
    for epoch in range(100):
        for block in sampler.sample(graph, SEEDS, Key(1, epoch), depth=2).blocks:
            sums = dense_block(block, 10)[block.dst].sum(axis=1)
            wanted = P[block.dst].sum(axis=1) if weighting == "hajek" else np.ones(len(sums))
            np.testing.assert_allclose(sums, np.where(sums > 0, wanted, 0.0), rtol=2.0**-20)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "exact"])
def test_both_are_biased_and_hajek_less(name):
    """On a `sym` P, whose row sums are not 1: neither has the mean P, and `row` misses it by more.

    `hajek` is a ratio of random sums, biased wherever the columns of a row differ. The bias is
    measured as the sum of |E[M] - P| over the sum of P, in the rows that were kept.
    """
    graph = small_graph("undirected", "sym", True)
    P, bias = propagation_of(graph), {}
    for weighting in ("hajek", "row"):
        moments = sample_moments(graph, weighted_by(SMALL[name], weighting), SEEDS, 8000)
        assert entries_p_value(moments, P, np.zeros((10, 10))) < LEVEL
        rows = moments.kept > 0
        mean = moments.total[rows] / moments.kept[rows, None]
        bias[weighting] = np.abs(mean - P[rows]).sum() / P[rows].sum()
    assert bias["hajek"] < bias["row"]


# -- loss weights -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBGRAPH)
@over_every_p
def test_loss_weights_of_subgraphs(name, kind, normalization, self_loops):
    """E[loss weight of i] = 1 / |train|, zero for other nodes; wrong weights are rejected.

    A node that the sampler never draws (isolated, for edges) has no loss, whatever its weight.
    """
    graph, moments = sampled(name, kind, normalization, self_loops)
    _, relative = pre_sampling_variance(name, graph)
    assert not np.delete(moments.loss, SEEDS).any()
    train = np.array(SEEDS)[moments.kept[SEEDS] > 0]
    share = 1 / len(SEEDS)

    def p_value(total, squares) -> float:
        return z_test(total, squares, moments.samples, share, share**2 * relative[train])

    assert p_value(moments.loss[train], moments.loss_squares[train]) > LEVEL
    assert p_value(1.1 * moments.loss[train], 1.21 * moments.loss_squares[train]) < LEVEL
    plain = moments.kept[train] * share  # every kept node weighs 1 / |train|
    assert p_value(plain, plain * share) < LEVEL


@pytest.mark.parametrize("batch_size", [1, 2, 4, 6])
def test_loss_weights_of_shuffled_batches(batch_size):
    """Every step of an epoch, the short last one too, weighs a node by 1 / |train| on average."""
    graph = small_graph("undirected", "sym", True)
    loader = Loader(graph, SEEDS, make_sampler("exact"), batch_size=batch_size, threads=0)
    total, squares = np.zeros((len(loader), 10)), np.zeros((len(loader), 10))
    epochs = 1500
    for epoch in range(epochs):
        for step, batch in enumerate(loader.epoch(epoch)):
            assert batch.loss_weights.sum() == pytest.approx(1)
            total[step, batch.nodes] += batch.loss_weights
            squares[step, batch.nodes] += batch.loss_weights**2
    total, squares = total[:, SEEDS], squares[:, SEEDS]
    assert z_test(total, squares, epochs, 1 / len(SEEDS)) > LEVEL
    assert z_test(total * 1.4, squares * 1.96, epochs, 1 / len(SEEDS)) < LEVEL
