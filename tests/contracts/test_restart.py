"""Contract 6: a step that calls for a restart leaves no trace; running norms are the tables'."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch

from helpers import propagation_of
from learning import adam, bits, drive, labelled, make_engine, seeds_of, small_model
from sgcn import Key, NodeSet, fit
from sgcn.estimators import make_estimator
from sgcn.estimators.engine import Engine
from sgcn.task import split_nodes
from sgcn.training.events import StepEvent
from sgcn.training.sinks import Memory

GRAPH = labelled()


def state_of(engine: Engine) -> dict[str, Any]:
    """Every bit that a step may change."""
    tables, past = engine.histories + engine.past.histories, engine.past
    return {
        "tables": bits(*(table.all_rows() for table in tables)),
        "valid": [None if t.valid is None else bits(t.valid) for t in tables],
        "norms": [table.norm for table in tables],
        "at snapshot": [table.snapshot_norm for table in tables],
        "last": {name: bits(g) for name, g in past.last.items()},
        "anchor": {name: bits(g) for name, g in past.anchor.items()},
        "previous": {name: bits(w) for name, w in engine.previous.items()},
        "anchored": {name: bits(w) for name, w in engine.anchor.items()},
        "weights": {name: bits(w) for name, w in engine.model.state_dict().items()},
        "schedule": (astuple(engine.progress), engine.drift, past.moved),
    }


# Each is called for by weights that jump (the head's for beta: embeddings do not see it).
RULES = {
    "alpha": ({"restart": "norm", "alpha": 1.1, "beta": 1e9}, "layers.0.weight"),
    "beta": ({"restart": "norm", "alpha": 1e9, "beta": 1.1}, "head.weight"),
    "gradient": ({"restart": "gradient", "distance": 0.5}, "head.weight"),
}


@pytest.mark.parametrize("snapshot_nodes", [None, 0.6])
@pytest.mark.parametrize("forward", ["recursive", "vrgcn"])
@pytest.mark.parametrize("rule", RULES)
def test_a_restart_leaves_no_trace(rule, forward, snapshot_nodes):
    options, jumps = RULES[rule]
    estimator = make_estimator(
        "sgcn++", forward=forward, layer_gradients=True, gap=50, snapshot_nodes=snapshot_nodes,
        **options,
    )  # fmt: skip
    engine = make_engine(GRAPH, estimator)
    outcomes = list(drive(engine, 6, lambda model: adam(model, 1e-5)))
    assert [o.snapshot for o in outcomes] == [True] + 5 * [False]

    quiet = engine.regular(engine.draw(engine.train[:9], Key(1)), Key(1))
    assert quiet is not None, "the rule does not fire without a reason"

    with torch.no_grad():
        engine.model.get_parameter(jumps).mul_(20.0)
    before = state_of(engine)
    for step in range(3):
        key = Key(2, 0, step)
        assert engine.regular(engine.draw(engine.train[:12], key), key) is None
        assert state_of(engine) == before

    snapshot = engine.snapshot()  # and training goes on
    engine.apply(snapshot, adam(engine.model))
    assert engine.progress.since_snapshot == 1
    assert engine.regular(engine.draw(engine.train[:12], Key(3)), Key(3)) is not None


@pytest.mark.parametrize(
    ("limit", "options"),
    [
        ("max_drift", {"max_drift": 0.1, "max_noise": 1e9}),
        ("max_noise", {"max_drift": 1e9, "max_noise": 0.3}),
    ],
)
def test_movement_calls_a_snapshot_for_the_next_step(limit, options):
    engine = make_engine(GRAPH, make_estimator("sgcn++", gap=None, **options))
    snapshots, far = [], []
    for outcome in drive(engine, 60):
        snapshots.append(outcome.snapshot)
        moved = engine.drift if limit == "max_drift" else engine.past.moved
        far.append(not outcome.snapshot and moved >= options[limit])
    assert not any(far)  # such a step is a snapshot, which sets the count to zero
    assert 5 < sum(snapshots) < 50


def test_movement_is_what_the_steps_changed():
    engine = make_engine(GRAPH, make_estimator("sgcn++", gap=None, max_drift=1e9, max_noise=1e9))
    past, noise, drift = engine.past, 0.0, 0.0
    for step, outcome in enumerate(drive(engine, 9)):
        assert past.moved == pytest.approx(noise**0.5, rel=1e-3)  # of the steps before this one
        if step > 1:
            assert engine.drift > drift
        drift = engine.drift
        if step > 0:
            last, found = past.last, outcome.gradient
            size = sum(float(g.square().sum()) for g in past.anchor.values())
            away = sum(float((found[n] - last[n]).square().sum()) for n in last)
            noise += away / size


def test_nothing_moves_where_the_weights_rest():
    engine = make_engine(GRAPH, make_estimator("sgcn++", gap=None))
    outcomes = list(drive(engine, 6, lambda model: adam(model, 0.0)))
    assert [o.snapshot for o in outcomes] == [True] + 5 * [False]
    assert engine.drift == engine.past.moved == 0.0


def test_a_regular_step_writes_only_when_it_is_committed():
    engine = make_engine(GRAPH, make_estimator("sgcn++", layer_gradients=True, restart="never"))
    list(drive(engine, 3))
    before = state_of(engine)
    outcome = engine.regular(engine.draw(engine.train[:12], Key(1)), Key(1))
    assert state_of(engine) == before
    engine.apply(outcome, adam(engine.model))
    changed = {name for name, value in state_of(engine).items() if value != before[name]}
    assert changed == {"tables", "norms", "last", "previous", "weights", "schedule"}


def test_the_anchored_rules_rest_between_snapshots():
    estimator = make_estimator(
        "anchored", gradient="anchored", layer_gradients=True, restart="never", gap=9
    )
    engine = make_engine(GRAPH, estimator)
    list(drive(engine, 2))
    before = state_of(engine)
    list(drive(engine, 5, first=2))
    changed = {name for name, value in state_of(engine).items() if value != before[name]}
    assert changed == {"weights", "schedule"}


@pytest.mark.parametrize("preaggregate", [False, True])
@pytest.mark.parametrize("snapshot_nodes", [None, 0.4])
@pytest.mark.parametrize("sampler", ["neighbor", "ladies-keep", "saint-node", "cluster"])
@pytest.mark.parametrize("forward", ["recursive", "vrgcn"])
def test_running_norms_are_those_of_the_tables(forward, sampler, snapshot_nodes, preaggregate):
    """Over two snapshots, so that rows of an older large batch lie about in the tables."""
    estimator = make_estimator(
        "sgcn++", forward=forward, layer_gradients=True, gap=40, restart="never",
        snapshot_nodes=snapshot_nodes,
    )  # fmt: skip
    model = small_model("mean", 3)
    engine = make_engine(GRAPH, estimator, sampler, model, preaggregate=preaggregate)
    for step, _ in enumerate(drive(engine, 79)):
        if step % 13 in (0, 12):
            check_norms(engine)


def check_norms(engine: Engine) -> None:
    activations = engine.estimator.forward.keeps_activations  # the others' tables have Z
    for tables, act in (
        (engine.histories, (lambda h, level: h) if activations else engine.model.act),
        (engine.past.histories, lambda d, level: d),
    ):
        for level, table in enumerate(tables):
            rows = act(table.all_rows(), level).double()
            if level == engine.model.depth - 1 and not engine.sampler.draws_nodes:
                rows = act(table.read(torch.from_numpy(engine.train)), level).double()
                valid = None if table.valid is None else table.valid[engine.train]
            else:
                valid = table.valid
            rows = rows if valid is None else rows[valid]
            assert table.norm == pytest.approx(float(rows.square().sum()), rel=1e-4)


@pytest.mark.parametrize("preaggregate", [False, True])
def test_the_norm_rule_sees_the_tables_grow(preaggregate):
    """A restart comes at the step whose rows would make a table's norm alpha times as large."""
    alpha = 1.05
    estimator = make_estimator("sgcn+", gap=60, restart="norm", alpha=alpha)
    engine = make_engine(GRAPH, estimator, "neighbor", preaggregate=preaggregate)
    fired = None
    moves = adam(engine.model, 0.05)
    engine.apply(engine.snapshot(), moves)
    start = [act_norm(engine, level) for level in range(engine.model.depth)]
    for step in range(1, 60):
        key = Key(5, 0, step)
        outcome = engine.regular(engine.draw(seeds_of(engine, 12, step), key), key)
        if outcome is None:
            fired = step
            break
        engine.apply(outcome, moves)
        now = [act_norm(engine, level) for level in range(engine.model.depth)]
        growth = max(n / s for n, s in zip(now, start, strict=True)) ** 0.5
        assert outcome.norm_growth == pytest.approx(growth, rel=1e-4)
        assert growth < alpha
    assert fired is not None


