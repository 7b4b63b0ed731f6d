"""Contract 4: means of the anchored gradient.

At the anchor. With the anchored forward rule all embeddings at W_s are exact, so a sampled gradient
is linear in the block of each layer, and blocks of different layers are independent given their
rows: E g(W_s; sample) = G_s, for any activation. Subgraph samplers use one block in all layers, so
for them this holds with one layer.

Away from it. G_t = G_s + g(W_t) - g(W_s) is unbiased if the model is linear: identity activation
and a loss that is linear in the logits (the softmax of noisy logits is not that of their mean).

A z-test of every entry with a fixed seed, Bonferroni over the entries, at the error level `LEVEL`.
The same test must reject broken estimators.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from helpers import LEVEL, SMALL, weighted_by, z_test
from learning import adam, drive, labelled, make_engine, small_model
from sgcn import Key, Loader
from sgcn.estimators import make_estimator
from sgcn.estimators.engine import Engine
from sgcn.estimators.passes import backward
from sgcn.estimators.recall import Recall
from sgcn.task import Task

SAMPLES = 500
# The walks of `saint` know their chances only by pre-sampling: unbiased only up to that.
NAMES = [name for name in SMALL if name not in ("exact", "saint-walk")]
# Where `row` moves the mean by so much that this many samples show it.
CLEAR = ["fastgcn-keep", "ladies-keep", "saint-node", "cluster"]
GRAPH = labelled(nodes=24)


@dataclass(frozen=True, eq=False)
class LinearTask(Task):
    """loss(i) = <c_i, logits_i>."""

    def loss(self, logits, nodes, weights=None):
        return (logits * self.labels.index_select(0, nodes)).sum(1) @ weights


def engine_of(name: str, weighting: str, activation: str, **options) -> Engine:
    depth = 1 if SMALL[name].draws_nodes else 2
    sampler = weighted_by(SMALL[name], weighting)
    estimator = make_estimator("anchored", **({"gap": 9, "restart": "never"} | options))
    return make_engine(
        GRAPH, estimator, sampler, small_model("mean", depth, activation=activation)
    )


def batches(engine: Engine):
    """Batches of random epochs, as training draws them."""
    loader = Loader(
        engine.graph, engine.train, engine.sampler, batch_size=4, depth=engine.model.depth,
        threads=0, seed=11,
    )  # fmt: skip
    for epoch in range(SAMPLES):
        yield engine.draw(loader.seeds(epoch, 0), Key(11, epoch))


def moments(gradients) -> tuple[np.ndarray, np.ndarray]:
    rows = np.stack([flat(g) for g in gradients])
    return rows.sum(0), (rows**2).sum(0)


def flat(gradient) -> np.ndarray:
    return np.concatenate([g.double().numpy().ravel() for g in gradient.values()])


def p_value(sums, wanted: np.ndarray) -> float:
    return z_test(*sums, SAMPLES, wanted)


# -- at the anchor ------------------------------------------------------------------------------


@functools.cache
def at_the_anchor(name: str, weighting: str, rule: str):
    """Moments of g(W_s; sample) and the snapshot's gradient."""
    engine = engine_of(name, weighting, "elu", forward=rule)
    snapshot = engine.snapshot()
    engine.apply(snapshot, torch.optim.SGD(engine.model.parameters(), 0.0))

    def gradient(batch):
        step = engine.operands.step(batch, Key(0))
        rule = engine.estimator.forward
        recall = Recall(rule, step, engine.histories, engine.anchor, engine.shortcuts)
        # A copy: at its own old weights a rule leaves out what only a difference would cancel.
        return backward(recall.run(dict(engine.anchor)))[0]

    return moments(gradient(batch) for batch in batches(engine)), flat(snapshot.gradient)


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_at_the_anchor_has_the_mean_of_the_snapshot(name):
    assert p_value(*at_the_anchor(name, "unbiased", "anchored")) > LEVEL


@pytest.mark.parametrize("name", CLEAR)
def test_row_weighting_is_seen_at_the_anchor(name):
    assert p_value(*at_the_anchor(name, "row", "anchored")) < LEVEL


@pytest.mark.parametrize("name", ["neighbor", "labor", "ladies"])
def test_without_history_the_activation_makes_a_bias(name):
    """Plain forward, ELU: the mean of an activation is not the activation of the mean."""
    assert p_value(*at_the_anchor(name, "unbiased", "plain")) < LEVEL


# -- away from it -------------------------------------------------------------------------------


@functools.cache
def away(name: str, weighting: str, rule: str):
    """Moments of the estimate and of its correction at moved weights; the true gradient there."""
    engine = engine_of(name, weighting, "identity", forward=rule, gradient="anchored")
    targets = torch.from_numpy(np.random.default_rng(2).normal(size=(len(GRAPH), 4))).float()
    engine.operands.task = LinearTask(targets, 4)
    (snapshot,) = drive(engine, 1, lambda model: adam(model, 0.3))
    loss = engine.operands.loss(needed_only=False)
    wanted = flat(engine.exact().backward(loss)[1])
    estimates = [flat(engine.regular(batch, Key(0)).gradient) for batch in batches(engine)]
    rows = np.stack(estimates)
    return (rows.sum(0), (rows**2).sum(0)), flat(snapshot.gradient), wanted


@pytest.mark.parametrize(
    ("name", "rule"),
    [*((name, "anchored") for name in NAMES), ("labor", "plain"), ("ladies", "plain")],
)
def test_the_anchored_gradient_of_a_linear_model_is_unbiased(name, rule):
    sums, _, wanted = away(name, "unbiased", rule)
    assert p_value(sums, wanted) > LEVEL


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_estimator_is_rejected(name):
    sums, snapshot, wanted = away(name, "unbiased", "anchored")
    total, squares = sums
    # The correction left out: the snapshot's gradient where the weights have moved.
    left_out = (SAMPLES * snapshot, SAMPLES * snapshot**2)
    assert p_value(left_out, wanted) < LEVEL
    # The correction half as large.
    half = (squares + 2 * total * snapshot + SAMPLES * snapshot**2) / 4
    assert p_value(((total + SAMPLES * snapshot) / 2, half), wanted) < LEVEL


@pytest.mark.parametrize("name", CLEAR)
def test_row_weighting_is_rejected(name):
    sums, _, wanted = away(name, "row", "anchored")
    assert p_value(sums, wanted) < LEVEL
