"""`fit` and the commands on every kind of task: numbers, weights, scores by name or one's own."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
import torch

from learning import FEATURES, bits, labelled, small_model
from sgcn import Graph, SgcnError, Training, fit, make_model
from sgcn.cli import main
from sgcn.compute.exact import predict
from sgcn.metrics import METRICS
from sgcn.rows import store_of
from sgcn.runs.config import Config, make_config
from sgcn.runs.curves import draw
from sgcn.runs.directory import train
from sgcn.training.events import ScoreEvent
from sgcn.training.options import TaskOptions
from sgcn.training.sinks import Memory, Sink

BASE = labelled(nodes=300)
# Two numbers in very different units, which features and neighbours tell; some are not known.
MEANS = (BASE.matrix() @ BASE.x)[:, :2]
Y = np.array([2.5e5, -3e-3]) + MEANS * np.array([6e4, 1e-3])
Y[::11] = np.nan
NUMBERS = labelled(nodes=300, y=Y)
FAST = {"estimator": "sgcn", "batch_size": 32, "sampler": "exact"}


def save(graph: Graph, path) -> str:
    names = ("indptr", "indices", "x", "y", "split")
    np.savez(path, **{name: getattr(graph, name) for name in names})
    return str(path)


def number_model(**options):
    return make_model(FEATURES, 2, widths=16, layers=1, seed=0, bias=True, **options)


# -- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize("loss", ["auto", "mse", "mae"])
def test_numbers_of_any_size_are_learned(loss, head):
    model = number_model(head=head)
    fitted = fit(model, NUMBERS, loss=loss, epochs=60, lr=0.03, **FAST)
    assert list(fitted.test) == ["mae", "r2", "loss"]
    assert fitted.test["r2"] > 0.8
    logits = predict(model, NUMBERS, store_of(NUMBERS.x)).numpy()  # in the units of y
    known = ~np.isnan(Y[:, 0]) & (np.asarray(NUMBERS.split) == 2)
    for k in (0, 1):
        away, spread = logits[known, k] - Y[known, k], Y[known, k] - Y[known, k].mean()
        assert 1 - (away**2).sum() / (spread**2).sum() > 0.7
    assert {"output_mean", "output_std"} <= set(model.state_dict())


def test_units_do_not_matter():
    """The same numbers in other units: the same loss, the same outputs in those units."""
    found = []
    for factor in (1.0, 1024.0):
        model = number_model()
        fitted = fit(model, labelled(nodes=300, y=Y * factor), epochs=3, **FAST)
        logits = predict(model, NUMBERS, store_of(NUMBERS.x)) / factor
        found.append((fitted.test["loss"], fitted.test["r2"], logits.numpy()))
    (loss, r2, first), (again, r2_again, second) = found
    assert (loss, r2) == (pytest.approx(again, rel=1e-4), pytest.approx(r2_again, rel=1e-4))
    assert np.allclose(first, second, rtol=1e-4)


class Stop(Sink):
    """Breaks off after some steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def emit(self, event) -> None:
        if event.event == "step" and event.step >= self.steps:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("graph", "options"),
    [(NUMBERS, {}), (BASE, {"class_weight": "balanced", "best_by": "roc_auc"})],
)
def test_resumed_to_the_bit(graph, options, tmp_path):
    def make():
        return number_model() if graph is NUMBERS else small_model()

    options = FAST | {"epochs": 6, "checkpoint_seconds": 0.0} | options
    whole, stopped = make(), make()
    expected = fit(whole, graph, **options)
    with pytest.raises(KeyboardInterrupt):
        fit(stopped, graph, state=tmp_path, sinks=[Stop(17)], **options)
    again = make()
    found = fit(again, graph, state=tmp_path, **options)
    assert (found.test, found.validation) == (expected.test, expected.validation)
    assert bits(*again.state_dict().values()) == bits(*whole.state_dict().values())


def test_a_model_keeps_the_units_that_it_has_learned():
    model = number_model()
    fit(model, NUMBERS, epochs=1, **FAST)
    mean = model.output_mean.clone()
    fit(model, labelled(nodes=300, y=Y * 2), epochs=1, **FAST)
    assert torch.equal(model.output_mean, mean)


# -- scores ---------------------------------------------------------------------------------------


def near(outputs, targets):
    """Of the user."""
    return (outputs.argmax(1) - targets).abs().float().mean()


near.lower_is_better = True


