"""Samplers: the shape of every batch on any graph, and the law that each one draws from."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import twins
from helpers import (
    LEVEL,
    SMALL,
    TINY,
    assert_scratch_is_clean,
    check_batch,
    chi_square,
    dense_block,
    digest,
    graphs,
    propagation_of,
    weighted_by,
    zoo_graph,
)
from sgcn import SAMPLERS, Graph, Key, NodeSet, SgcnError, make_sampler
from sgcn.kernels import LadiesLaw, blocks, subgraphs
from sgcn.rng import Stream
from sgcn.samplers.base import column_law

LAYER_WISE = ("fastgcn", "ladies")
NODE_WISE = ("neighbor", "vrgcn", "labor")
SUBGRAPH = ("saint-node", "saint-edge", "saint-walk", "cluster")


# -- any sampler on any graph -------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["unbiased", "hajek", "row"])
@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=50)
@given(graph=graphs(), depth=st.integers(1, 3), key=st.integers(0, 1000), data=st.data())
def test_structure(name, weighting, graph, depth, key, data):
    """Any graph, any seeds (none, duplicates), any depth, sizes below and beyond the candidates."""
    sampler = weighted_by(SMALL[name], weighting)
    size = data.draw(st.sampled_from([1, 3, 100]))
    for option in ("sizes", "size"):
        if hasattr(sampler, option):
            sampler = dataclasses.replace(sampler, **{option: size})
    seeds = data.draw(st.lists(st.integers(0, len(graph) - 1), max_size=8))

    batch = sampler.sample(graph, seeds, Key(key), depth)
    check_batch(graph, batch, depth)
    assert_scratch_is_clean()
    assert digest(sampler.sample(graph, seeds, Key(key), depth)) == digest(batch)

    assert len(batch.exact) == (depth if name == "vrgcn" else 0)
    if not sampler.draws_nodes:
        assert batch.nodes.tolist() == list(dict.fromkeys(seeds))
        shares = [seeds.count(i) / len(seeds) for i in batch.nodes]
        np.testing.assert_allclose(batch.loss_weights, shares, rtol=1e-6)
    else:
        assert all(block is batch.blocks[0] for block in batch.blocks)
        assert set(batch.nodes[batch.loss_weights > 0]) == set(seeds) & set(batch.nodes)


@pytest.mark.parametrize("name", SMALL)
def test_zoo(graph, name):
    """The same on graphs with a name, at the sampler's own default sizes."""
    batch = make_sampler(SMALL[name].name).sample(graph, range(len(graph)), Key(0), 3)
    check_batch(graph, batch, 3)
    assert_scratch_is_clean()


@pytest.mark.parametrize("name", NODE_WISE)
def test_enough_neighbours_is_the_exact_block(graph, name):
    sampler = make_sampler(name, sizes=1000)
    exact = make_sampler("exact").sample(graph, range(len(graph)), Key(0))
    batch = sampler.sample(graph, range(len(graph)), Key(0))
    for block, whole in zip(batch.blocks, exact.blocks, strict=True):
        np.testing.assert_array_equal(block.indices, whole.indices)
        np.testing.assert_allclose(block.weights, whole.weights, rtol=2.0**-22)


@given(graph=graphs(), data=st.data())
def test_exact_is_p(graph, data):
    seeds = data.draw(st.lists(st.integers(0, len(graph) - 1), unique=True))
    P = propagation_of(graph)
    for sampler in (make_sampler("exact"), make_sampler("vrgcn")):
        batch = sampler.sample(graph, seeds, Key(0), depth=2)
        for block, live in zip(batch.exact or batch.blocks, batch.blocks, strict=True):
            M = dense_block(block, len(graph))
            np.testing.assert_allclose(M[block.dst], P[block.dst], rtol=2.0**-20, atol=TINY)
            np.testing.assert_array_equal(block.dst, live.dst)


