"""`auto`: what trials decide, and that they do not disturb the run."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from learning import labelled
from sgcn import Graph, SgcnError, TrainingInterrupted
from sgcn.cli import main
from sgcn.runs import choosing
from sgcn.runs.config import make_config
from sgcn.runs.directory import _with_model, prepare
from sgcn.training.options import PRESETS

SMALL = ["--set", "model.widths=8", "--batch-size", "20", "--set", "training.checkpoint_seconds=0"]


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> str:
    """A graph on which a node's own features say everything, and its neighbours' nothing."""
    graph = labelled(nodes=300)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    graph.x = (np.eye(3)[y] + 0.1 * rng.normal(size=(300, 3))).astype(np.float32)
    graph.y = y
    path = tmp_path_factory.mktemp("own") / "graph"
    graph.save(path)
    return str(path)


def config_of(run: Path) -> dict:
    return tomllib.loads((run / "config.toml").read_text())


def test_the_layer_that_validates_better_is_taken(own, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", own, "--steps", "300", "--out", str(run), *SMALL]) == 0
    said = capsys.readouterr().err
    line = r"model.layer = concat, by validation f1_micro after \d+ steps: mean (\S+), concat (\S+)"
    found = re.search(line, said)
    assert float(found[1]) + 0.1 < float(found[2])
    assert config_of(run)["model"]["layer"] == "concat"


def test_with_auto_spelt_out_the_run_is_that_of_its_config(own, tmp_path):
    """Trials leave no trace: the same weights as of the values that they decided for."""
    auto, fixed = tmp_path / "auto", tmp_path / "fixed"
    options = ["--steps", "500", "--quiet", *SMALL]
    asked = ["--lr", "auto", "--sampler", "auto", "--estimator", "auto"]
    assert main(["train", own, *asked, *options, "--out", str(auto)]) == 0
    config = str(auto / "config.toml")
    assert main(["train", "--config", config, "--quiet", "--out", str(fixed)]) == 0
    name = "model.safetensors"
    assert (auto / name).read_bytes() == (fixed / name).read_bytes()
    assert main(["train", own, *asked, *options, "--out", str(tmp_path / "again")]) == 0
    assert config_of(tmp_path / "again") == config_of(auto)


def test_trials_take_a_third_of_the_run_at_most(own, monkeypatch):
    taken, fit = [], choosing.fit
    monkeypatch.setattr(choosing, "fit", lambda *a, **k: taken.append(k["steps"]) or fit(*a, **k))
    for steps in (20, 90, 300, 3000):
        taken.clear()
        config = make_config({"data": own, "training": {"steps": steps},
                              "sampler": {"name": "auto"}})  # fmt: skip
        config, graph, _ = prepare(config)
        config = make_config({"data": own, "training": {"steps": steps},
                              "sampler": {"name": "auto"}, "model": {"widths": 4}})  # fmt: skip
        choosing.decide(config, graph, lambda c, g: prepare(c)[2], lambda line: None)
        assert sum(taken) <= steps / 3
        assert bool(taken) == (steps >= 270)


def test_a_deep_model_is_tried_last_and_taken_where_it_is_better(tmp_path, monkeypatch):
    """On a path a label is the first node's of six: two layers cannot see it."""
    said = []
    config = make_config({"data": far(tmp_path), "training": {"steps": 6000, "batch_size": 100}})
    _, graph, _ = prepare(config)
    found = choosing.decide(config, graph, lambda c, g: prepare(c)[2], said.append)
    tables = found.training.tables()
    deep = PRESETS["deep"]
    assert all(tables[part][key] == v for part, values in deep.items() for key, v in values.items())
    assert re.match(r"model.layers = 6, .* after 150 steps: 2 0\.\d+, 6 1\.0+", said[-1])
    for given in ({"model": {"widths": 64}}, {"sampler": {"sizes": 3}}, {"optimizer": {"lr": 0.1}},
                  {"model": {"layers": 2}}, {"model": {"layer": "mean"}}):  # fmt: skip
        assert "model.layers" not in make_config({"data": "cora", **given}).auto
    # Where a third of the run has no room for it, it is not tried.
    said.clear()
    monkeypatch.setitem(choosing._STEPS, "model.layers", 1000)
    found = choosing.decide(config, graph, lambda c, g: prepare(c)[2], said.append)
    assert found.training.model.depth == 2
    assert said[-1].startswith("model.layers stays as usual: a third of the run has no room")