@pytest.mark.parametrize("estimator", ["sgcn", "full"])
@pytest.mark.parametrize("best_by", [*(n for n in METRICS if n not in ("mse", "mae", "r2")), near])
def test_the_best_by_any_score(best_by, estimator):
    """The weights kept are those of the best look, by a score from a snapshot or of a pass."""
    memory, name = Memory(), best_by if isinstance(best_by, str) else "near"
    result = fit(
        small_model(), BASE, metrics=best_by, epochs=8, batch_size=32, lr=0.2, average=0.0,
        estimator=estimator, sinks=[memory],
    )  # fmt: skip
    seen = [e.validation[name] for e in memory.events if isinstance(e, ScoreEvent)]
    assert result.validation[name] == pytest.approx((min if name == "near" else max)(seen))
    assert list(result.test) == [name, "loss"]
    logits = None
    for event in memory.events:
        if isinstance(event, ScoreEvent) and event.best:
            logits = event
    assert logits.validation[name] == pytest.approx(result.validation[name])


def test_class_weights_raise_the_rare_class():
    """A class of one node in twenty, hard to tell: weights trade precision for recall."""
    rng = np.random.default_rng(3)
    rare = rng.random(300) < 0.08
    x = (rare[:, None] * 0.8 + rng.normal(size=(300, FEATURES))).astype(np.float32)
    graph = labelled(nodes=300, x=x, y=rare.astype(int))
    recalls = []
    for weight in (None, "balanced"):
        model = make_model(FEATURES, 2, widths=8, seed=0)
        fit(model, graph, class_weight=weight, epochs=20, **FAST)
        guess = predict(model, graph, store_of(x)).argmax(1).numpy()
        recalls.append(guess[rare].mean())
    assert recalls[1] > recalls[0] + 0.2


# -- what fit refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "outputs", "words"),
    [
        (BASE, 3, "the model gives 3 outputs a node and y holds 4 classes, expected one output"),
        (BASE, 5, r"gives 5 outputs .* 4 classes, .* make_model\(features, 4\)"),
        (labelled(multi_label=True, nodes=300), 3, "3 outputs a node and y holds 4 sets of labels"),
        (NUMBERS, 1, "gives 1 output.* a node and y holds 2 numbers"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"sampler": "saint"}, {"inductive": True}])
