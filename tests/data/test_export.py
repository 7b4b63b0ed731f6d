"""Exported graphs, read back with the tools of those who use the formats."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from helpers import zoo_graph
from learning import labelled
from sgcn import Graph, SgcnError
from sgcn.data import export as module
from sgcn.data.export import FORMATS, export, to_pyg
from sgcn.data.source import read_npz


def sparse_x(n: int):
    return sp.random_array((n, 9), density=0.2, format="csr", rng=0, dtype=np.float32)


GRAPHS = {
    "single": lambda: labelled(),
    "multi": lambda: labelled(multi_label=True),
    "sparse": lambda: labelled(x=sparse_x(60)),
    "no split": lambda: labelled(split=None),
    "bare": lambda: zoo_graph("isolated"),
}


@pytest.fixture(params=GRAPHS)
def graph(request) -> Graph:
    return GRAPHS[request.param]()


def dense(x):
    return x.toarray() if sp.issparse(x) else x


def assert_same(a: Graph, b: Graph, *, sparse: bool = True) -> None:
    np.testing.assert_array_equal(a.indptr, b.indptr)
    np.testing.assert_array_equal(a.indices, b.indices)
    if sparse:
        assert sp.issparse(a.x) == sp.issparse(b.x)
    for name in ("x", "y", "split", "values"):
        one, other = dense(getattr(a, name)), dense(getattr(b, name))
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other)


def test_npz_comes_back(graph, tmp_path):
    export("npz", graph, tmp_path / "new" / "a.npz")
    assert_same(read_npz(tmp_path / "new" / "a.npz"), graph)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.npz"]


def test_pyg_comes_back_from_the_file_and_the_object(graph, tmp_path):
    data_class = pytest.importorskip("torch_geometric.data").Data
    export("pyg", graph, tmp_path / "a.pt")
    loaded = data_class.from_dict(torch.load(tmp_path / "a.pt", weights_only=True))
    for data in (to_pyg(graph), loaded):
        assert isinstance(data, data_class)
        assert data.validate()
        assert data.num_nodes == len(graph)
        assert_same(Graph.from_pyg(data), graph, sparse=False)


def test_the_file_for_pyg_needs_no_pyg(tmp_path):
    graph = labelled()
    export("pyg", graph, tmp_path / "a.pt")
    data = SimpleNamespace(**torch.load(tmp_path / "a.pt", weights_only=True))
    assert_same(Graph.from_pyg(data), graph)


def test_pyg_directions_and_weights(tmp_path):
    pytest.importorskip("torch_geometric")
    directed = Graph.from_edges([0, 0, 3], [1, 2, 1], nodes=5, directed=True)
    data = to_pyg(directed)
    assert sorted(zip(*data.edge_index.tolist(), strict=True)) == [(0, 1), (0, 2), (3, 1)]
    assert_same(Graph.from_pyg(data, directed=True), directed)
    weighted = zoo_graph("weighted")
    assert_same(Graph.from_pyg(to_pyg(weighted)), weighted)


@pytest.mark.parametrize("name", ["single", "multi", "sparse"])
def test_graphsaint_by_plain_scipy_and_json(name, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 7)  # several pieces
    graph = GRAPHS[name]()
    out = tmp_path / "saint"
    export("graphsaint", graph, out)
    assert {path.name for path in out.iterdir()} == {
        "adj_full.npz", "adj_train.npz", "feats.npy", "class_map.json", "role.json",
    }  # fmt: skip
    a = graph.adjacency().toarray()
    train = graph.split == 0
    full, part = (sp.load_npz(out / f"adj_{which}.npz") for which in ("full", "train"))
    assert np.array_equal(full.toarray(), a)
    assert np.array_equal(part.toarray(), np.where(train[:, None] & train, a, 0))
    assert 0 < part.nnz < full.nnz
    np.testing.assert_array_equal(np.load(out / "feats.npy"), dense(graph.x))
    class_map = json.loads((out / "class_map.json").read_text())
    assert list(class_map) == [str(k) for k in range(60)]
    assert np.array_equal(list(class_map.values()), graph.y)
    roles = json.loads((out / "role.json").read_text())
    assert list(roles) == ["tr", "va", "te"]
    for number, nodes in enumerate(roles.values()):
        assert nodes == np.flatnonzero(graph.split == number).tolist()


def test_scipy_files(graph, tmp_path):
    out = tmp_path / "files"
    export("scipy", graph, out)
    options = {}
    for path in out.iterdir():
        if path.name != "adjacency.npz":
            options[path.stem] = np.load(path) if path.suffix == ".npy" else sp.load_npz(path)
    assert_same(Graph.from_scipy(sp.load_npz(out / "adjacency.npz"), **options), graph)


def test_scipy_keeps_weights_and_directions(tmp_path):
    for name in ("weighted", "directed"):
        graph = zoo_graph(name)
        export("scipy", graph, tmp_path / name)
        back = sp.load_npz(tmp_path / name / "adjacency.npz")
        assert (back != graph.adjacency()).nnz == 0


@pytest.mark.parametrize(
    ("format", "make", "message"),
    [
        ("npz", lambda: zoo_graph("weighted"), "the graph is weighted, expected an undirected"),
        ("npz", lambda: zoo_graph("directed"), "the graph is directed, expected an undirected"),
        ("graphsaint", lambda: labelled(split=None), "the graph has no split"),
        ("graphsaint", lambda: labelled(x=None), "the graph has no features"),
        ("graphsaint", lambda: labelled(y=np.arange(60) - 1), "node 0 has no label, expected one"),
        ("pyq", labelled, r"format is 'pyq', expected one of .*\(did you mean 'pyg'\?\)"),
    ],
)
def test_what_a_format_has_no_place_for(format, make, message, tmp_path):
    suffix = FORMATS[format].suffix if format in FORMATS else ""
    with pytest.raises(SgcnError, match=message):
        export(format, make(), tmp_path / f"out{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_targets_that_are_refused(tmp_path):
    with pytest.raises(SgcnError, match=r"expected a name ending in \.npz for npz"):
        export("npz", labelled(), tmp_path / "a")
    (tmp_path / "there.pt").write_text("mine")
    with pytest.raises(SgcnError, match="exists already, expected a new name"):
        export("pyg", labelled(), tmp_path / "there.pt")
    assert (tmp_path / "there.pt").read_text() == "mine"


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SgcnError, match=r"a\.npz cannot be written \(.*\), expected a place"):
        export("npz", labelled(), tmp_path / "file" / "a.npz")


def test_labels_as_losses_take_them(tmp_path):
    export("pyg", labelled(y=np.arange(60, dtype=np.uint8) % 4), tmp_path / "a.pt")
    assert torch.load(tmp_path / "a.pt", weights_only=True)["y"].dtype == torch.int64
    export("pyg", labelled(multi_label=True), tmp_path / "b.pt")
    assert torch.load(tmp_path / "b.pt", weights_only=True)["y"].dtype == torch.float32


def test_an_export_that_breaks_leaves_nothing(tmp_path, monkeypatch):
    def fail(graph, path):
        path.mkdir()
        (path / "half").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setitem(module.FORMATS, "scipy", module.Format(fail))
    with pytest.raises(KeyboardInterrupt):
        export("scipy", labelled(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