def act_norm(engine: Engine, level: int) -> float:
    """|H|^2 of a history: of training nodes in the last layer, of all nodes below."""
    last = level == engine.model.depth - 1
    ids = torch.from_numpy(engine.train) if last else torch.arange(len(engine.graph))
    rows = engine.model.act(engine.histories[level].read(ids), level)
    return float(rows.double().square().sum())


@pytest.mark.parametrize("part", [1, 2, None])
def test_what_is_scored_does_not_change_training(part):
    """Not the snapshots that the norm rule calls, nor anything else."""
    snapshots, growths = [], []
    everyone = np.arange(len(GRAPH), dtype=np.int32)
    for scored in (None, everyone if part is None else split_nodes(GRAPH, part)):
        estimator = make_estimator("sgcn++", gap=60, restart="norm", alpha=1.03)
        engine = make_engine(GRAPH, estimator, "neighbor", scored=scored)
        found = list(drive(engine, 40, lambda m: adam(m, 0.05)))
        snapshots.append([outcome.snapshot for outcome in found])
        growths.append([outcome.norm_growth for outcome in found])
    assert snapshots[0] == snapshots[1]
    # A product of more rows may round otherwise; scored rows would show in the percents.
    assert growths[0] == pytest.approx(growths[1], rel=1e-4)
    assert 1 < sum(snapshots[0]) < 40