def test_sizes_of_each_layer():
    """Layer 1, next to the features, comes first."""
    graph = zoo_graph("hub")
    batch = make_sampler("neighbor", sizes=(2, 5)).sample(graph, [0], Key(0))
    assert [np.diff(block.indptr)[0] for block in batch.blocks] == [3, 6]  # the node itself too
    with pytest.raises(SgcnError, match=r"^sizes has 2 entries \(2, 5\), expected .* the 3 layers"):
        make_sampler("neighbor", sizes=(2, 5)).sample(graph, [0], Key(0), depth=3)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([0, 60], "seeds hold node 60, expected ids from 0 to 59"),
        ([-1], "seeds hold node -1, expected ids from 0 to 59"),
        ([0.5], r"seeds are float64 of shape \(1,\), expected a vector of whole node ids"),
        ([[0]], r"seeds are int64 of shape \(1, 1\), expected a vector of whole node ids"),
        (NodeSet([0], 99), "seeds are a NodeSet of a graph with 99 nodes, expected 60"),
    ],
)
def test_bad_seeds_get_one_sentence(name, seeds, message):
    with pytest.raises(SgcnError, match=f"^{message}$"):
        make_sampler(name).sample(zoo_graph("power-law"), seeds, Key(0))


@pytest.mark.parametrize("name", SAMPLERS)
def test_bad_depth_gets_one_sentence(name):
    with pytest.raises(SgcnError, match=r"^depth is 0, expected at least one layer$"):
        make_sampler(name).sample(zoo_graph("hub"), [0], Key(0), depth=0)


@pytest.mark.parametrize("name", SMALL)
def test_keys_matter(name):
    """Seed and step change what is drawn; `exact` draws nothing."""
    graph = zoo_graph("power-law")
    keys = [Key(0), Key(1), Key(0, 1), Key(0, 0, 1)]
    drawn = {digest(SMALL[name].sample(graph, [0, 1, 2], key)) for key in keys}
    assert len(drawn) == (1 if name == "exact" else 4)


# -- keep_destinations --------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYER_WISE)
@given(graph=graphs(), size=st.integers(1, 20), key=st.integers(0, 1000), data=st.data())
def test_kept_destinations_are_sources_and_exact(name, graph, size, key, data):
    seeds = data.draw(st.lists(st.integers(0, len(graph) - 1)))
    sampler = make_sampler(name, sizes=size, weighting="unbiased", keep_destinations=True)
    P = propagation_of(graph)
    for block in sampler.sample(graph, seeds, Key(key), depth=3).blocks:
        assert (block.dst_in_src >= 0).all()
        inside = np.ix_(block.dst, block.dst)
        M = dense_block(block, len(graph))
        np.testing.assert_allclose(M[inside], P[inside], rtol=2.0**-20, atol=TINY)


@pytest.mark.parametrize("name", LAYER_WISE)
def test_destinations_may_be_missing_among_the_sources(name):
    sampler = make_sampler(name, sizes=2, keep_destinations=False)
    (block,) = sampler.sample(zoo_graph("power-law"), range(60), Key(0), depth=1).blocks
    assert (block.dst_in_src == -1).any()


# -- the laws -----------------------------------------------------------------------------------
# Every law is tested at the level LEVEL on fixed seeds, and against a wrong one that must fail.


def star(leaves: int) -> Graph:
    return Graph.from_edges(np.zeros(leaves, int), np.arange(1, leaves + 1), self_loops=False)


def kept_by(sampler, graph: Graph, row: int, samples: int) -> list[tuple[int, ...]]:
    """Which neighbours ``row`` keeps in each sample."""
    kept = []
    for epoch in range(samples):
        (block,) = sampler.sample(graph, [row], Key(3, epoch), depth=1).blocks
        kept.append(tuple(sorted(block.src[block.indices].tolist())))
    return kept


@pytest.mark.parametrize("name", ["neighbor", "vrgcn"])
def test_neighbor_draws_every_subset_alike(name):
    """All 15 pairs of 6 neighbours, chi-square with 14 degrees of freedom."""
    kept = kept_by(make_sampler(name, sizes=2), star(6), 0, samples=6000)
    counts = [kept.count(pair) for pair in itertools.combinations(range(1, 7), 2)]
    assert sum(counts) == 6000
    assert chi_square(counts, np.full(15, 400.0)) > LEVEL
    wrong = np.linspace(0.8, 1.2, 15) * 400
    assert chi_square(counts, wrong) < LEVEL


