"""Predictions as tables, and a trained model on another graph."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import sgcn
from learning import labelled
from sgcn.cli import main
from sgcn.data.bundled import BUNDLED
from sgcn.data.source import names_of
from sgcn.runs.directory import open_run
from sgcn.runs.predictions import open_other, write_table

NAMES = ["art", "b, c", "law", "tea"]
IDS = [f"n{k}" for k in range(60)]


def named(path: Path, ids=IDS, classes=NAMES, **changed) -> Path:
    """A graph directory, with names beside it."""
    multi_label = changed.pop("multi_label", False)
    labelled(multi_label, nodes=len(ids), **changed).save(path)
    (path / "ids.json").write_text(json.dumps(ids))
    (path / "classes.json").write_text(json.dumps(classes))
    return path


def trained(data: Path, run: Path, *options: str) -> Path:
    small = ["--set", "model.widths=8", "--epochs", "2", "--quiet"]
    assert main(["train", str(data), "--out", str(run), *small, *options]) == 0
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("named")
    return trained(named(place / "graph"), place / "run")


def predicted(run: Path, out: Path, *options: str) -> list[dict[str, str]]:
    assert main(["predict", str(run), "--out", str(out), *options]) == 0
    if out.suffix == ".csv":
        with out.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    return parquet.read_table(out).to_pylist()


def sentence(capsys, *arguments: str) -> str:
    capsys.readouterr()
    assert main([*arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


# -- tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_has_names_and_probabilities(run, tmp_path, suffix):
    rows = predicted(run, tmp_path / f"p{suffix}")
    assert list(rows[0]) == ["id", "class", *(f"p_{name}" for name in NAMES)]
    model, graph, _ = sgcn.load_run(str(run))
    p = sgcn.predict(model, graph).softmax(1).numpy()
    assert [row["id"] for row in rows] == IDS
    assert [row["class"] for row in rows] == [NAMES[k] for k in p.argmax(1)]
    found = [[float(row[f"p_{name}"]) for name in NAMES] for row in rows]
    np.testing.assert_allclose(found, p, rtol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == [f"p{suffix}"]


def test_sets_of_labels(tmp_path):
    whole = list(range(100, 160))
    run = trained(named(tmp_path / "g", whole, multi_label=True), tmp_path / "run")
    rows = predicted(run, tmp_path / "p.parquet")
    model, graph, _ = sgcn.load_run(run)
    p = sgcn.predict(model, graph).sigmoid().numpy()
    for k, row in enumerate(rows):
        assert row["id"] == 100 + k  # numbers stay numbers
        assert row["labels"] == ";".join(n for n, one in zip(NAMES, p[k], strict=True) if one > 0.5)
        assert row["p_law"] == pytest.approx(p[k, 2])


def test_numbers_where_there_are_no_names(tmp_path):
    p = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    write_table(tmp_path / "p.csv", p)
    assert (tmp_path / "p.csv").read_text() == "id,class,p_0,p_1\n0,1,0.25,0.75\n1,0,1,0\n"
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "p.parquet", p)
    found = parquet.read_table(tmp_path / "p.parquet")
    assert found.column("class").to_pylist() == [1, 0]
    write_table(tmp_path / "q.csv", p, ["a", 3], ["x", "y", "unused"])
    assert (tmp_path / "q.csv").read_text() == "id,class,p_x,p_y\na,y,0.25,0.75\n3,x,1,0\n"
    with pytest.raises(sgcn.SgcnError, match="the graph has 1 ids, expected 2"):
        write_table(tmp_path / "r.csv", p, ["a"])


@pytest.mark.parametrize("name", BUNDLED)
def test_graphs_in_the_box_have_names(name):
    assert len(names_of(name).classes) == BUNDLED[name].classes


def test_where_tables_cannot_be_written(run, tmp_path, capsys, monkeypatch):
    out = str(tmp_path / "p.csv")
    said = sentence(capsys, "predict", str(run), "--out", out, "--embeddings")
    assert "expected an array: --out FILE.npy" in said
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    said = sentence(capsys, "predict", str(run), "--out", str(tmp_path / "p.parquet"))
    assert "pip install pyarrow" in said
    assert list(tmp_path.iterdir()) == []


# -- another graph ------------------------------------------------------------------------------


def test_a_part_of_the_graph_is_predicted_from_its_own_edges(run, tmp_path):
    """Inductive use, against the model run on the same part in memory."""
    model, graph, _ = sgcn.load_run(run)
    nodes = np.arange(5, 45)
    part, raw = graph.subgraph(nodes), sgcn.Graph.open(run.parent / "graph").subgraph(nodes)
    (raw.y, raw.split) = (None, None)
    raw.with_propagation("row").save(tmp_path / "part")  # P is that of training all the same
    (tmp_path / "part" / "ids.json").write_text(json.dumps([IDS[k] for k in nodes]))
    rows = predicted(run, tmp_path / "p.csv", "--data", str(tmp_path / "part"))
    assert [row["id"] for row in rows] == [IDS[k] for k in nodes]
    dense = part.matrix().toarray()
    h = part.x  # scaled as in training, which `load_run` has done already
    weights = {name: w.detach().numpy() for name, w in model.named_parameters()}
    for level in range(2):
        z = dense @ h @ weights[f"layers.{level}.weight"]
        h = np.where(z > 0, z, np.expm1(np.minimum(z, 0)))
    logits = h @ weights["head.weight"].T + weights["head.bias"]
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose([float(row["p_tea"]) for row in rows], p[:, 3], rtol=1e-4)


def test_evaluate_another_graph(run, tmp_path, capsys):
    other = named(tmp_path / "other", IDS[:40], seed=3)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--data", str(other)]) == 0
    scores = json.loads(capsys.readouterr().out)
    model, trained_on, config = sgcn.load_run(run)
    graph = open_other(str(other), run, config, trained_on)
    right = sgcn.predict(model, graph).argmax(1).numpy() == graph.y
    assert scores["test"]["f1_micro"] == pytest.approx(right[graph.split == 2].mean())
    bare = named(tmp_path / "bare", IDS[:40], seed=3, split=None, y=np.where(right, graph.y, -1))
    assert main(["evaluate", str(run), "--data", str(bare)]) == 0
    assert json.loads(capsys.readouterr().out)["all"]["f1_micro"] == 1.0
    naked = named(tmp_path / "naked", IDS[:40], y=None)
    assert "has no labels" in sentence(capsys, "evaluate", str(run), "--data", str(naked))


def test_another_graph_is_scored_by_the_task_of_the_run(tmp_path, capsys):
    """Class weights and the spread of numbers come from the nodes trained on, not from the new."""
    plain = trained(named(tmp_path / "g"), tmp_path / "w", "--set", "task.class_weight=balanced")
    model, graph, config = sgcn.load_run(plain)
    other = named(tmp_path / "h", IDS[:40], seed=3, split=None)
    capsys.readouterr()
    assert main(["evaluate", str(plain), "--data", str(other)]) == 0
    found = json.loads(capsys.readouterr().out)["all"]["loss"]
    new = open_other(str(other), plain, config, graph)
    weights = config.training.task.on(graph).weights
    each = torch.nn.CrossEntropyLoss(weights, reduction="none")
    losses = each(sgcn.predict(model, new), torch.from_numpy(np.asarray(new.y)).long())
    assert found == pytest.approx(float(losses.mean()), rel=1e-4)


def test_rows_of_words_are_scaled_as_in_training(tmp_path):
    """Sparse features have rows of length 1, also where the other graph's are dense."""
    graph = labelled()
    words = np.where(graph.x > 0.3, np.ceil(3 * graph.x), 0).astype(np.float32)
    data = named(tmp_path / "sparse", x=sp.csr_array(words))
    run = trained(data, tmp_path / "run")
    rows = predicted(run, tmp_path / "a.csv")
    other = named(tmp_path / "dense", x=words)
    found = predicted(run, tmp_path / "b.csv", "--data", str(other))
    for a, b in zip(rows, found, strict=True):
        assert float(a["p_art"]) == pytest.approx(float(b["p_art"]), rel=1e-4)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"x": np.ones((60, 7), np.float32)}, "has 7 features, expected 5, as in "),
        ({"x": None}, "has no features, expected x"),
        ({"x": np.full((60, 5), np.nan, np.float32)}, "features that are NaN"),
        ({"y": np.arange(60) % 6}, "has 6 classes, expected 4 classes, as in "),
        ({"y": np.eye(60, 3, dtype=np.uint8)}, "has sets of 3 labels, expected 4 classes"),
        ({"classes": ["law", "art", "tea", "b, c"]}, "has other classes (in another order)"),
        ({"classes": [*NAMES[:3], "tee"]}, "has other classes (tee), expected them as in "),
    ],
    ids=["width", "no features", "nan", "classes", "sets", "order", "names"],
)
def test_other_graphs_that_do_not_fit(run, tmp_path, capsys, changed, words):
    other = named(tmp_path / "other", **changed)
    out = ["--out", str(tmp_path / "p.csv")]
    said = sentence(capsys, "predict", str(run), "--data", str(other), *out)
    assert words in said
    assert str(other) in said


