"""Features made ready for training, and training from a float16 table."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from learning import labelled, small_model
from sgcn import Graph, SgcnError, fit
from sgcn.compute.exact import predict
from sgcn.data.features import write_features
from sgcn.rows import LazyRows, store_of


@pytest.fixture(autouse=True)
def several_slices(monkeypatch):
    monkeypatch.setattr("sgcn.chunks.CHUNK", 64)


def table(n: int = 60) -> np.ndarray:
    """Columns of other scales, one constant but for a row of zeros."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 5)) * [1, 100, 1e-3, 0, 1] + [0, 1e4, 0, 0.1, 5]
    x[7] = 0
    return x.astype(np.float32)


@pytest.fixture
def graph() -> Graph:
    return labelled(x=table())


def test_standardised_by_the_training_nodes(graph, tmp_path):
    graph.x[:, 4] = np.where(graph.split == 0, 3.0, graph.x[:, 4])
    graph.x[graph.split == 0, 3] = 0.1
    made = write_features(graph, tmp_path / "g", standardise=True)
    train = made.x[graph.split == 0].astype(np.float64)
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(train.var(0), [1, 1, 1, 0, 0], atol=1e-4)
    assert (made.x[graph.split == 0, 3:] == 0).all()
    np.testing.assert_allclose(made.x[:, 4], graph.x[:, 4] - 3.0, rtol=1e-6)  # only centred
    x = graph.x[:, :3].astype(np.float64)
    own = x[graph.split == 0]
    np.testing.assert_allclose(made.x[:, :3], (x - own.mean(0)) / own.std(0), rtol=1e-5, atol=1e-5)
    assert made.x.dtype == np.float32


def test_unlabelled_training_nodes_do_not_count(tmp_path):
    graph = labelled(x=table())
    graph.y[np.flatnonzero(graph.split == 0)[:10]] = -1
    made = write_features(graph, tmp_path / "g", standardise=True)
    counted = (graph.split == 0) & (graph.y >= 0)
    np.testing.assert_allclose(made.x[counted, 0].mean(), 0, atol=1e-6)
    assert abs(made.x[graph.split == 0, 0].mean()) > 1e-3


def test_rows_sum_to_one(graph, tmp_path):
    made = write_features(graph, tmp_path / "g", row_normalise=True)
    totals = np.abs(graph.x.astype(np.float64)).sum(1, keepdims=True)
    np.testing.assert_allclose(made.x, graph.x / np.where(totals, totals, 1), rtol=1e-6)
    assert (made.x[7] == 0).all()


def test_sparse_rows_stay_sparse(tmp_path):
    x = sp.random_array((60, 30), density=0.1, format="csr", rng=0)
    x.data[:50:3] *= -1
    x.data[3] = 0  # stored
    x.data[x.indptr[20] : x.indptr[21]] = 0
    made = write_features(labelled(x=x), tmp_path / "g", row_normalise=True).x
    assert sp.issparse(made)
    assert (made.dtype, made.nnz) == (np.float32, x.nnz)
    totals = abs(x).sum(1)
    assert (totals == 0).any()
    wanted = x.toarray() / np.where(totals, totals, 1)[:, None]
    np.testing.assert_allclose(made.toarray(), wanted, rtol=1e-6)
    plain = write_features(labelled(x=x), tmp_path / "h").x
    np.testing.assert_array_equal(plain.toarray(), x.toarray().astype(np.float32))


def test_rows_first_and_then_columns(graph, tmp_path):
    both = write_features(graph, tmp_path / "a", standardise=True, row_normalise=True)
    rows = write_features(graph, tmp_path / "b", row_normalise=True)
    after = write_features(rows, tmp_path / "c", standardise=True)
    np.testing.assert_allclose(both.x, after.x, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(both.x[graph.split == 0].mean(0), 0, atol=1e-5)


def test_everything_else_stays(tmp_path):
    graph = labelled(normalization="row", self_loops=False, directed=True)
    made = write_features(graph, tmp_path / "g", dtype="float16")
    assert repr(made) == repr(graph)
    for name in ("indptr", "indices", "row", "col", "y", "split"):
        np.testing.assert_array_equal(getattr(made, name), getattr(graph, name))
    assert Graph.open(tmp_path / "g", verify=True).x.dtype == np.float16
    np.testing.assert_array_equal(made.x, graph.x.astype(np.float16))


def test_no_second_table(tmp_path, monkeypatch):
    n, width = 60_000, 64
    x = np.ones((n, width), np.float32)
    x[:, 0] = np.arange(n)
    monkeypatch.setattr("sgcn.chunks.CHUNK", 1 << 16)
    Graph.from_edges([0], [1], nodes=n, x=x, y=np.zeros(n, int), split=np.zeros(n)).save(
        tmp_path / "g"
    )
    graph = Graph.open(tmp_path / "g")
    tracemalloc.start()
    write_features(graph, tmp_path / "h", standardise=True, row_normalise=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes / 3


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"x": None}, {}, "no table of features"),
        ({"x": sp.csr_array(table())}, {"standardise": True}, "sparse, expected dense ones to st"),
        ({"x": sp.csr_array(table())}, {"dtype": "float16"}, "sparse, expected dense ones for f"),
        ({}, {"dtype": "float61"}, r"dtype is 'float61', .*did you mean 'float16'"),
        ({"split": None}, {"standardise": True}, "the graph has no split"),
        ({"split": np.ones(60)}, {"standardise": True}, "no labelled training nodes"),
        ({"x": 1e3 * table()}, {"dtype": "float16"}, "node 0 has the feature .* up to 65504"),
        ({"x": np.where(np.arange(60) == 41, np.nan, table().T).T}, {}, "node 41 has the feature"),
    ],
)
def test_what_is_refused(change, options, message, tmp_path):
    with pytest.raises(SgcnError, match=message):
        write_features(labelled(**({"x": table()} | change)), tmp_path / "g", **options)
    assert list(tmp_path.iterdir()) == []


# -- training from float16 -----------------------------------------------------------------------


def test_rows_of_a_half_table():
    x = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float16)
    features = store_of(x)
    assert features.dtype == torch.float16
    assert features.table.data_ptr() == x.ctypes.data  # not a copy
    ids = torch.tensor([3, 0, 3, 19, 7, 8, 9], dtype=torch.int32)
    rows = LazyRows(features, ids)
    assert rows.dense().dtype == torch.float32
    assert np.array_equal(rows.dense(), x[ids].astype(np.float32))
    weight = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    upstream = torch.arange(28.0).view(7, 4)
    (rows @ weight).backward(upstream)
    got, weight.grad = weight.grad, None
    (rows.dense() @ weight).backward(upstream)
    torch.testing.assert_close(got, weight.grad)
    torch.testing.assert_close(rows @ weight, rows.dense() @ weight)
    none = LazyRows(features, torch.zeros(0, dtype=torch.int32)) @ weight
    assert none.shape == (0, 4)


@pytest.mark.parametrize("kind", ["mean", "concat", "attention"])
def test_training_from_float16_is_training_from_its_values(kind, tmp_path):
    """Half on disk, and the same numbers as float32 in memory, learn the same."""
    graph = write_features(labelled(), tmp_path / "g", dtype="float16")
    twin = labelled(x=graph.x.astype(np.float32))
    logits = []
    for data in (graph, twin):
        model = small_model(kind)
        fit(model, data, sampler="neighbor", epochs=2, batch_size=10)
        logits.append(predict(model, data, store_of(data.x)))
    torch.testing.assert_close(*logits, rtol=1e-3, atol=1e-4)
