"""The task: what labels say it is, its loss against plain formulas, and what is refused."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from torch.nn.functional import huber_loss

from learning import labelled as labelled_graph
from sgcn import Graph, SgcnError
from sgcn.labels import CLASSES, NUMBERS, SETS, kind_of, labelled
from sgcn.task import Task, split_nodes, train_nodes

NODES, C = 60, 4
RNG = np.random.default_rng(5)
LOGITS = torch.from_numpy(RNG.normal(size=(NODES, C)).astype(np.float32))
GRAPHS = {kind: labelled_graph(multi_label=kind == SETS) for kind in (CLASSES, SETS)}
NUMBER_Y = 1e4 + 300 * RNG.normal(size=(NODES, 2))
GRAPHS[NUMBERS] = labelled_graph(y=NUMBER_Y)


def graph_with(y, split=None) -> Graph:
    n = len(y)
    split = np.zeros(n, int) if split is None else split
    return Graph.from_edges(np.arange(n - 1), np.arange(1, n), nodes=n, y=y, split=split)


# -- what labels are ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "kind", "known"),
    [
        (np.array([2, -1, 0]), CLASSES, [1, 0, 1]),
        (np.array([[0, 1], [1, 1]], np.uint8), SETS, [1, 1]),
        (np.array([[0, 1], [1, 0]], bool), SETS, [1, 1]),
        (np.array([[0.0, 1.0], [np.nan, np.nan]]), SETS, [1, 0]),
        (np.array([0.5, np.nan, 2.0]), NUMBERS, [1, 0, 1]),
        (np.array([[0.5, 1.0], [2.0, np.nan]], np.float32), NUMBERS, [1, 0]),
        (np.full((2, 2), np.nan), NUMBERS, [0, 0]),
    ],
)
def test_kinds(y, kind, known):
    assert kind_of(y) == kind
    assert labelled(y).tolist() == known
    graph = graph_with(y)
    assert split_nodes(graph, 0).tolist() == np.flatnonzero(known).tolist()
    if any(known):
        task = Task.of(graph)
        outputs = 3 if kind == CLASSES else 1 if y.ndim == 1 else 2
        assert (task.kind, task.outputs, task.multi_label) == (kind, outputs, kind == SETS)
        assert torch.isfinite(task.labels.float()).all()


def test_rows_of_zeros_and_ones_are_numbers_if_one_asks():
    graph = graph_with(np.array([[0.0, 1.0], [1.0, 1.0]]))
    assert (Task.of(graph).kind, Task.of(graph, loss="mse").kind) == (SETS, NUMBERS)


@pytest.mark.parametrize("loss", ["mse", "mae", lambda out, y: (out - y).square().mean(1)])
def test_whole_floats_are_numbers_only_if_one_asks(loss):
    graph = graph_with(np.array([0.0, 1.0, 2.0, np.nan]))
    with pytest.raises(SgcnError, match=r"whole numbers as float64, expected integers .* mse or"):
        Task.of(graph)
    assert Task.of(graph, loss=loss).kind == NUMBERS


def test_defaults():
    for kind, names, best in (
        (CLASSES, ["f1_micro"], "f1_micro"),
        (SETS, ["f1_micro"], "f1_micro"),
        (NUMBERS, ["mae", "r2"], "loss"),
    ):
        task = Task.of(GRAPHS[kind])
        assert (list(task.metrics), task.best_by) == (names, best)


@pytest.mark.parametrize(
    ("options", "names", "best"),
    [
        ({"metrics": ("accuracy", "roc_auc")}, ["accuracy", "roc_auc"], "accuracy"),
        ({"metrics": ("accuracy",), "best_by": "f1_macro"}, ["f1_macro", "accuracy"], "f1_macro"),
        ({"best_by": "loss"}, ["f1_micro"], "loss"),
        ({"metrics": ()}, [], "loss"),
    ],
)
def test_chosen_scores(options, names, best):
    task = Task.of(GRAPHS[CLASSES], **options)
    assert (list(task.metrics), task.best_by) == (names, best)
    assert list(task.score(LOGITS, torch.arange(NODES))) == [*names, "loss"]


# -- the loss -------------------------------------------------------------------------------------


def counts(y) -> np.ndarray:
    train = split_nodes(GRAPHS[CLASSES], 0)
    return np.bincount(y[train], minlength=C)


def log_softmax(z):
    return z - np.log(np.exp(z).sum(1, keepdims=True))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weight", [None, "balanced", (1.0, 0.0, 2.5, 0.5)])
def test_cross_entropy(weight, smoothing):
    graph = GRAPHS[CLASSES]
    y, train = np.asarray(graph.y), split_nodes(graph, 0)
    task = Task.of(graph, class_weight=weight, label_smoothing=smoothing)
    target = (1 - smoothing) * np.eye(C)[y] + smoothing / C
    rows = -(target * log_softmax(LOGITS.numpy().astype(float))).sum(1)
    each = np.ones(NODES)
    if weight is not None:
        given = 1.0 / counts(y) if weight == "balanced" else np.array(weight)
        each = given[y] / given[y[train]].mean()
        assert each[train].sum() == pytest.approx(len(train))
    if weight == "balanced":  # as scikit-learn has it
        assert np.allclose(each, (len(train) / (C * counts(y)))[y])
    nodes, share = torch.from_numpy(train), torch.rand(len(train))
    wanted = (each * rows)[train]
    assert float(task.loss(LOGITS[nodes], nodes)) == pytest.approx(wanted.mean(), rel=1e-5)
    found = float(task.loss(LOGITS[nodes], nodes, share))
    assert found == pytest.approx(wanted @ share.numpy(), rel=1e-5)
    assert task.score(LOGITS[nodes], nodes)["loss"] == pytest.approx(wanted.mean(), rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weight", [None, "balanced", (1.0, 0.0, 2.5, 0.5)])
def test_sets(weight, smoothing):
    """The weight of a label is that of having it, against 1 for not having it."""
    graph = GRAPHS[SETS]
    y, train = np.asarray(graph.y).astype(float), split_nodes(graph, 0)
    task = Task.of(graph, class_weight=weight, label_smoothing=smoothing)
    soft = y * (1 - smoothing) + smoothing / 2
    p = 1 / (1 + np.exp(-LOGITS.numpy().astype(float)))
    rows = -(soft * np.log(p) + (1 - soft) * np.log(1 - p))
    if weight is not None:
        have = y[train].sum(0)
        share = (len(train) - have) / have if weight == "balanced" else np.array(weight)
        each = np.where(y > 0, share, 1.0)
        each /= each[train].mean(0)
        rows = rows * each
    wanted = rows.mean(1)[train].mean()
    nodes = torch.from_numpy(train)
    assert float(task.loss(LOGITS[nodes], nodes)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("loss", ["mse", "mae"])
def test_numbers(loss):
    """In standard deviations of the training nodes: the loss of their mean is 1 for mse."""
    task, train = Task.of(GRAPHS[NUMBERS], loss=loss), split_nodes(GRAPHS[NUMBERS], 0)
    mean, std = NUMBER_Y[train].mean(0), NUMBER_Y[train].std(0)
    out = torch.from_numpy(NUMBER_Y + RNG.normal(size=NUMBER_Y.shape) * 50).float()
    away = (out.numpy() - NUMBER_Y) / std
    wanted = (away**2 if loss == "mse" else abs(away)).mean()
    nodes = torch.arange(NODES)
    assert float(task.loss(out, nodes)) == pytest.approx(wanted, rel=1e-3)
    scores = task.score(out, nodes)
    assert scores["mae"] == pytest.approx(abs(out.numpy() - NUMBER_Y).mean(), rel=1e-3)
    if loss == "mse":
        same = torch.from_numpy(mean).float().expand(len(train), 2)
        assert float(task.loss(same, torch.from_numpy(train))) == pytest.approx(1.0, rel=1e-3)
    assert [part.tolist() for part in task.scale] == [pytest.approx(mean), pytest.approx(std)]


def test_a_constant_number_has_deviation_one():
    task = Task.of(graph_with(np.full(5, 3.5)))
    assert [part.tolist() for part in task.scale] == [[3.5], [1.0]]


def test_a_loss_of_ones_own():
    """It sees outputs and targets in their units; class weights multiply its rows."""
    huber = functools.partial(huber_loss, delta=3.0, reduction="none")
    task = Task.of(graph_with(np.array([1.5, 9.0, 2.5])), loss=lambda out, y: huber(out, y).mean(1))
    out = torch.tensor([[1.0], [1.0], [9.0]])
    wanted = np.array([0.5 * 0.5**2, 3 * (8 - 1.5), 3 * (6.5 - 1.5)])
    assert float(task.loss(out, torch.arange(3))) == pytest.approx(wanted.mean())

    def margin(logits, y):
        return -logits.gather(1, y[:, None]).squeeze(1)

    y, train = np.asarray(GRAPHS[CLASSES].y), split_nodes(GRAPHS[CLASSES], 0)
    weighed = Task.of(GRAPHS[CLASSES], loss=margin, class_weight="balanced")
    each = len(train) / (C * counts(y))[y[train]]
    wanted = (each * -LOGITS.numpy()[train, y[train]]).mean()
    nodes = torch.from_numpy(train)
    assert float(weighed.loss(LOGITS[nodes], nodes)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("kind", [CLASSES, SETS, NUMBERS])
def test_rows_without_weight_may_have_no_label(kind):
    y = np.asarray(GRAPHS[kind].y).copy()
    y = y.astype(float) if kind == SETS else y
    y[:5] = -1 if kind == CLASSES else np.nan
    task = Task.of(labelled_graph(y=y))
    out = LOGITS[:10, : task.outputs].clone().requires_grad_()
    task.loss(out, torch.arange(10), torch.tensor([0.0] * 5 + [0.1] * 5)).backward()
    assert torch.isfinite(out.grad).all()
    assert (out.grad[:5] == 0).all()


def test_a_class_without_training_nodes_has_a_finite_weight():
    task = Task.of(graph_with(np.array([0, 0, 1, 2]), [0, 0, 0, 1]), class_weight="balanced")
    assert task.weights.tolist() == [0.75, 1.5, 1.5]
    sets = np.array([[1, 0], [1, 0]], np.uint8)
    assert torch.isfinite(Task.of(graph_with(sets), class_weight="balanced").weights).all()


# -- scores ---------------------------------------------------------------------------------------


def test_a_score_of_ones_own_and_its_direction():
    def worst(outputs, targets):
        return (outputs.argmax(1) != targets).float().mean()

    task = Task.of(GRAPHS[CLASSES], metrics=(worst, "accuracy"))
    found = task.score(LOGITS, torch.arange(NODES))
    assert found["worst"] == pytest.approx(1 - found["accuracy"])
    assert task.best_by == "worst"
    assert task.improves({"worst": 0.6}, {"worst": 0.5})
    worst.lower_is_better = True
    task = Task.of(GRAPHS[CLASSES], metrics=(worst,))
    assert not task.improves({"worst": 0.6}, {"worst": 0.5})


@pytest.mark.parametrize(
    ("kind", "best_by", "higher"),
    [(CLASSES, "f1_macro", True), (CLASSES, "loss", False), (SETS, "average_precision", True),
     (NUMBERS, "mae", False), (NUMBERS, "mse", False), (NUMBERS, "r2", True)],
)  # fmt: skip
def test_directions(kind, best_by, higher):
    task = Task.of(GRAPHS[kind], best_by=best_by)
    low, high = {best_by: 0.2}, {best_by: 0.3}
    assert task.improves(high, low) == higher
    assert task.improves(low, high) == (not higher)
    assert not task.improves(low, low)  # of equals the first


def test_no_nodes_no_scores():
    found = Task.of(GRAPHS[NUMBERS]).score(LOGITS[:0, :2], torch.arange(0))
    assert list(found) == ["mae", "r2", "loss"]
    assert np.isnan(list(found.values())).all()


# -- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (CLASSES, {"loss": "bce"}, r"loss is 'bce' and y holds classes \(int64\), expected sets"),
        (CLASSES, {"loss": "mse"}, r"y holds classes .* numbers: floats.* --set kind=numbers"),
        (SETS, {"loss": "cross_entropy"}, "y holds sets of labels .* expected classes"),
        (SETS, {"loss": "mae"}, r"y holds sets of labels \(uint8\), expected numbers"),
        (NUMBERS, {"loss": "cross_entropy"}, r"y holds numbers \(float64\), expected classes"),
        (NUMBERS, {"class_weight": "balanced"}, "class_weight is 'balanced', expected none"),
        (NUMBERS, {"label_smoothing": 0.1}, "label_smoothing is 0.1, expected 0"),
        (NUMBERS, {"metrics": ("f1_micro",)}, "metrics has 'f1_micro', expected some of mse, mae"),
        (NUMBERS, {"best_by": "f1_micro"}, "best_by is 'f1_micro', expected one of loss, mse"),
        (CLASSES, {"metrics": ("r2",)}, r"metrics has 'r2', expected some of f1_micro.*classes"),
        (CLASSES, {"metrics": ("acuracy",)}, r"did you mean 'accuracy'"),
        (CLASSES, {"best_by": "acuracy"}, r"did you mean 'accuracy'"),
        (CLASSES, {"metrics": (lambda o, t: 0, lambda o, t: 1)}, "two scores are called '<lambda>"),
        (CLASSES, {"class_weight": (1.0, 2.0)}, "has 2 numbers, expected one for each of 4"),
        (CLASSES, {"class_weight": (0.0,) * 4}, "class_weight is 0 for all training nodes"),
        (CLASSES, {"loss": lambda o, t: o.mean()}, r"the loss is of shape \(\) for 5"),
        (CLASSES, {"loss": lambda o, t: 0.0}, "the loss is a float for 5 rows, expected one loss"),
        (SETS, {"loss": lambda o, t: o - t}, r"shape \(5, 4\) for .* \.mean\(1\)"),
        (SETS, {"loss": lambda o, t: (o - t).mean(0)}, r"shape \(4,\)"),
        (SETS, {"loss": lambda o, t: (o - t).mean(1), "class_weight": "balanced"},
         "class_weight is 'balanced', expected none: y has sets of labels with a loss of your own"),
        (CLASSES, {"loss": lambda o, t: o.sum(1), "label_smoothing": 0.1}, "label_smoothing is"),
    ],
)  # fmt: skip
def test_refused(kind, options, words):
    with pytest.raises(SgcnError, match=words):
        Task.of(GRAPHS[kind], **options)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([0.5, np.inf]), "y holds infinite numbers"),
        (np.array([np.nan, np.nan]), "y labels no node, expected numbers: floats"),
        (np.array([-1, -1]), "y labels no node, expected classes"),
        (np.array([[0, 2], [1, 1]]), "other than 0 and 1"),
        (np.array(["a", "b"]), "y holds <U1 values, expected whole class numbers"),
    ],
)
def test_bad_labels(y, words):
    with pytest.raises(SgcnError, match=words):
        Task.of(graph_with(y))


def test_numbers_need_training_nodes():
    with pytest.raises(SgcnError, match="no labelled training nodes"):
        train_nodes(graph_with(np.array([0.5, np.nan]), [1, 0]))
    with pytest.raises(SgcnError, match="no labelled training nodes"):
        Task.of(graph_with(np.array([0.5, np.nan]), [1, 0]))