def test_other_columns(tmp_path, capsys):
    kept = [{"name": "age", "mean": 1.0}, {"name": "town", "values": ["a", "b"]}]
    data = named(tmp_path / "graph")
    (data / "features.json").write_text(json.dumps(kept))
    run = trained(data, tmp_path / "run")
    other = named(tmp_path / "other", y=None)
    kept[0]["mean"] = 2.0
    (other / "features.json").write_text(json.dumps(kept))
    predicted(run, tmp_path / "p.csv", "--data", str(other))
    kept[1]["values"] = ["a", "c"]
    (other / "features.json").write_text(json.dumps(kept))
    said = sentence(
        capsys, "predict", str(run), "--data", str(other), "--out", str(tmp_path / "p.csv")
    )
    assert "has other features (town: ['a', 'c'])" in said
    assert "import it with like=DIR" in said


# -- in Python ----------------------------------------------------------------------------------


def test_text_and_paths(run):
    for path in (run, str(run)):
        config, graph, model = open_run(path)
        assert [type(one) for one in sgcn.load_run(path)] == [type(model), sgcn.Graph, type(config)]
        for data in (Path(config.data), config.data):
            assert len(sgcn.data.load(data)) == len(graph)


def test_another_graph_is_scaled_in_python_as_on_the_command_line(run, tmp_path):
    other = named(tmp_path / "other", x=labelled().x * 7 + 3)
    rows = predicted(run, tmp_path / "p.csv", "--data", str(other))
    model, graph, _ = sgcn.load_run(run, data=other)
    found = sgcn.predict(model, graph).softmax(1)[:, NAMES.index("art")]
    assert [float(row["p_art"]) for row in rows] == pytest.approx(found.tolist(), abs=1e-4)


def test_what_predict_refuses(run):
    model, graph, _ = sgcn.load_run(run)
    with pytest.raises(sgcn.SgcnError, match="no features"):
        sgcn.predict(model, labelled(x=None))
    wide = labelled(x=np.ones((60, 9), np.float32))
    with pytest.raises(sgcn.SgcnError, match="does not run on a graph with 9 features"):
        sgcn.predict(model, wide)
    assert sgcn.predict(model, graph).requires_grad is False
