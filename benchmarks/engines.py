"""Our engine, as the benchmarks drive it: the one place that makes it and takes its steps."""

from __future__ import annotations

from typing import Any

import numba
import torch

from sgcn.block import Int32
from sgcn.estimators import Estimator
from sgcn.estimators.engine import Engine, Outcome
from sgcn.graph import Graph
from sgcn.nn import Model, make_model
from sgcn.rng import Key
from sgcn.samplers import NodeSet, Sampler
from sgcn.task import Task, train_nodes


def set_threads(number: int) -> None:
    torch.set_num_threads(number)
    numba.set_num_threads(number)


def make_engine(
    graph: Graph,
    sampler: Sampler,
    estimator: Estimator,
    *,
    width: int,
    seed: int = 0,
    head: bool = True,
    preaggregate: bool = False,
    model: Model | None = None,
) -> Engine:
    """An engine over the training nodes: with ``model``, or a fresh one of two graph layers."""
    assert graph.x is not None
    task = Task.of(graph)
    if model is None:
        model = make_model(graph.x.shape[1], task.outputs, widths=width, seed=seed, head=head)
    return Engine(
        estimator, model, graph, task, train_nodes(graph), sampler,
        seed=seed, preaggregate=preaggregate,
    )  # fmt: skip


def regular(engine: Engine, batch: Any, key: Key) -> Outcome:
    """A regular step on ``batch``, where no rule asks for a restart."""
    outcome = engine.regular(batch, key)
    assert outcome is not None
    return outcome


def next_step(engine: Engine, seeds: Int32 | NodeSet, key: Key) -> Outcome:
    """The step that the schedule asks for."""
    outcome = None if engine.due() else engine.regular(engine.draw(seeds, key), key)
    return outcome or engine.snapshot()


def descend(engine: Engine, outcome: Outcome, rate: float) -> None:
    """Take the step by plain gradient descent: no optimiser's time, hardly moved weights."""
    engine.remember(outcome)
    with torch.no_grad():
        for name, parameter in engine.model.named_parameters():
            parameter.sub_(outcome.gradient[name], alpha=rate)
    engine.commit(outcome)
