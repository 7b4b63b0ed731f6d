"""`auto`: options that are decided by short trials on validation nodes, one option after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.runs.config import Config, make_config
from sgcn.sources import NodeSource
from sgcn.task import train_nodes
from sgcn.training.loop import fit

#: What may be `auto`, in the order in which it is decided, and what is tried; of equals the first.
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "model.layer": ("mean", "concat"),
    "optimizer.name": ("muon", "adam"),
    "optimizer.lr": (1.0, 0.3, 3.0),  # times the optimiser's usual one
    "sampler.name": ("neighbor", "labor", "ladies"),
    "estimator.name": ("anchored++", "vrgcn", "sgcn"),
}
_STEPS = 100  # of a trial, or all trials together take a third of the run

#: Makes the model of a configuration for a graph.
MakeModel = Callable[[Config, Graph], Model]


def decide(config: Config, graph: Graph, make: MakeModel, say: Callable[[str], None]) -> Config:
    """``config`` with a value for each option that is `auto`: that of the best trial.

    Trials depend on the seed alone. One with a costlier batch takes fewer steps.
    """
    open_keys = [key for key in CANDIDATES if key in config.auto]
    count = sum(len(CANDIDATES[key]) for key in open_keys)
    for key in open_keys:
        trials = [_with(config, key, candidate) for candidate in CANDIDATES[key]]
        costs = [_cost(trial, graph) for trial in trials]
        budget = config.training.loop.budget(len(_source(config, graph)))
        steps = max(10, min(_STEPS, budget // (3 * count)))
        results: list[tuple[dict[str, float], int] | None] = []
        for trial, cost in zip(trials, costs, strict=True):
            taken = max(5, round(steps * min(costs) / cost))
            results.append(_tried(trial, graph, make, taken))
        config = _best(key, trials, results, graph, say)
    return config


def _with(config: Config, key: str, candidate: Any) -> Config:
    section, _, name = key.partition(".")
    tables = config.training.tables()
    if key == "optimizer.lr":
        candidate *= config.training.optimizer.name.usual_lr
    table = {} if name == "name" else dict(tables[section])
    if section == "optimizer" and name == "name":
        own = config.training.optimizer.name.values()
        table = {k: value for k, value in tables[section].items() if k not in own}
    made = make_config({"data": config.data, **tables, section: table | {name: candidate}})
    return replace(made, auto=config.auto)


def _tried(
    config: Config, graph: Graph, make: MakeModel, steps: int
) -> tuple[dict[str, float], int] | None:
    """The best validation score in ``steps`` steps; None for what cannot be combined or diverges."""
    try:
        fitted = fit(
            make(config, graph), graph, training=config.training, progress=False,
            epochs=None, steps=steps, patience=None, evaluate_every=max(1, steps // 4),
            probe_every=None,
        )  # fmt: skip
    except SgcnError:
        return None
    return fitted.validation, steps


def _best(
    key: str,
    trials: list[Config],
    results: list[tuple[dict[str, float], int] | None],
    graph: Graph,
    say: Callable[[str], None],
) -> Config:
    """The trial with the best score, and a line that says why."""
    task = trials[0].training.task.on(graph)
    best: int | None = None
    for k, result in enumerate(results):
        if result is None:
            continue
        if best is None or task.improves(result[0], results[best][0]):  # type: ignore[index]
            best = k
    if best is None:
        raise SgcnError(f"{key} is auto, but no trial could be run: choose one of {CANDIDATES[key]}")
    section, _, name = key.partition(".")
    words = []
    for trial, result in zip(trials, results, strict=True):
        value = trial.training.tables()[section][name]
        found = "no" if result is None else f"{result[0][task.best_by]:.4f}"
        words.append(f"{value} {found}")
    chosen = trials[best].training.tables()[section][name]
    say(f"{key} = {chosen}: validation {task.best_by} after {results[best][1]} steps: {', '.join(words)}")
    return trials[best]


def _source(config: Config, graph: Graph) -> NodeSource:
    loop = config.training.loop
    return NodeSource(
        graph, train_nodes(graph), config.training.sampler, batch_size=loop.batch_size,
        seed=loop.seed, batches_per_epoch=loop.batches_per_epoch,
    )  # fmt: skip


def _cost(config: Config, graph: Graph) -> float:
    """What a regular step reads: entries and rows of one batch, for each of its passes."""
    training = config.training
    depth = training.model.layers
    seeds = _source(config, graph).seeds(0, 0)
    batch = training.sampler.sample(graph, seeds, Key(training.loop.seed), depth)
    read = sum(block.edges + len(block.src) for block in batch.blocks)
    return float(read) * (2 if training.estimator.gradient.needs_snapshot else 1)
