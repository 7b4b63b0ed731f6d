"""Features scaled for training: against plain formulas, and by training nodes alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from learning import labelled
from sgcn import Graph, SgcnError, data
from sgcn.cli import main
from sgcn.data.scaling import Scaling


def dense(x) -> np.ndarray:
    return x.toarray() if sp.issparse(x) else np.asarray(x)


def graph_of(x, split=(0, 0, 1, 2)) -> Graph:
    return Graph.from_edges([0, 1, 2], [1, 2, 3], x=x, y=np.arange(4) % 2, split=np.array(split))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_unit_rows(make):
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0], [1.0, 0.0]], np.float32)
    graph = graph_of(make(rows))
    made = Scaling.of(graph, "unit").apply(graph)
    wanted = [[0.6, 0.8], [0.0, 0.0], [0.0, -1.0], [1.0, 0.0]]
    np.testing.assert_allclose(dense(made.x), wanted, rtol=1e-6)
    assert made.x.dtype == np.float32
    np.testing.assert_array_equal(dense(graph.x), rows)
    assert made.indices is graph.indices


@pytest.mark.parametrize(
    ("make", "dtype"),
    [(np.asarray, np.float32), (np.asarray, np.float16), (sp.csr_array, np.float32)],
)
def test_standardised_by_training_nodes(make, dtype):
    """Others may be anything; a column of one value is moved to 0 and not blown up."""
    x = np.random.default_rng(0).normal(3.0, 2.0, (4, 3)).astype(dtype)
    x[:, 1], x[3] = 7.0, 500.0
    graph = graph_of(make(x))
    made = dense(Scaling.of(graph, "standard").apply(graph).x)
    train = x[:2].astype(float)
    deviation = train.std(0)
    deviation[1] = 1.0
    rtol = 1e-5 if dtype == np.float32 else 5e-3
    np.testing.assert_allclose(made, (x.astype(float) - train.mean(0)) / deviation, rtol, rtol)
    assert made.dtype == dtype
    assert abs(made[0, 1]) < 1e-6


@pytest.mark.parametrize("kind", ["unit", "standard"])
def test_whole_numbers_become_real_ones(kind):
    graph = graph_of(np.arange(12).reshape(4, 3) % 5)
    made = Scaling.of(graph, kind).apply(graph).x
    real = graph_of((np.arange(12).reshape(4, 3) % 5).astype(np.float32))
    np.testing.assert_allclose(made, Scaling.of(real, kind).apply(real).x, rtol=1e-6)


def test_chunks_see_all_rows(monkeypatch):
    from sgcn.data import scaling

    graph = labelled(nodes=60)
    at_once = Scaling.of(graph, "standard").apply(graph).x
    monkeypatch.setattr(
        scaling, "chunks", lambda n, width: (slice(k, min(k + 7, n)) for k in range(0, n, 7))
    )
    in_parts = Scaling.of(graph, "standard").apply(graph).x
    np.testing.assert_allclose(in_parts, at_once, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (np.ones((4, 3), np.float32), "standard"),
        (sp.csr_array((4, 300), dtype=np.float32), "unit"),
        (sp.csr_array((4, 256), dtype=np.float32), "standard"),
        (sp.csr_array(np.ones((4, 300), np.float32)), "standard"),
    ],
)
def test_bags_of_words_are_wide_and_nearly_empty(x, kind):
    assert Scaling.of(graph_of(x), "auto").kind == kind


def test_without_training_nodes_or_with_other_columns():
    graph = graph_of(np.ones((4, 3), np.float32), split=(1, 1, 2, 2))
    with pytest.raises(SgcnError, match="no training nodes, expected some to standardise by"):
        Scaling.of(graph, "standard")
    scaling = Scaling.of(graph_of(np.ones((4, 3), np.float32)), "standard")
    with pytest.raises(SgcnError, match="has 2 features, expected 3, as in training"):
        scaling.apply(graph_of(np.ones((4, 2), np.float32)))


def test_load_scales_on_request(tmp_path):
    graph = labelled(nodes=40)
    graph.save(tmp_path / "graph")
    raw, scaled = data.load(tmp_path / "graph"), data.load(tmp_path / "graph", scale="auto")
    np.testing.assert_array_equal(raw.x, graph.x)
    train = scaled.x[np.asarray(graph.split) == 0]
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(train.std(0), 1, rtol=1e-5)
    with pytest.raises(SgcnError, match=r"scale is 'unt', .*did you mean 'unit'"):
        data.load("debian", scale="unt")


def test_a_run_keeps_its_statistics(tmp_path: Path, capsys):
    """What is scored later is scaled as training was, whatever the graph's training nodes are."""
    graph = labelled(nodes=80)
    graph.save(tmp_path / "graph")
    run = tmp_path / "run"
    arguments = ["train", str(tmp_path / "graph"), "--out", str(run), "--epochs", "2", "--quiet"]
    assert main([*arguments, "--batch-size", "16", "--set", "model.widths=8"]) == 0
    assert 'features = "standard"' in (run / "config.toml").read_text()
    assert (run / "scaling.safetensors").is_file()
    assert main(["predict", str(run), "--out", str(tmp_path / "before.npy")]) == 0

    shutil.rmtree(tmp_path / "graph")
    other = np.roll(np.asarray(graph.split), 1)
    graph.with_split(other).save(tmp_path / "graph")
    assert main(["predict", str(run), "--out", str(tmp_path / "after.npy")]) == 0
    before, after = np.load(tmp_path / "before.npy"), np.load(tmp_path / "after.npy")
    np.testing.assert_array_equal(before, after)
    (run / "scaling.safetensors").write_bytes(b"x")
    capsys.readouterr()
    assert main(["predict", str(run), "--out", str(tmp_path / "x.npy")]) == 2
    assert "scaling.safetensors cannot be read" in capsys.readouterr().err
