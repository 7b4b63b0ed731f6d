"""Contract 2: exact sampling of all training nodes gives the full-batch gradient at every step.

The reference is dense, in float64 and by another road (autograd over the whole model). 1e-5 of
its norm is the contract's float32 rounding: 2**-24 times some hundred terms of a sum.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from learning import KINDS, distance, drive, exact_gradient, labelled, make_engine, small_model
from sgcn import SgcnError
from sgcn.estimators import ESTIMATORS, Estimator, make_estimator
from sgcn.estimators.forward import FORWARD_RULES
from sgcn.estimators.gradient import GRADIENT_RULES
from sgcn.estimators.shortcuts import Shortcuts
from sgcn.nn import GraphConv

GAP = 4
STEPS = 2 * GAP + 1  # two snapshots, their regular steps, and the next snapshot
PAIRS = [(f, g) for f in FORWARD_RULES for g in GRADIENT_RULES]
GRAPHS = {"single": labelled(), "multi": labelled(multi_label=True)}


def estimator_of(name: str, **options) -> Estimator:
    """By name, or a free pair ``forward x gradient``; no restarts, which would hide an error."""
    options = {"gap": 1 if name == "full" else GAP, "restart": "never", "warmup": 0} | options
    if name in ESTIMATORS:
        return make_estimator(name, **options)
    forward, gradient = name.split(" x ")
    return make_estimator("sgcn", forward=forward, gradient=gradient, **options)


NAMED = {(v["forward"], v["gradient"]) for name, v in ESTIMATORS.items() if name != "full"}
NAMES = [*ESTIMATORS, *(f"{f} x {g}" for f, g in PAIRS if (f, g) not in NAMED)]
WITH_D = [name for name in NAMES if estimator_of(name).gradient.needs_snapshot]


def check(graph, kind, depth, estimator, size=None, head=True, **options) -> None:
    model = small_model(kind, depth, head=head)
    engine = make_engine(graph, estimator, "exact", model, **options)
    for step, outcome in enumerate(drive(engine, STEPS, size=size)):
        error = distance(outcome.gradient, exact_gradient(engine.model, graph))
        assert error < 1e-5, f"step {step}"


def test_every_pair_of_rules_is_here():
    covered = {(type(estimator_of(n).forward), type(estimator_of(n).gradient)) for n in NAMES}
    assert covered == {(FORWARD_RULES[f], GRADIENT_RULES[g]) for f, g in PAIRS}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_full_batch_gradient(name, kind, depth):
    labels = "multi" if kind == "concat" else "single"  # as the paper pairs them
    check(GRAPHS[labels], kind, depth, estimator_of(name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WITH_D)
def test_with_the_table_of_layer_gradients(name, kind):
    check(GRAPHS["single"], kind, 3, estimator_of(name, layer_gradients=True))


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_without_a_head(name, depth):
    check(GRAPHS["single"], "mean", depth, estimator_of(name), head=False)


@pytest.mark.parametrize("kind", ["mean", "attention"])
@pytest.mark.parametrize("name", NAMES)
def test_multi_label(name, kind):
    check(GRAPHS["multi"], kind, 2, estimator_of(name))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_large_batch_of_all_training_nodes_is_exact(name, kind):
    with_d = {"layer_gradients": kind != "mean"} if name in WITH_D else {}
    estimator = estimator_of(name, snapshot_nodes=30, **with_d)
    check(GRAPHS["single"], kind, 2, estimator)


@pytest.mark.parametrize(
    ("kind", "snapshot_nodes"),
    [("mean", None), ("concat", 30), ("gin", None), ("residual", 30), ("cat", None)],
)
@pytest.mark.parametrize("name", NAMES)
def test_preaggregated_first_layer(name, kind, snapshot_nodes):
    with_d = {"layer_gradients": True} if name in WITH_D else {}
    estimator = estimator_of(name, snapshot_nodes=snapshot_nodes, **with_d)
    check(GRAPHS["multi"], kind, 2, estimator, preaggregate=True)


@pytest.mark.parametrize(
    ("name", "kind", "preaggregate"),
    [
        ("anchored++", "mean", True), ("anchored++", "concat", True),
        ("sgcn+", "concat", False), ("sgcn++", "concat", False), ("anchored++", "concat", False),
    ],
)  # fmt: skip
def test_what_the_table_knows_is_not_computed_again(name, kind, preaggregate, monkeypatch):
    """On any sample the first layer is one product, and nothing at the old weights: it comes from
    the snapshot if it is exact, else f(X; W - W_old) stands for f(X; W) - f(X; W_old)."""
    calls, own = [], GraphConv.forward
    monkeypatch.setattr(GraphConv, "forward", lambda *a: calls.append(1) or own(*a))

    def last_gradient(shortcuts: Shortcuts | None = None) -> dict:
        estimator = make_estimator(name, gap=9, restart="never", warmup=0)
        model = small_model(kind)
        engine = make_engine(
            GRAPHS["multi"], estimator, "neighbor", model, preaggregate=preaggregate,
            shortcuts=shortcuts,
        )  # fmt: skip
        *_, last = drive(engine, 4)
        return last.gradient

    found = last_gradient()
    assert len(calls) == 2 + 3 * 3  # a snapshot, then the first layer once and the second twice
    without = Shortcuts(frozenset({"first_layer_cancels", "weight_change"}))
    assert distance(found, last_gradient(without)) < 1e-5
    assert len(calls) == 2 + 3 * 3 + 2 + 3 * 4


@pytest.mark.parametrize("kind", ["mean", "concat", "gin"])
def test_preaggregated_sparse_features(kind):
    x = np.where(GRAPHS["single"].x > 0.5, GRAPHS["single"].x, 0.0)
    graph = labelled(x=sp.csr_array(x))
    check(graph, kind, 2, estimator_of("sgcn++"), preaggregate=True)


def test_preaggregation_is_refused_where_it_would_be_wrong():
    """Attention weighs edges by itself."""
    engine = make_engine(
        GRAPHS["single"], estimator_of("sgcn"), "exact", small_model("attention"), preaggregate=True
    )
    with pytest.raises(SgcnError, match="switch preaggregate off"):
        next(drive(engine, 1, size=None))


@pytest.mark.parametrize(
    "options", [{"directed": True}, {"normalization": "row"}, {"self_loops": False}]
)
@pytest.mark.parametrize("name", ["sgcn++", "vrgcn++", "anchored"])
def test_other_propagation_matrices(name, options):
    check(labelled(**options), "concat", 2, estimator_of(name, layer_gradients=True))


def test_a_mini_batch_is_not_exact():
    """The contract is not met by accident: less than all training nodes breaks it."""
    with pytest.raises(AssertionError, match="step 1"):
        check(GRAPHS["single"], "mean", 2, estimator_of("anchored"), size=12)