@pytest.mark.parametrize("sampler", ["neighbor", "saint-node", "fastgcn"])
@pytest.mark.parametrize("forward", ["recursive", "anchored", "vrgcn"])
def test_rows_without_a_history_are_plain(forward, sampler):
    """A large batch covers some rows only: a row that misses any is summed without correction."""
    estimator = make_estimator("sgcn", forward=forward, snapshot_nodes=3, gap=9, restart="never")
    engine = make_engine(GRAPH, estimator, sampler)
    list(drive(engine, 1))
    tables = engine.histories
    first, last = (table.valid.clone() for table in (tables[0], tables[-1]))
    assert 0 < int(last.sum()) <= int(first.sum()) < len(GRAPH)
    key = Key(4)
    seeds = engine.train if sampler != "saint-node" else NodeSet(engine.train, len(GRAPH))
    outcome = engine.regular(engine.draw(seeds, key), key)
    assert outcome is not None
    step, run = outcome.passes.step, outcome.passes.live
    plain = step.sampled(1, run.weights, run.h[0])
    if forward == "vrgcn":  # what it reads are the neighbours' rows, one layer down
        covered = torch.from_numpy((propagation_of(GRAPH) > 0) @ ~first.numpy() == 0)
    else:
        covered = last
    bare = ~covered[step.nodes[1].long()]
    assert bare.any()
    torch.testing.assert_close(run.z[1][bare], plain[bare])


@pytest.mark.parametrize("sampler", ["neighbor", "ladies-keep", "saint-node", "cluster", "fastgcn"])
@pytest.mark.parametrize("gradient", ["plain", "recursive", "anchored"])
@pytest.mark.parametrize("forward", ["recursive", "anchored", "vrgcn"])
def test_nobody_reads_rows_without_a_history(forward, gradient, sampler):
    """Whatever lies in them, the gradients are the same."""
    found = []
    for rubbish in (0.0, 50.0):
        estimator = make_estimator(
            "sgcn", forward=forward, gradient=gradient, snapshot_nodes=3, gap=30, restart="never",
            **{} if gradient == "plain" else {"layer_gradients": True},
        )  # fmt: skip
        engine = make_engine(GRAPH, estimator, sampler, small_model("mean", 3))
        gradients = []
        for outcome in drive(engine, 12, size=3):
            gradients.append([g.clone() for g in outcome.gradient.values()])
            for table in engine.histories + engine.past.histories:
                table.all_rows()[~table.valid] = rubbish
        found.append(gradients)
    for step, (ours, theirs) in enumerate(zip(*found, strict=True)):
        assert all(map(torch.equal, ours, theirs)), f"step {step}"


