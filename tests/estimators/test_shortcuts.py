"""Every shortcut beside a rule's equation can be switched off, and nothing changes but rounding."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from learning import distance, drive, labelled, make_engine, small_model
from sgcn.estimators import FORWARD_RULES, GRADIENT_RULES, make_estimator
from sgcn.estimators.shortcuts import Shortcuts

GRAPH = labelled()
NAMES = [field.name for field in fields(Shortcuts)]
PAIRS = [(f, g) for f in FORWARD_RULES for g in GRADIENT_RULES if (f, g) != ("plain", "plain")]
NONE = Shortcuts(**dict.fromkeys(NAMES, False))


def gradients(shortcuts: Shortcuts, forward: str, gradient: str, kind: str, **options) -> list:
    estimator = make_estimator(
        "sgcn", forward=forward, gradient=gradient, gap=9, restart="never",
        **{"snapshot_nodes": options.pop("snapshot_nodes", None)},
    )  # fmt: skip
    model = small_model(kind, 2, bias=False)
    engine = make_engine(GRAPH, estimator, "neighbor", model, shortcuts=shortcuts, **options)
    return [{k: g.clone() for k, g in o.gradient.items()} for o in drive(engine, 5)]


@pytest.mark.parametrize("preaggregate", [False, True])
@pytest.mark.parametrize("kind", ["mean", "concat"])
@pytest.mark.parametrize(("forward", "gradient"), PAIRS)
def test_all_off(forward, gradient, kind, preaggregate):
    """The equations alone."""
    rule = (forward, gradient, kind)
    by_default = gradients(Shortcuts(), *rule, preaggregate=preaggregate)
    plainly = gradients(NONE, *rule, preaggregate=preaggregate)
    for ours, theirs in zip(by_default, plainly, strict=True):
        assert distance(ours, theirs) < 1e-5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pair", [("recursive", "recursive"), ("anchored", "anchored"),
                                  ("vrgcn", "recursive")], ids="x".join)  # fmt: skip
def test_one_off(pair, name):
    for options in ({}, {"preaggregate": True}, {"snapshot_nodes": 0.5}):
        by_default = gradients(Shortcuts(), *pair, "mean", **options)
        without = gradients(replace(Shortcuts(), **{name: False}), *pair, "mean", **options)
        for ours, theirs in zip(by_default, without, strict=True):
            assert distance(ours, theirs) < 1e-5


def test_a_rule_lists_shortcuts_that_exist():
    listed = {s.__name__ for rule in FORWARD_RULES.values() for s in rule.shortcuts}
    assert listed < set(NAMES)


def test_another_sign_would_be_seen(monkeypatch):
    """The comparison is not blind: an equation that adds what it should subtract is found."""
    rule = FORWARD_RULES["anchored"]
    monkeypatch.setattr(
        rule, "layer", lambda self, at: at.z_old + (at.f(at.h, at.weights) + at.sampled_old)
    )
    ours = gradients(Shortcuts(), "anchored", "plain", "mean")
    theirs = gradients(NONE, "anchored", "plain", "mean")
    assert distance(ours[-1], theirs[-1]) > 1e-2