def far(tmp_path: Path) -> str:
    """Paths of six nodes: the first one's only feature is the label of all."""
    rng = np.random.default_rng(0)
    paths, length = 300, 6
    y = np.repeat(rng.integers(0, 2, paths), length)
    x = np.zeros((paths * length, 2), np.float32)
    first = np.arange(0, len(x), length)
    x[first, y[first]] = 1.0
    links = np.setdiff1d(np.arange(len(x) - 1), first + length - 1)
    split = rng.permutation(np.arange(len(x)) % 3).astype(np.int8)
    graph = Graph.from_edges(links, links + 1, nodes=len(x), x=x, y=y, split=split)
    graph.save(tmp_path / "far")
    return str(tmp_path / "far")


def test_features_that_name_nodes_are_not_read_by_their_own_rows(own):
    rng, nodes = np.random.default_rng(0), 300
    for columns, named in ((nodes, True), (10, False)):
        graph = labelled(nodes=nodes)
        graph.x = sp.csr_array(
            (np.ones(nodes, np.float32), (np.arange(nodes), rng.integers(0, columns, nodes))),
            shape=(nodes, columns),
        )
        said = []
        config = make_config({"data": own, "training": {"steps": 1500}, "model": {"layers": 2}})
        assert choosing.names_nodes(graph) == named
        found = choosing.decide(config, graph, lambda c, g: _with_model(c, g)[1], said.append)
        assert said[0].startswith("model.layer = mean: most columns") == named
        if named:
            assert found.training.tables()["model"]["layer"] == "mean"
    assert not choosing.names_nodes(labelled(nodes=nodes))


def test_what_cannot_be_combined_is_no_candidate(own, monkeypatch):
    """fastgcn without kept destinations serves no layer that reads its own rows."""
    said = []
    config = make_config({
        "data": own, "training": {"steps": 300}, "optimizer": {"name": "adam"},
        "sampler": {"name": "fastgcn", "keep_destinations": False},
    })  # fmt: skip
    _, graph, _ = prepare(config)
    found = choosing.decide(config, graph, lambda c, g: prepare(c)[2], said.append)
    assert found.training.tables()["model"]["layer"] == "mean"
    assert "concat -" in said[1]


def test_nothing_is_left_of_a_run_whose_options_are_bad(own, tmp_path, capsys):
    assert main(["train", own, "--sampler", "auto", "--set", "sampler.nonsense=3",
                 "--out", str(tmp_path / "run")]) == 2  # fmt: skip
    assert "nonsense" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_estimators_with_far_worse_gradients_are_out_whatever_they_score(own, monkeypatch):
    scores = {"anchored++": 0.5, "vrgcn": 0.6, "sgcn": 0.9}
    monkeypatch.setattr(choosing, "_tried", lambda config, *_: choosing._Trial(
        config, 10, {"f1_micro": scores[config.training.estimator_name], "loss": 1.0},
        {"anchored++": 0.1, "vrgcn": 0.9, "sgcn": 1.1}[config.training.estimator_name],
    ))  # fmt: skip
    said = []
    config = make_config({"data": own, "estimator": {"name": "auto"}, "sampler": {"sizes": 2},
                          "model": {"layer": "mean", "dropout": 0.0}, "optimizer": {"lr": 0.1},
                          "training": {"steps": 3000}})  # fmt: skip
    _, graph, _ = prepare(config)
    found = choosing.decide(config, graph, lambda c, g: None, said.append, lambda *_: None)
    assert found.training.estimator_name == "vrgcn"
    assert said == [
        "estimator.name = vrgcn, by validation f1_micro after 100 steps: anchored++ 0.5000 "
        "(error x cost 0.1), vrgcn 0.6000 (error x cost 0.9), sgcn 0.9000 (error x cost 1.1)"
    ]