def test_the_wrong_number_of_outputs(graph, outputs, words, options):
    with pytest.raises(SgcnError, match=words):
        fit(make_model(FEATURES, outputs, widths=8), graph, epochs=1, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "cross-entropy"}, r"task: loss is .* expected one of auto, .*'cross_entropy'"),
        ({"loss": torch.nn.MSELoss}, "loss is <class .* or in fit a function"),
        ({"loss": 3}, "task: loss is 3, .* or in fit a function"),
        ({"class_weight": "balance"}, "class_weight is 'balance', expected balanced, or a number"),
        ({"class_weight": [1, -1, 1, 1]}, "class_weight is"),
        ({"class_weight": [1, np.inf, 1, 1]}, "class_weight is"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1.0"),
        ({"metrics": 3}, "metrics is 3, expected auto, or some of f1_micro"),
        ({"metrics": ["f1"]}, "metrics has 'f1', expected some of f1_micro"),
        ({"best_by": near}, "best_by is <function near"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(SgcnError, match=words) as caught:
        fit(small_model(), BASE, **options)
    assert "\n" not in str(caught.value)


def test_options_take_many_forms():
    weights = (1.0, 2.0, 3.0, 4.0)
    for given in (weights, list(weights), np.array(weights), torch.tensor(weights)):
        assert TaskOptions(class_weight=given).class_weight == weights
    for names in ("f1_macro, roc_auc", ["f1_macro", "roc_auc"], ("f1_macro", "roc_auc")):
        assert TaskOptions(metrics=names).metrics == ("f1_macro", "roc_auc")
    assert TaskOptions(metrics="auto").metrics == "auto"


def test_functions_are_for_fit(tmp_path):
    """No file can hold one, so a run directory refuses it before it is made."""
    def loss(outputs, y):
        return (outputs - 0).mean(1)

    data = save(BASE, tmp_path / "graph.npz")
    for options in ({"loss": loss}, {"metrics": (near,)}):
        config = Config(data, Training(task=TaskOptions(**options)))
        with pytest.raises(SgcnError, match=r"is a function, which no file can hold, .* fit$"):
            config.to_toml()
        with pytest.raises(SgcnError, match="no file can hold"):
            train(config, tmp_path / "run", quiet=True)
        assert not (tmp_path / "run").exists()
    with pytest.raises(SgcnError, match="loss is 'my_loss', expected one of auto, cross_entropy"):
        make_config({"data": data, "task": {"loss": "my_loss"}})


# -- the commands ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run on numbers, and one on classes with scores of choice."""
    folder = tmp_path_factory.mktemp("runs")
    numbers = save(NUMBERS, folder / "numbers.npz")
    NUMBERS.save(folder / "numbers")
    classes = save(BASE, folder / "classes.npz")
    few = ["--quiet", "--epochs", "3", "--set", "model.widths=8", "--set", "training.batch_size=32"]
    assert main(["train", numbers, "--out", str(folder / "a"), *few]) == 0
    scores = ["--set", "task.metrics=roc_auc,accuracy", "--set", "task.class_weight=balanced"]
    assert main(["train", classes, "--out", str(folder / "b"), *few, *scores]) == 0
    return folder


def test_a_run_on_numbers(runs, capsys):
    summary = json.loads((runs / "a" / "summary.json").read_text())
    assert list(summary["test"]) == ["mae", "r2", "loss"]
    assert main(["evaluate", str(runs / "a")]) == 0
    scores = json.loads(capsys.readouterr().out)
    for part in ("validation", "test"):
        assert scores[part] == pytest.approx(summary[part], rel=1e-5)
    out = runs / "p.npy"
    assert main(["predict", str(runs / "a"), "--out", str(out)]) == 0
    rows = np.load(out)
    known = ~np.isnan(Y[:, 0]) & (np.asarray(NUMBERS.split) == 2)
    assert abs(rows[known] - Y[known]).mean() == pytest.approx(summary["test"]["mae"], rel=1e-4)
    capsys.readouterr()
    assert main(["predict", str(runs / "a"), "--out", str(out), "--probabilities"]) == 2
    said = capsys.readouterr().err
    assert "predicts numbers, which have no probabilities" in said
    assert said.count("\n") == 1


def test_chosen_scores_are_everywhere(runs, capsys):
    config = tomllib.loads((runs / "b" / "config.toml").read_text())["task"]
    assert config == {
        "loss": "auto", "class_weight": "balanced", "label_smoothing": 0.0,
        "metrics": ["roc_auc", "accuracy"], "best_by": "auto",
    }  # fmt: skip
    summary = json.loads((runs / "b" / "summary.json").read_text())
    assert list(summary["test"]) == ["roc_auc", "accuracy", "loss"]
    lines = [json.loads(x) for x in (runs / "b" / "metrics.jsonl").read_text().splitlines()]
    assert {tuple(e["validation"]) for e in lines if e["event"] == "score"} == {
        ("roc_auc", "accuracy", "loss")
    }
    again = ["train", str(runs / "classes.npz"), "--config", str(runs / "b" / "config.toml")]
    assert main([*again, "--out", str(runs / "c")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("test ROC-AUC 0.")
    assert ", accuracy 0." in said.out
    assert "validation ROC-AUC 0." in said.err
    assert json.loads((runs / "c" / "summary.json").read_text())["test"] == summary["test"]


def test_comparing_on_numbers(runs, capsys):
    out = runs / "compare"
    code = main(["compare", str(runs / "numbers"), "--vary", "estimator=full,sgcn", "--epochs", "2",
                 "--out", str(out), "--quiet", "--set", "task.loss=mae"])  # fmt: skip
    assert code == 0
    said = capsys.readouterr().out
    assert "test MAE  best val. MAE" in said
    assert (out / "curves.png").exists()
    draw([out / "full", runs / "b"], runs / "mixed.png")  # of tasks that differ
    assert main(["report", str(out), str(runs / "b"), "--out", str(runs / "r.html")]) == 0


def test_the_bounds_speak_of_no_numbers(runs, capsys):
    options = ["--draws", "16", "--set", "training.batch_size=8"]
    assert main(["theory", str(runs / "numbers.npz"), *options]) == 0
    assert "no bounds: the loss is mse, expected cross_entropy or bce" in capsys.readouterr().out


def test_what_a_graph_with_numbers_is_like(runs, capsys):
    for name in ("numbers.npz", "numbers"):
        assert main(["data", "info", str(runs / name)]) == 0
        said = capsys.readouterr().out
        assert "labels     2 numbers a node; 272 nodes (from -0.0" in said
        assert "without a label in train: they are left out" in said
        assert "homophily" not in said
    assert main(["data", "info", str(runs / "numbers"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["labels"], facts["numbers"]["labelled"]) == (None, 272)
    assert main(["data", "verify", str(runs / "numbers")]) == 0
    split = ["data", "split", str(runs / "numbers"), "--out", str(runs / "split")]
    assert main([*split, "--how", "stratified"]) == 2
    assert main(split) == 0
    again = Graph.open(runs / "split")
    assert np.array_equal(np.asarray(again.y), Y, equal_nan=True)
    assert (np.asarray(again.split)[::11] == -1).all()
    exported = runs / "out.pt"
    assert main(["data", "export", "pyg", str(runs / "numbers"),
                 "--out", str(exported)]) == 0  # fmt: skip
    assert torch.equal(torch.load(exported)["y"].isnan()[:, 0], torch.from_numpy(np.isnan(Y[:, 0])))
