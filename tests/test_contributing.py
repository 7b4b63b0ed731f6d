"""The complete examples of CONTRIBUTING run as they stand."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from learning import bits, drive, frozen, labelled, make_engine
from sgcn import Graph, Key, SgcnError, fit, make_estimator, make_model, make_sampler
from sgcn.estimators.forward import FORWARD_RULES
from sgcn.samplers import SAMPLERS
from sgcn.training.options import Training

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
GRAPH = labelled()


def module(file: str, monkeypatch) -> types.ModuleType:
    """The code that CONTRIBUTING gives for ``file``, as the module it would be."""
    found = re.search(rf"`src/{re.escape(file)}`:\n\n```python\n(.*?)```", TEXT, re.S)
    assert found, file
    name = file.removesuffix(".py").replace("/", ".")
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(found.group(1), file, "exec"), vars(made))
    return made


@pytest.fixture
def damped(monkeypatch):
    kind = module("sgcn/estimators/forward/damped.py", monkeypatch).Damped
    monkeypatch.setitem(FORWARD_RULES, "damped", kind)
    return kind


def test_the_sampler(monkeypatch):
    thin = module("sgcn/samplers/thin.py", monkeypatch).Thin
    monkeypatch.setitem(SAMPLERS, "thin", thin)
    sampler = make_sampler("thin", chance=0.3)
    batch = sampler.sample(GRAPH, [0, 3, 7], Key(1))
    assert batch.nodes.tolist() == [0, 3, 7]
    assert isinstance(GRAPH, Graph)
    list(drive(make_engine(GRAPH, "sgcn++", sampler), 4))
    with pytest.raises(SgcnError, match=r"chance is 2, expected a number from 0.001 to 1"):
        make_sampler("thin", chance=2)


def test_the_rule_and_its_option(damped):
    made = make_estimator("anchored", forward="damped", strength=0.8, restart="never")
    assert made.forward.strength == 0.8
    assert made.values()["strength"] == 0.8
    with pytest.raises(SgcnError, match="strength is 2"):
        make_estimator("anchored", forward="damped", strength=2)
    with pytest.raises(SgcnError, match="belongs to forward = damped"):
        make_estimator("anchored", strength=0.8)
    tables = Training.of({"estimator": {"name": "anchored", "forward": "damped", "strength": 0.7}})
    assert tables.tables()["estimator"]["strength"] == 0.7
    assert Training.of(tables.tables()) == tables


@pytest.mark.parametrize("sampler", ["neighbor", "ladies-keep", "saint-node", "cluster"])
def test_the_rule_keeps_the_contract(damped, sampler):
    """Where weights do not move its correction vanishes, to the bit."""
    estimator = make_estimator("anchored", forward="damped", gap=5, restart="never")
    engine = make_engine(GRAPH, estimator, sampler)
    for outcome in drive(engine, 4, frozen):
        if outcome.snapshot:
            wanted = bits(*outcome.gradient.values())
        else:
            passes = outcome.passes
            for history, ids, z in zip(engine.histories, passes.step.nodes, passes.live.z,
                                       strict=True):  # fmt: skip
                assert bits(z) == bits(history.read(ids))
            assert bits(*outcome.gradient.values()) == wanted


def test_the_rule_trains(damped):
    model = make_model(5, 4, widths=8)
    estimator = make_estimator("anchored++", forward="damped", warmup=2, gap=4)
    fit(model, GRAPH, estimator=estimator, epochs=2, batch_size=6)
