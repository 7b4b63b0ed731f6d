"""`auto`: options that short trials on validation nodes decide, one option after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sgcn.errors import SgcnError, TrainingInterrupted
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.runs.config import Config, make_config
from sgcn.sources import NodeSource
from sgcn.task import split_nodes, train_nodes
from sgcn.training.loop import fit

#: What is tried where an option is `auto`, in this order. An open option stands for the first.
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "model.layer": ("mean", "concat"),
    "optimizer.name": ("muon", "adam"),
    "model.dropout": (0.0, 0.5),
    "optimizer.lr": (1.0, 0.3),  # times the usual one; larger ones win short trials and lose runs
    "sampler.name": ("neighbor", "labor", "ladies"),
    "estimator.name": ("anchored++", "vrgcn", "sgcn"),
}
_STEPS = 100  # of a trial, unless all trials would take more than a third of the run
_FEW = 10  # steps that tell nothing

#: Makes the model of a configuration for a graph.
MakeModel = Callable[[Config, Graph], Model]


@dataclass(frozen=True)
class _Trial:
    """A candidate's configuration, and its best score on validation nodes, if it could be run."""

    config: Config
    steps: int
    score: dict[str, float] | None

    def value(self, key: str) -> Any:
        section, _, name = key.partition(".")
        return self.config.training.tables()[section][name]


def decide(config: Config, graph: Graph, make: MakeModel, say: Callable[[str], None]) -> Config:
    """``config`` with the best of the candidates for each option that is `auto`.

    Trials depend on the seed alone. One with costlier steps takes fewer of them. A run that is too
    short for trials, or has no validation nodes, takes the first candidates, and its layer by the
    kind of labels.
    """
    count = sum(len(CANDIDATES[key]) for key in config.auto)
    budget = config.training.loop.budget(len(_source(config, graph)))
    most = min(_STEPS, budget // (3 * max(count, 1)))
    if most < _FEW or len(split_nodes(graph, 1)) == 0:
        return config
    best: _Trial | None = None
    for key in config.auto:
        configs = [_with(config, key, candidate) for candidate in CANDIDATES[key]]
        costs = [_cost(each, graph) for each in configs]
        trials: list[_Trial] = []
        for each, cost in zip(configs, costs, strict=True):
            steps = max(5, round(most * min(costs) / cost))
            if not trials and best is not None and best.steps == steps:
                trials.append(replace(best, config=each))  # it is what stands, and was tried
            else:
                trials.append(_tried(each, graph, make, steps))
        best = _best(trials, graph)
        config = best.config
        by = config.training.task.on(graph).best_by
        found = ", ".join(
            f"{t.value(key)} {'-' if t.score is None else format(t.score[by], '.4f')}"
            for t in trials
        )
        say(f"{key} = {best.value(key)}, by validation {by} after {most} steps: {found}")
    return config


def _with(config: Config, key: str, candidate: Any) -> Config:
    section, _, name = key.partition(".")
    tables = config.training.tables()
    if key == "optimizer.lr":
        candidate *= config.training.optimizer.name.usual_lr
    # Options of one sampler, estimator or optimiser mean nothing to another.
    dropped: Any = tables[section] if name == "name" else ()
    if key == "optimizer.name":
        dropped = config.training.optimizer.name.values()
    table = {option: value for option, value in tables[section].items() if option not in dropped}
    made = make_config({"data": config.data, **tables, section: table | {name: candidate}})
    return replace(made, asked=config.asked)


def _tried(config: Config, graph: Graph, make: MakeModel, steps: int) -> _Trial:
    try:
        fitted = fit(
            make(config, graph), graph, training=config.training, progress=False, epochs=None,
            steps=steps, patience=None, evaluate_every=max(1, steps // 4), probe_every=None,
        )  # fmt: skip
    except TrainingInterrupted:
        raise
    except SgcnError:  # cannot be combined, or diverges
        return _Trial(config, steps, None)
    return _Trial(config, steps, fitted.validation)


def _best(trials: list[_Trial], graph: Graph) -> _Trial:
    """The best score, of equals that with less loss; if none could be run, training says why."""
    task, best = trials[0].config.training.task.on(graph), trials[0]
    for trial in trials[1:]:
        if trial.score is None or math.isnan(trial.score[task.best_by]):
            continue
        if best.score is None or task.improves(trial.score, best.score):
            best = trial
        elif trial.score[task.best_by] == best.score[task.best_by]:
            best = min(best, trial, key=lambda t: t.score["loss"] if t.score else math.inf)
    return best


def _source(config: Config, graph: Graph) -> NodeSource:
    loop = config.training.loop
    return NodeSource(
        graph, train_nodes(graph), config.training.sampler, batch_size=loop.batch_size,
        seed=loop.seed, batches_per_epoch=loop.batches_per_epoch,
    )  # fmt: skip


def _cost(config: Config, graph: Graph) -> float:
    """What a step reads: entries and rows of one batch, for each of its passes."""
    training = config.training
    seeds = _source(config, graph).seeds(0, 0)
    batch = training.sampler.sample(
        graph, seeds, Key(training.loop.seed), training.model.layers,
        training.sampler.init(graph),
    )  # fmt: skip
    read = sum(block.edges + len(block.src) for block in batch.blocks)
    return float(read) * (2 if training.estimator.gradient.needs_snapshot else 1)
