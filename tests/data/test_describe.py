"""What `describe` finds, against slow definitions and by hand."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from helpers import zoo_graph
from learning import labelled
from sgcn import Graph
from sgcn.data.describe import describe
from sgcn.data.synthetic import Synthetic, synthetic
from sgcn.training.events import to_json


def test_counts_degrees_and_components(graph):
    d = describe(graph)
    a = graph.adjacency()
    degrees = np.diff(a.indptr)
    assert d.nodes == len(graph)
    both_ways = a.nnz if graph.directed else sp.triu(a).nnz
    assert d.edges == both_ways
    assert d.directed == graph.directed
    assert d.weighted == (graph.values is not None)
    assert (d.degrees.least, d.degrees.most) == (degrees.min(), degrees.max())
    assert d.degrees.median == np.median(degrees)
    assert d.degrees.mean == pytest.approx(degrees.mean())
    for low, high, count in d.degrees.histogram:
        assert count == np.count_nonzero((degrees >= low) & (degrees <= high))
    assert sum(count for *_, count in d.degrees.histogram) == len(graph)
    number, part = connected_components(a, directed=False)
    assert (d.components, d.largest_component) == (number, np.bincount(part).max())


def test_histogram_by_hand():
    graph = Graph.from_edges([0, 0, 0, 0, 1], [1, 2, 3, 4, 2], nodes=7)
    assert describe(graph).degrees.histogram == ((0, 0, 2), (1, 1, 2), (2, 3, 2), (4, 7, 1))


def test_stored_loops_are_edges_once():
    graph = Graph.from_edges([0, 1, 1], [0, 1, 2], self_loops=False)
    assert describe(graph).edges == 3


@pytest.mark.parametrize(
    ("sparse", "dtype"),
    [(False, np.float16), (False, np.float32), (False, np.int8), (True, np.float32), (True, int)],
)
def test_features(sparse, dtype, monkeypatch):
    monkeypatch.setattr("sgcn.chunks.CHUNK", 40)
    rng = np.random.default_rng(0)
    x = (rng.integers(-3, 8, (60, 9)) * (rng.random((60, 9)) < 0.4)).astype(dtype)
    x[:, 4] = 0
    x[[5, 59]] = 0
    d = describe(labelled(x=sp.csr_array(x) if sparse else x)).features
    assert dataclasses.astuple(d) == (
        9, sparse, np.dtype(dtype).name, np.count_nonzero(x) / 540, x.min(), x.max(), 1,
        np.count_nonzero(~x.any(1)),
    )  # fmt: skip


def test_sparse_features_that_store_everything_or_nothing():
    full = describe(labelled(x=sp.csr_array(np.full((60, 2), 3.0)))).features
    assert (full.least, full.most, full.density) == (3, 3, 1)
    empty = describe(labelled(x=sp.csr_array((60, 4)))).features
    assert (empty.least, empty.most, empty.constant, empty.zero_rows) == (0, 0, 4, 60)
    kept = sp.csr_array(np.eye(60))
    kept.data[7] = 0  # stored, and still zero
    facts = describe(labelled(x=kept)).features
    assert (facts.zero_rows, facts.constant) == (1, 1)


@pytest.mark.parametrize("name", ["power-law", "directed", "isolated"])
def test_homophily_of_one_class(name):
    graph = zoo_graph(name)
    y = np.random.default_rng(0).integers(-1, 3, len(graph))
    graph = zoo_graph(name, y=y)
    rows, cols = graph.adjacency().nonzero()
    known = (y[rows] >= 0) & (y[cols] >= 0)
    assert describe(graph).homophily == pytest.approx(np.mean((y[rows] == y[cols])[known]))


def test_homophily_of_label_sets():
    y = (np.random.default_rng(0).random((60, 5)) < 0.2).astype(np.uint8)
    graph = zoo_graph("power-law", y=y)
    rows, cols = graph.adjacency().nonzero()
    both, either = (y[rows] & y[cols]).sum(1), (y[rows] | y[cols]).sum(1)
    assert (either == 0).any()
    wanted = (both / np.maximum(either, 1))[either > 0].mean()
    assert describe(graph).homophily == pytest.approx(wanted)


def test_homophily_of_a_generated_graph():
    spec = Synthetic(nodes=3_000, homophily=0.6, label_noise=0.0, classes=16, hub=5.0)
    assert describe(synthetic(spec)).homophily == pytest.approx(0.6, abs=0.02)


def test_labels_and_split():
    y = np.array([0, 2, 2, -1, 2, 0])
    graph = labelled(nodes=6, y=y, split=[0, 0, 1, -1, 2, 0])
    d = describe(graph)
    assert dataclasses.astuple(d.labels) == (3, False, 5, (2, 0, 3))
    assert d.split == {"train": 3, "val": 1, "test": 1, "none": 1}
    multi = describe(labelled(multi_label=True))
    assert multi.labels.multi_label
    assert multi.labels.counts == tuple(labelled(multi_label=True).y.sum(0))


def test_what_is_not_there_is_none():
    d = describe(zoo_graph("hub"))
    assert d.features is d.labels is d.split is d.homophily is None
    assert d.memory["features"] == 0


def test_memory():
    graph = labelled()
    assert describe(graph).memory == {
        "topology": graph.nbytes,
        "features": graph.x.nbytes,
        "labels and split": graph.y.nbytes + graph.split.nbytes,
    }


# -- notes ----------------------------------------------------------------------------------------


def notes(graph: Graph) -> str:
    return "\n".join(describe(graph).notes)


def test_a_plain_graph_has_no_notes():
    n = 12
    x = np.arange(2.0 * n).reshape(n, 2) + 1
    graph = Graph.from_edges(
        np.arange(n), (np.arange(n) + 1) % n, x=x, y=np.arange(n) % 2, split=[0, 0, 1, 2] * 3
    )
    assert describe(graph).notes == ()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"nodes": 14}, "2 nodes without an edge"),
        ({"x": np.full((12, 2), 3.0)}, "2 of 2 features are the same for all nodes"),
        ({"x": np.eye(12)[:, :8]}, "4 nodes with no feature but zeros"),
        ({"x": np.full((12, 2), np.nan)}, "features that are not finite"),
        ({"y": np.arange(12)}, "6 classes of val or test never seen in training (2, 3, 6, 7, 10"),
        ({"y": np.where(np.arange(12) == 3, -1, 0)}, "1 node without a label in test: they are"),
        ({"y": np.arange(12) % 2 * 2}, "1 of 3 classes have no node"),
        ({"y": np.eye(12, 3, dtype=int)}, "9 nodes with none of the labels"),
        ({"split": np.zeros(12)}, "no nodes in val\nno nodes in test"),
        ({"x": np.arange(12.0)[:, None] // 4 + 1}, "3 nodes of val with the very features of a tr"),
        ({"x": sp.csr_array(np.arange(12.0)[:, None] // 4 + 1)}, "3 nodes of test with the very f"),
    ],
)
def test_notes(change, note):
    n = change.pop("nodes", 12)
    options = {"x": None, "y": np.arange(n) % 2, "split": ([0, 0, 1, 2] * 4)[:n]} | change
    ring = np.arange(12)
    assert note in notes(Graph.from_edges(ring, (ring + 1) % 12, nodes=n, **options))


def test_zeros_and_signs_of_zero_are_no_news():
    """Rows of zeros are counted once, and -0.0 is 0.0."""
    x = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, -0.0], [0.0, -0.0]])
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], x=x, split=[0, 0, 1, 2])
    said = notes(graph)
    assert "1 node of val with the very features" in said
    assert "of test with the very" not in said


def test_hubs_and_components():
    said = notes(Graph.from_edges(np.zeros(400, int), np.arange(1, 401), nodes=402))
    assert "1 node with more than 50 times the mean degree" in said
    assert "joined to 99.5% of all nodes" in said
    said = notes(Graph.from_edges([0, 2, 3], [1, 3, 4]))
    assert "2 components of more than one node; the largest has 60.0%" in said


def test_it_is_json():
    read = json.loads(to_json(dataclasses.asdict(describe(labelled()))))
    assert read["degrees"]["histogram"]
    assert read["features"]["width"] == 5
