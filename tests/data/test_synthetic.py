"""The generator: what it promises about counts, degrees, homophily, features and labels."""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pytest
import scipy.sparse as sp

from sgcn import SgcnError
from sgcn.data import load
from sgcn.data.synthetic import NAMED, Synthetic, parse_synthetic, synthetic
from sgcn.kernels import csr
from sgcn.kernels.synthetic import absorb_edges, rows_of_edges

SMALL = Synthetic(nodes=3_000, degree=20, features=32, classes=4, communities=8)
MULTI = replace(SMALL, classes=10, multi_label=True)

FIRST_INDICES = [21, 28, 35, 24, 46, 49, 30, 42]
FIRST_ROW = [0.71917498, 0.09758937]


def same(a, b):
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("indptr", "indices", "x", "y", "split")
    )


def test_same_seed_same_bits_for_any_number_of_threads():
    made = synthetic(SMALL, seed=3)
    assert same(made, synthetic(SMALL, seed=3))
    assert not same(made, synthetic(SMALL, seed=4))
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        assert same(made, synthetic(SMALL, seed=3))
    finally:
        numba.set_num_threads(before)


def test_bits_do_not_change_between_releases():
    graph = synthetic(Synthetic(nodes=50, degree=2.4, features=2, communities=2, classes=2))
    assert graph.indices[:8].tolist() == FIRST_INDICES
    assert np.allclose(graph.x[0], FIRST_ROW, rtol=0, atol=1e-7)


@pytest.mark.parametrize("spec", [SMALL, MULTI, replace(SMALL, communities=1, classes=1)])
def test_counts_are_exact(spec):
    graph = synthetic(spec)
    assert len(graph) == spec.nodes
    assert graph.edges == 2 * spec.edges
    assert csr.rows_are_sorted(graph.indptr, graph.indices)
    assert csr.is_symmetric(graph.indptr, graph.indices)
    assert csr.count_self_loops(graph.indptr, graph.indices) == 0
    assert graph.x.shape == (spec.nodes, spec.features)
    assert graph.x.dtype == np.float32
    assert np.bincount(graph.split).tolist() == [1800, 600, 600]
    if spec.multi_label:
        assert graph.y.shape == (spec.nodes, spec.classes)
        assert set(np.unique(graph.y)) == {0, 1}
    else:
        assert np.array_equal(np.unique(graph.y), np.arange(spec.classes))


def test_features_are_optional_and_change_nothing_else():
    bare, full = synthetic(SMALL, features=False), synthetic(SMALL)
    assert bare.x is None
    assert np.array_equal(bare.indices, full.indices)
    assert np.array_equal(bare.y, full.y)
    assert np.array_equal(bare.split, full.split)