# -- the schedule -------------------------------------------------------------------------------


def snapshots_of(**options) -> list[int]:
    """The steps at which `fit` takes a snapshot."""
    memory = Memory()
    fit(
        small_model(), GRAPH, estimator=make_estimator("sgcn++", **options), epochs=3,
        batch_size=3, sinks=[memory],
    )  # fmt: skip
    return [e.step for e in memory.events if isinstance(e, StepEvent) and e.snapshot]


def test_a_snapshot_every_k_steps():
    assert snapshots_of(gap=7, restart="never") == [0, 7, 14, 21, 28]


def test_plain_steps_come_before_the_first_snapshot():
    assert snapshots_of(gap=7, warmup=4, restart="never") == [4, 11, 18, 25]
    assert snapshots_of(gap=1, warmup=28, restart="norm") == [28, 29]
    assert snapshots_of(gap=7, warmup=30) == []


@pytest.mark.parametrize(
    ("steps", "gap"), [(np.inf, 60), (3000, 60), (600, 60), (40, 4), (9, 2), (1, 2)]
)
def test_a_short_run_takes_its_snapshots_sooner(steps, gap):
    schedule = make_estimator("anchored++").for_run(steps).schedule
    assert (schedule.gap, schedule.warmup) == (gap, gap)
    given = make_estimator("anchored++", gap=70, warmup=0).for_run(steps).schedule
    assert (given.gap, given.warmup) == (70, 0)


@pytest.mark.parametrize(("batches", "gap"), [(4, 10), (100, 25), (1e4, 60), (np.inf, 60)])
def test_snapshots_are_nearer_where_they_cost_less(batches, gap):
    schedule = make_estimator("anchored++").for_run(3000, batches).schedule
    assert (schedule.gap, schedule.warmup) == (gap, 60)
    assert make_estimator("anchored++").for_run(40, batches).schedule.gap == 4


@pytest.mark.parametrize("forward", ["recursive", "anchored", "vrgcn"])
@pytest.mark.parametrize("gradient", ["plain", "recursive", "anchored"])
def test_until_then_the_gradient_is_that_of_plain_sampling(forward, gradient):
    estimator = make_estimator("sgcn", forward=forward, gradient=gradient, warmup=5, gap=3)
    corrected = list(drive(make_engine(GRAPH, estimator), 7))
    plain = list(drive(make_engine(GRAPH, "sgcn"), 6))
    assert [outcome.snapshot for outcome in corrected] == 5 * [False] + [True, False]
    for ours, theirs in zip(corrected[:5], plain, strict=False):
        assert bits(*ours.gradient.values()) == bits(*theirs.gradient.values())
    assert bits(*corrected[5].gradient.values()) != bits(*plain[5].gradient.values())


def test_the_gap_grows():
    """K_s = K + g s, in whole steps: 3, 3.5, 4, 4.5, ..."""
    assert snapshots_of(gap=3, growth=0.5, restart="never") == [0, 3, 6, 10, 14, 19, 24]
    assert snapshots_of(gap=1, growth=1.0, restart="never") == [0, 1, 3, 6, 10, 15, 21, 28]


def test_restarts_count_from_the_restart():
    """A tiny distance calls for a snapshot at every regular step; a huge one never."""
    assert snapshots_of(gap=5, restart="gradient", distance=1e-9) == list(range(30))
    assert snapshots_of(gap=20, restart="gradient", distance=1e9) == [0, 20]
    assert snapshots_of(gap=20, restart="norm", alpha=1e9) == [0, 20]


def test_a_restart_is_told_as_one():
    memory = Memory()
    found = fit(
        small_model(), GRAPH, batch_size=3, epochs=1, sinks=[memory],
        estimator=make_estimator("sgcn++", gap=5, restart="gradient", distance=1e-9),
    )  # fmt: skip
    steps = [e for e in memory.events if isinstance(e, StepEvent)]
    assert [e.restart for e in steps] == [False] + 9 * [True]
    assert (found.restarts, found.snapshots, found.steps) == (9, 10, 10)
