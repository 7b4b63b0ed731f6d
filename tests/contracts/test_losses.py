"""Contract: any loss, weighted or not, is the same for every estimator.

The reference is a plain formula over the full batch, dense and in float64, by another road than
training takes. Class weights are those of all training nodes, whatever a batch holds of them.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learning import (
    CLASSES,
    FEATURES,
    distance,
    drive,
    exact_gradient,
    labelled,
    make_engine,
)
from sgcn import Key, fit, make_model
from sgcn.estimators import make_estimator
from sgcn.estimators.gradient import GRADIENT_RULES
from sgcn.nn import Model
from sgcn.task import Task, split_nodes

# -- the formulas, of the training nodes' outputs and labels --------------------------------------


def cross_entropy(logits, y, smoothing: float = 0.0):
    target = (1 - smoothing) * torch.eye(CLASSES)[y] + smoothing / CLASSES
    return -(target * logits.log_softmax(1)).sum(1)


def balanced(logits, y):
    each = len(y) / (CLASSES * torch.bincount(y.long(), minlength=CLASSES))
    return (each[y] * cross_entropy(logits, y)).mean()


def given_and_smooth(logits, y):
    each = torch.tensor([1.0, 4.0, 0.5, 2.0])[y]
    return (each * cross_entropy(logits, y, 0.2)).sum() / each.sum()


def sets(logits, y):
    have = y.double().mean(0)
    each = torch.where(y > 0, 0.5 / have, 0.5 / (1 - have))
    p = logits.sigmoid()
    return -(each * torch.where(y > 0, p.log(), (1 - p).log())).mean()


def mse(outputs, y):
    return ((outputs - y) / y.std(0, correction=0)).square().mean()


def mae(outputs, y):
    return ((outputs - y[:, None]) / y.std(correction=0)).abs().mean()


def own(outputs, y):
    """Of the user: it serves as the formula too."""
    return (outputs - y).square().log1p().mean(1)


X = labelled().x
NUMBERS = 300.0 + 20.0 * np.tanh(X[:, :2]) + X[:, 2:4]
UNKNOWN = NUMBERS.copy()
UNKNOWN[3:13] = np.nan  # training nodes among them: they have no loss

LOSSES = {
    "balanced": (labelled(), {"class_weight": "balanced"}, balanced),
    "given, smooth": (
        labelled(), {"class_weight": (1.0, 4.0, 0.5, 2.0), "label_smoothing": 0.2},
        given_and_smooth,
    ),
    "balanced sets": (labelled(multi_label=True), {"class_weight": "balanced"}, sets),
    "mse": (labelled(y=UNKNOWN), {}, mse),
    "mae": (labelled(y=NUMBERS[:, 0]), {"loss": "mae"}, mae),
    "own": (labelled(y=NUMBERS / 100), {"loss": own}, lambda out, y: own(out, y).mean()),
}  # fmt: skip
every_loss = pytest.mark.parametrize("name", LOSSES)
every_gradient = pytest.mark.parametrize("gradient", GRADIENT_RULES)


def parts(name: str, kind: str = "mean", **options):
    """Graph, task, model and formula of a loss."""
    graph, chosen, formula = LOSSES[name]
    task = Task.of(graph, **chosen)
    model = make_model(
        FEATURES, task.outputs, layer=kind, widths=(6, 7), seed=3, bias=True, **options
    )
    model.scale_outputs(task.scale)
    return graph, task, model, formula


def sgd(model: Model) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def engine_of(gradient: str, graph, task, model, sampler="exact", **options):
    estimator = make_estimator(
        "sgcn", forward="anchored", gradient=gradient, gap=4, restart="never", **options
    )
    return make_engine(graph, estimator, sampler, model, task)


@pytest.mark.parametrize("kind", ["mean", "concat"])
@every_gradient
@every_loss
def test_full_batch_gradient(name, gradient, kind):
    """Exact sampling of all training nodes, snapshots among the steps."""
    graph, task, model, formula = parts(name, kind)
    engine = engine_of(gradient, graph, task, model)
    for step, outcome in enumerate(drive(engine, 6, optimizer=sgd, size=None)):
        assert distance(outcome.gradient, exact_gradient(model, graph, formula)) < 1e-5, step
        logits = engine.exact().logits().index_select(0, torch.from_numpy(engine.train))
        loss = task.loss(logits, torch.from_numpy(engine.train))
        assert outcome.loss == pytest.approx(float(loss), rel=1e-4)


@every_gradient
@every_loss
def test_batches_are_unbiased(name, gradient):
    """The batches of a pass over the training nodes have the full batch's gradient as their mean,
    though no batch has the classes in their proportions."""
    graph, task, model, formula = parts(name)
    engine = engine_of(gradient, graph, task, model)
    steps = drive(engine, 2, optimizer=sgd, size=None)
    next(steps), next(steps)  # a snapshot and its optimiser's step, so that weights have moved
    train = engine.train[np.argsort(np.asarray(graph.y).reshape(len(graph), -1)[engine.train, 0])]
    found: dict[str, torch.Tensor] = {}
    for seeds in np.split(train, 5 if len(train) % 5 == 0 else 2):
        outcome = engine.regular(engine.draw(seeds, Key(0)), Key(0))
        for key, g in outcome.gradient.items():
            found[key] = found.get(key, 0) + g.double() * len(seeds) / len(train)
    assert distance(found, exact_gradient(model, graph, formula)) < 1e-5


@pytest.mark.parametrize("chunk", [None, 7])
@every_loss
def test_large_batches_and_chunks(name, chunk):
    """Snapshots of disjoint halves have the full batch's gradient as their mean."""
    graph, task, model, formula = parts(name)
    engine = make_engine(graph, "sgcn", "exact", model, task, chunk=chunk)
    wanted = exact_gradient(model, graph, formula)
    operands = engine.operands
    _, whole, _ = operands.exact_pass(engine.weights).backward(operands.loss())
    assert distance(whole, wanted) < 1e-5
    found: dict[str, torch.Tensor] = {}
    for nodes in np.array_split(engine.train, 2):
        half = operands.exact_pass_on(nodes, engine.weights)
        for key, g in half.backward(operands.loss_on(nodes))[1].items():
            found[key] = found.get(key, 0) + g.double() * len(nodes) / len(engine.train)
    assert distance(found, wanted) < 1e-5