def test_degrees_have_a_heavy_tail():
    degrees = np.sort(synthetic(replace(SMALL, hub=40.0), features=False).degrees)[::-1]
    assert degrees[0] > 10 * degrees.mean()
    assert degrees[: len(degrees) // 100].sum() > 0.1 * degrees.sum()  # 1 % of nodes, > 10 %
    assert np.median(degrees) < 0.75 * degrees.mean()
    flat = synthetic(replace(SMALL, hub=1.001), features=False).degrees
    assert flat.max() < 3 * flat.mean()


def test_power_is_the_exponent_of_the_degrees():
    spec = Synthetic(nodes=200_000, degree=20, communities=1, classes=1, power=3.0, hub=300.0)
    degrees = synthetic(spec, features=False).degrees
    tail = degrees[degrees >= 100]
    hill = 1.0 + len(tail) / np.log(tail / 99.5).sum()  # the estimator of Hill (1975)
    assert hill == pytest.approx(spec.power, abs=0.2)


@pytest.mark.parametrize("homophily", [0.0, 0.4, 0.9])
def test_homophily_is_the_one_asked_for(homophily):
    spec = replace(SMALL, homophily=homophily, classes=8, label_noise=0.0, hub=10.0)
    graph = synthetic(spec, features=False)
    ends = np.repeat(graph.y, graph.degrees), graph.y[graph.indices]
    assert np.mean(ends[0] == ends[1]) == pytest.approx(homophily, abs=0.04)


def nearest_centroid_accuracy(x, y, split):
    centroids = np.stack([x[(split == 0) & (y == c)].mean(0) for c in range(y.max() + 1)])
    distance = ((x[split == 2][:, None] - centroids) ** 2).sum(-1)
    return np.mean(distance.argmin(1) == y[split == 2])


def test_neighbourhoods_tell_more_than_own_features():
    graph = synthetic(replace(SMALL, classes=8))
    p = graph.matrix()
    own = nearest_centroid_accuracy(graph.x, graph.y, graph.split)
    averaged = nearest_centroid_accuracy(p @ (p @ graph.x), graph.y, graph.split)
    assert 0.2 < own < 0.7  # 1/8 by chance
    assert averaged > own + 0.2


def test_communities_share_their_label_sets():
    graph = synthetic(replace(MULTI, label_noise=0.0), features=False)
    assert len(np.unique(graph.y, axis=0)) <= MULTI.communities


def test_labels_of_a_share_of_nodes_are_noise():
    clean = synthetic(replace(SMALL, label_noise=0.0), features=False).y
    noisy = synthetic(replace(SMALL, label_noise=0.4), features=False).y
    assert np.mean(clean != noisy) == pytest.approx(0.4 * 3 / 4, abs=0.04)


def test_absorbing_keeps_codes_sorted_and_distinct():
    nothing = np.iinfo(np.int64).max
    codes = np.array([2, 5, 9, 1, 2, 5, 7, 7, 12, nothing])
    assert absorb_edges(codes, 3) == 6
    assert codes[:6].tolist() == [1, 2, 5, 7, 9, 12]


@pytest.mark.parametrize("pieces", [1, 2, 5, 9])
def test_rows_of_edges_by_hand(pieces):
    codes = np.array([0 << 32 | 2, 0 << 32 | 3, 1 << 32 | 2, 2 << 32 | 3])
    indptr, indices = rows_of_edges(codes, 5, pieces)
    assert indptr.tolist() == [0, 2, 3, 6, 8, 8]
    assert indices.tolist() == [2, 3, 2, 0, 1, 3, 0, 2]


def test_rows_of_edges_are_the_same_for_any_number_of_pieces():
    rng = np.random.default_rng(0)
    ends = np.sort(rng.integers(0, 300, (2, 4_000)), axis=0)
    codes = np.unique((ends[0] << 32 | ends[1])[ends[0] != ends[1]])
    a = sp.coo_array((np.ones(len(codes)), (codes >> 32, codes & 0xFFFFFFFF)), shape=(310, 310))
    wanted = (a + a.T).tocsr()
    for pieces in (1, 3, 7):
        indptr, indices = rows_of_edges(codes, 310, pieces)
        assert np.array_equal(indptr, wanted.indptr)
        assert np.array_equal(indices, wanted.indices)


def test_named_graphs_are_like_the_papers():
    assert list(NAMED) == ["ppi-like", "ppi-large-like", "flickr-like", "reddit-like", "yelp-like"]
    graph = synthetic("ppi-like", seed=1)
    assert (len(graph), graph.edges, graph.x.shape[1], graph.y.shape[1]) == (14755, 444000, 50, 121)
    assert [spec.edges for spec in NAMED.values()] == [
        222_000, 794_000, 900_000, 11_600_000, 6_980_000,
    ]  # fmt: skip
    assert same(graph, load("ppi-like", seed=1))
    assert same(graph, load("synthetic:ppi-like", seed=1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 2_000}, "degree is 2000, expected at most"),
        ({"degree": 0}, "degree is 0, expected a number > 0"),
        ({"communities": 4_000}, "communities is 4000, expected at most the 3000 nodes"),
        ({"communities": 2}, "classes is 4, expected at most the 2 communities"),
        ({"train": 0.9, "val": 0.2}, r"train \+ val is 1.1"),
        ({"homophily": 1.5}, "homophily is 1.5, expected a number from 0 to 1"),
        ({"power": 2}, "power is 2, expected a number > 2"),
        ({"noise": float("inf")}, "noise is inf, expected a finite number"),
        ({"nodes": 1 << 31}, "nodes is 2147483648, expected at most"),
    ],
)
def test_specs_that_cannot_be_met(change, message):
    with pytest.raises(SgcnError, match=message):
        synthetic(replace(SMALL, **change))


def test_unknown_names_get_the_nearest_known_one():
    with pytest.raises(SgcnError, match=r"did you mean 'reddit-like'\?"):
        synthetic("redit-like")
    with pytest.raises(SgcnError, match=r"did you mean 'reddit-like'\?"):
        load("redit-like")


@pytest.mark.parametrize(
    ("text", "spec", "seed"),
    [
        ("flickr-like", NAMED["flickr-like"], 0),
        ("synthetic:flickr-like", NAMED["flickr-like"], 0),
        ("synthetic:flickr-like,noise=0.3", replace(NAMED["flickr-like"], noise=0.3), 0),
        ("synthetic: ppi-like , seed=7", NAMED["ppi-like"], 7),
        ("nodes=20_000,degree=7.5,multi_label=true,seed=3",
         Synthetic(nodes=20_000, degree=7.5, multi_label=True), 3),
    ],
)  # fmt: skip
def test_texts_that_mean_a_graph(text, spec, seed):
    assert parse_synthetic(text) == (spec, seed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("synthetic:flicker-like", r"did you mean 'flickr-like'\?"),
        ("synthetic:", "synthetic graph is '', expected one of ppi-like"),
        ("synthetic:ndes=3", r"has 'ndes=3' in it, expected .* \(did you mean 'nodes'\?"),
        ("synthetic:edges=3", "has 'edges=3' in it, expected name=value"),
        ("synthetic:nodes=30,", "has '' in it, expected name=value"),
        ("flickr-like,ppi-like", "has 'ppi-like' in it, expected name=value"),
        ("nodes=1e3", "nodes is 1000.0, expected a whole number >= 2"),
        ("nodes=many", "nodes is 'many', expected a whole number"),
        ("noise=0.1,noise=0.2", "gives noise twice, expected one value"),
        ("noise=1e999", "noise is inf, expected a finite number"),
        ("seed=-1", "seed is -1, expected a whole number from 0"),
        ("classes=90", "classes is 90, expected at most the 16 communities"),
    ],
)
def test_texts_that_mean_no_graph(text, message):
    with pytest.raises(SgcnError, match=message):
        parse_synthetic(text)
