"""Engines are checkpointed with their histories, at any step, and go on to the bit."""

from __future__ import annotations

import pytest

from learning import adam, bits, labelled, make_engine, seeds_of, small_model
from sgcn import Key
from sgcn.estimators import make_estimator, state
from sgcn.training.checkpoints import load_state, pack_optimizer, save_state, unpack_optimizer

GRAPH = labelled()
CASES = {
    "vrgcn": {"name": "vrgcn"},
    "sgcn++": {"name": "sgcn++", "layer_gradients": True, "restart": "norm"},
    "anchored": {"name": "anchored", "restart": "never"},
    "anchored++": {"name": "anchored++", "warmup": 0},
    "bfloat16 on disk": {"name": "sgcn+", "table_dtype": "bfloat16", "table_storage": "disk"},
    "large batch": {"name": "vrgcn++", "snapshot_nodes": 0.5},
}


def steps(engine, moves, first, last):
    found = []
    for step in range(first, last):
        key, outcome = Key(5, 0, step), None
        if not engine.due():
            outcome = engine.regular(engine.draw(seeds_of(engine, 9, step), key), key)
        outcome = outcome or engine.snapshot()
        found.append((outcome.snapshot, bits(*outcome.gradient.values())))
        engine.apply(outcome, moves)
    return found


@pytest.mark.parametrize("stop", [1, 2, 5])
@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_to_the_bit(case, stop, tmp_path):
    options = {"gap": None} | CASES[case]
    estimator = make_estimator(options.pop("name"), **options)
    whole = make_engine(GRAPH, estimator, "neighbor", small_model())
    wanted = steps(whole, adam(whole.model), 0, 9)

    first = make_engine(GRAPH, estimator, "neighbor", small_model())
    moves = adam(first.model)
    steps(first, moves, 0, stop)
    tensors, facts = state.save(first)
    packed, kept = pack_optimizer(moves)
    tensors |= packed | {f"model.{k}": v for k, v in first.model.state_dict().items()}
    save_state(tmp_path / "state", stop, tensors, {"engine": facts, "optimizer": kept})

    tensors, facts = load_state(tmp_path / "state")
    second = make_engine(GRAPH, estimator, "neighbor", small_model())
    second.model.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("model.")})
    moves = adam(second.model)
    unpack_optimizer(moves, tensors, facts["optimizer"])
    state.load(second, tensors, facts["engine"])
    assert steps(second, moves, stop, 9) == wanted[stop:]


def test_a_restart_that_was_called_is_told_after_resuming():
    engine = make_engine(GRAPH, make_estimator("sgcn++", max_drift=1e-6), "neighbor")
    steps(engine, adam(engine.model), 0, 2)
    assert engine.restart_due
    tensors, facts = state.save(engine)
    again = make_engine(GRAPH, make_estimator("sgcn++", max_drift=1e-6), "neighbor")
    state.load(again, tensors, facts)
    assert again.restart_due
    assert again.due()
    steps(again, adam(again.model), 2, 3)
    assert not again.progress.restart_called


def test_options_of_the_axes_do_not_share_names():
    """They stand beside each other in one table: a name must say which one is meant."""
    from sgcn.estimators import FORWARD_RULES, GRADIENT_RULES, RESTART_RULES, Estimator, Schedule

    axes = [
        {row[0] for kind in registry.values() for row in kind.described()}
        for registry in (FORWARD_RULES, GRADIENT_RULES, RESTART_RULES)
    ]
    axes += [{row[0] for row in kind.described()} for kind in (Schedule, Estimator)]
    assert sum(map(len, axes)) == len(set().union(*axes))