def test_labor_keeps_neighbours_independently_with_chance_size_over_degree():
    """Counts of 6 neighbours are independent binomials: sum of z^2 is chi-square with 6."""
    samples, degree, size = 6000, 6, 2
    kept = kept_by(make_sampler("labor", sizes=size), star(degree), 0, samples)
    counts = np.array([sum(j in row for row in kept) for j in range(1, degree + 1)])

    def p_value(chance: float) -> float:
        z = (counts - samples * chance) / np.sqrt(samples * chance * (1 - chance))
        return float(stats.chi2.sf((z**2).sum(), degree))

    assert p_value(size / degree) > LEVEL
    assert p_value(1.1 * size / degree) < LEVEL
    # The number kept is binomial, not fixed: that is what independence means.
    numbers = np.bincount([len(row) for row in kept], minlength=degree + 1)
    expected = samples * stats.binom.pmf(np.arange(degree + 1), degree, size / degree)
    numbers[5], expected[5] = numbers[5:].sum(), expected[5:].sum()  # one cell for the tail
    assert chi_square(numbers[:6], expected[:6]) > LEVEL


def test_labor_rows_agree_on_whom_they_keep():
    """Of common neighbours, a row of smaller degree keeps all that a row of larger degree keeps."""
    small, large = np.arange(2, 8), np.arange(2, 14)
    src, dst = np.concatenate([small, large]), np.repeat([0, 1], [6, 12])
    graph = Graph.from_edges(src, dst, directed=True, self_loops=False)
    sampler = make_sampler("labor", sizes=3)
    for step in range(200):
        (block,) = sampler.sample(graph, [0, 1], Key(0, 0, step), depth=1).blocks
        M = dense_block(block, len(graph)) > 0
        assert set(np.flatnonzero(M[1])) & set(small) <= set(np.flatnonzero(M[0]))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", LAYER_WISE)
@pytest.mark.parametrize("rows", [3, 17])
def test_layer_wise_draws_follow_their_law(name, keep, rows):
    """p_j ~ squared column norm of P, over all rows (fastgcn) or the destinations (ladies).

    `ladies` by its candidates; `test_ladies.py` has its draws by entries.

    With keep_destinations, over the other nodes. Counts come back from the factor of a source,
    count / (s p), which must make them whole. 17 of the 20 nodes hold most of the mass: `fastgcn`
    then lists the others instead of repeating draws that fall on what is kept.
    """
    graph = ring_with_hub()
    P, seeds, size, samples = propagation_of(graph), np.arange(rows, dtype=np.int32), 5, 4000
    law = (P**2).sum(axis=0) if name == "fastgcn" else (P[seeds] ** 2).sum(axis=0)
    law /= law.sum()
    assert name == "ladies" or (law[seeds].sum() > 0.8) == (rows == 17)
    if keep:
        law[seeds] = 0
        law /= law.sum()

    head = len(seeds) if keep else 0
    counts = np.zeros(20)
    for epoch in range(samples):
        stream = Key(5, epoch).stream(1)
        position = np.full(20, -1, np.int32)
        if name == "fastgcn":
            law_of = column_law(graph)
            src, factor = blocks.law_sources(law_of, seeds[:head], size, stream, position)
        else:
            src, factor = blocks.ladies_sources(
                graph.propagation, seeds, size,
                LadiesLaw(keep, False, *blocks.square_sums(graph.propagation)),
                stream, position, np.zeros(20),
            )  # fmt: skip
        np.testing.assert_array_equal(src[:head], seeds[:head])
        assert (factor[:head] == 1).all()
        count = factor[head:] * size * law[src[head:]]
        np.testing.assert_allclose(count, np.rint(count), rtol=1e-5)
        assert np.rint(count).sum() == size
        counts[src[head:]] += np.rint(count)

    open_ = law > 0
    assert not counts[~open_].any()
    assert chi_square(counts[open_], samples * size * law[open_]) > LEVEL
    uniform = np.full(open_.sum(), samples * size / open_.sum())
    assert chi_square(counts[open_], uniform) < LEVEL


def ring_with_hub() -> Graph:
    """Twenty nodes: a ring, so that nobody is alone, and a hub with half of them."""
    ring = np.arange(20)
    spokes = ring[2:20:2]
    ends = [*ring, *np.zeros_like(spokes)], [*((ring + 1) % 20), *spokes]
    return Graph.from_edges(*ends, normalization="row")