@pytest.mark.parametrize("inductive", [False, True])
@every_loss
def test_a_step_of_fit(name, inductive):
    """Through `fit`: one exact step of plain SGD, on the subgraph of training nodes too."""
    graph, _, model, formula = parts(name)
    seen = graph.subgraph(np.asarray(graph.split) == 0) if inductive else graph
    wanted = exact_gradient(model, seen, lambda out, y: _labelled_only(formula, out, y))
    fit(
        model, graph, estimator="full", optimizer="sgd", lr=0.1, epochs=1, batches_per_epoch=1,
        average=0.0, preaggregate=False, inductive=inductive, **LOSSES[name][1],
    )  # fmt: skip
    assert distance({key: p.grad for key, p in model.named_parameters()}, wanted) < 1e-5


def _labelled_only(formula, outputs, y):
    known = ~torch.isnan(y.double()).reshape(len(y), -1).any(1)
    return formula(outputs[known], y[known])


@pytest.mark.parametrize("sampler", ["saint-node", "saint-walk", "cluster"])
def test_nodes_of_a_subgraph_without_numbers(sampler):
    """They are computed and have no loss: 0 times NaN must not come in."""
    graph, task, model, _ = parts("mse")
    y = np.where(np.asarray(graph.split)[:, None] == 0, UNKNOWN, np.nan)
    bare = labelled(y=y)
    task = Task.of(bare)
    for outcome in drive(make_engine(bare, "anchored", sampler, model, task), 6, optimizer=sgd):
        assert np.isfinite(outcome.loss)
        assert all(torch.isfinite(g).all() for g in outcome.gradient.values())


def test_weights_of_a_batch_would_be_biased():
    """The contract can fail: class weights that a batch computes for itself break it."""
    graph, task, model, _ = parts("balanced")
    train = split_nodes(graph, 0)
    half = train[: len(train) // 2]
    y = torch.from_numpy(np.asarray(graph.y)[half])
    logits = make_engine(graph, "sgcn", "exact", model, task).exact().logits()[half]
    assert float(balanced(logits, y)) != pytest.approx(
        float(task.loss(logits, torch.from_numpy(half))), rel=1e-2
    )