def test_the_error_of_gradients_is_measured_where_samplers_are_tried(own, tmp_path, capsys):
    options = ["--steps", "600", "--lr", "0.01", "--estimator", "auto", *SMALL]
    assert main(["train", own, *options, "--out", str(tmp_path / "run")]) == 0
    line = next(line for line in capsys.readouterr().err.split("\n") if "estimator.name =" in line)
    error = {name: float(re.search(rf"{re.escape(name)} \S+ \(error x cost (\S+)\)", line)[1])
             for name in ("anchored++", "sgcn")}  # fmt: skip
    assert 0 < error["anchored++"] < error["sgcn"]


def test_a_summary_names_what_was_chosen(own, tmp_path):
    run = tmp_path / "run"
    assert main(["train", own, "--sampler", "auto", "--steps", "400", "--quiet", *SMALL,
                 "--out", str(run)]) == 0  # fmt: skip
    summary = json.loads((run / "summary.json").read_text())
    assert summary["sampler"] == config_of(run)["sampler"]["name"]


def test_a_short_run_tries_what_matters_most_and_says_what_it_leaves(own):
    _, graph, _ = prepare(make_config({"data": own}))
    for steps, left, last in ((100, "model.layer, optimizer.name, ", None),
                              (250, "optimizer.name, ", "model.layer = concat"),
                              (800, "model.dropout, ", "optimizer.name = ")):  # fmt: skip
        said = []
        config = make_config({"data": own, "training": {"steps": steps}})
        choosing.decide(config, graph, lambda c, g: prepare(c)[2], said.append)
        assert said[0].startswith(f"the run is too short for trials of {left}")
        assert said[-1].startswith(last or said[0])


def test_what_cannot_be_made_is_no_candidate(own):
    """concat gives six numbers for three classes where the last layer gives the logits."""
    config = make_config({"data": own, "training": {"steps": 900}, "optimizer": {"lr": 0.01},
                          "model": {"head": False, "widths": (8, 3), "dropout": 0.0}})  # fmt: skip
    graph, said = Graph.open(own), []
    found = choosing.decide(config, graph, lambda c, g: _with_model(c, g)[1], said.append)
    assert found.training.tables()["model"]["layer"] == "mean"
    assert any("concat -" in line for line in said)


def test_a_sampler_keeps_its_options_as_a_candidate():
    config = make_config({"data": "cora", "sampler": {"sizes": 2}})
    assert choosing._with(config, "sampler.name", "neighbor").training.sampler.sizes == 2
    assert choosing._with(config, "sampler.name", "ladies").training.sampler.sizes == 512


def test_a_signal_ends_the_trials(own, tmp_path, monkeypatch, capsys):
    """It is not mistaken for a candidate that cannot be run."""

    def stopped(*_, **__):
        raise TrainingInterrupted("stopped", 2, None)

    monkeypatch.setattr(choosing, "fit", stopped)
    assert main(["train", own, "--steps", "400", "--out", str(tmp_path / "run"), *SMALL]) == 130
    assert "before the run began: nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_without_validation_nodes_nothing_is_tried(own):
    config = make_config({"data": own, "training": {"steps": 3000}})
    _, graph, _ = prepare(config)
    graph = graph.with_split(np.where(graph.split == 1, 2, graph.split))
    assert choosing.decide(config, graph, lambda c, g: prepare(c)[2], print) == config


def test_options_beside_auto_are_refused(own):
    with pytest.raises(SgcnError, match=r"sampler.name is auto beside sizes, expected no options"):
        make_config({"data": own, "sampler": {"name": "auto", "sizes": 3}})