def test_saint_draws_edges_by_its_definition():
    """p(u, v) ~ 1/deg(u) + 1/deg(v) over undirected edges (GraphSAINT, its edge sampler)."""
    graph = zoo_graph("isolated")
    degrees, draws = graph.degrees, 200_000
    linked = np.flatnonzero(degrees).astype(np.int32)
    ends = subgraphs.edge_nodes(graph.propagation, linked, draws, Key(2).stream(0)).reshape(-1, 2)

    rows = np.repeat(np.arange(len(graph)), degrees)
    u, v = np.stack([rows, graph.indices])[:, rows < graph.indices]
    law = 1 / degrees[u] + 1 / degrees[v]
    law /= law.sum()
    low, high = ends.min(axis=1), ends.max(axis=1)
    drawn = np.zeros((len(graph), len(graph)))
    np.add.at(drawn, (low, high), 1)
    assert drawn.sum() == drawn[u, v].sum()
    assert chi_square(drawn[u, v], draws * law) > LEVEL
    assert chi_square(drawn[u, v], np.full(len(u), draws / len(u))) < LEVEL  # uniform edges

    twin = twins.subgraphs.edge_law(graph.propagation)
    np.testing.assert_allclose((twin + twin.T)[u, v], law, rtol=1e-12)


def test_saint_walks_uniformly():
    """After k steps of a uniform root the law is 1/N times the k-th power of the walk."""
    graph = zoo_graph("isolated")
    A = propagation_of(graph.with_propagation("row", self_loops=False))
    A[graph.degrees == 0, graph.degrees == 0] = 1  # a walk from an isolated node stays
    law = np.full(len(graph), 1 / len(graph))
    roots = 60_000
    walks = subgraphs.walk_nodes(graph.propagation, roots, 3, Key(2).stream(0)).reshape(roots, 4)
    for step in range(4):
        counts = np.bincount(walks[:, step], minlength=len(graph))
        assert chi_square(counts, roots * law) > LEVEL
        law = law @ A
    assert chi_square(np.bincount(walks[:, 3], minlength=75), np.full(75, roots / 75)) < LEVEL


def test_pre_sampling_is_independent_of_the_samples():
    """The counts behind the walk variant do not hold the samples of any key a user can name."""
    key = Key(0, 0, 0)
    assert Stream.PRESAMPLING != Stream.LAYER
    assert key.stream(Stream.PRESAMPLING) != key.stream(Stream.LAYER)


def test_cluster_takes_whole_parts_each_once_a_pass():
    graph = zoo_graph("power-law")
    sampler = make_sampler("cluster", parts=6, parts_per_batch=2)
    sets = [frozenset(sampler.sample(graph, [0], Key(0, 4, s)).nodes.tolist()) for s in range(3)]
    assert sum(map(len, sets)) == len(frozenset.union(*sets)) == 60
    again = [frozenset(sampler.sample(graph, [0], Key(0, 5, s)).nodes.tolist()) for s in range(3)]
    assert set(again) != set(sets)


def test_cluster_chooses_every_set_of_parts_alike():
    """All 10 pairs of 5 parts over epochs, also in the batch that wraps around."""
    graph = zoo_graph("power-law")
    sampler = make_sampler("cluster", parts=5, parts_per_batch=2)
    for step in (0, 2):
        drawn = [
            tuple(sorted(sampler.sample(graph, [0], Key(0, e, step), 1).nodes.tolist()))
            for e in range(3000)
        ]
        counts = [drawn.count(nodes) for nodes in set(drawn)]
        assert len(counts) == 10
        assert chi_square(counts, np.full(10, 300.0)) > LEVEL


def test_more_parts_than_nodes():
    graph = zoo_graph("one-edge")
    batch = make_sampler("cluster", parts=50, parts_per_batch=50).sample(graph, [0, 1], Key(0))
    assert sorted(batch.nodes.tolist()) == [0, 1]
    np.testing.assert_allclose(dense_block(batch.blocks[0], 2), propagation_of(graph), rtol=1e-6)
