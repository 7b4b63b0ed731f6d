"""`auto`: options that short trials on validation nodes decide, one option after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

import numpy as np

from sgcn.errors import SgcnError, TrainingInterrupted
from sgcn.graph import Graph, is_sparse
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.runs.config import Config, make_config
from sgcn.sources import NodeSource
from sgcn.task import split_nodes, train_nodes
from sgcn.training.events import ProbeEvent
from sgcn.training.loop import Callback, fit
from sgcn.training.options import PRESETS, LoopOptions

#: What is tried where an option is `auto`, in this order. An open option stands for the first.
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "model.layer": ("mean", "concat"),
    "optimizer.name": ("muon", "adam"),
    "model.dropout": (0.0, 0.5),
    "optimizer.lr": (1.0, 0.3),  # times the usual one; larger ones win short trials and lose runs
    "model.layers": (2, PRESETS["deep"]["model"]["layers"]),
    "sampler.name": ("neighbor", "labor", "ladies"),
    "estimator.name": ("anchored++", "vrgcn", "sgcn"),
}
#: Steps of a trial: layers that begin well may end behind, and deep models take their time.
_STEPS = {"model.layer": 300, "model.layers": 150}
_OTHERS = 100
_LEAST = 30  # shorter trials tell nothing
_RARE = 3  # nodes: a column of features that no more of them have names them

#: Choices by the gradient's error first: by its square times the cost of a step.
_BY_ERROR = ("sampler.name", "estimator.name")
_NEAR = 10.0  # times the least such product: what has more is worse whatever it scores

#: Makes the model of a configuration for a graph.
MakeModel = Callable[[Config, Graph], Model]
#: Makes what looks at the gradient's error every ``probe_every`` steps, or refuses to.
MakeProbe = Callable[[LoopOptions, Model], Callback]


@dataclass(frozen=True)
class _Trial:
    """A candidate's configuration, and its best score on validation nodes, if it could be run.

    ``error`` is the square of the gradient's relative error times the cost of a step.
    """

    config: Config
    steps: int
    score: dict[str, float] | None
    error: float | None = None

    def words(self, key: str, by: str) -> str:
        section, _, name = key.partition(".")
        score = "-" if self.score is None else format(self.score[by], ".4f")
        error = "" if self.error is None else f" (error x cost {self.error:.2g})"
        return f"{self.config.training.tables()[section][name]} {score}{error}"


def names_nodes(graph: Graph) -> bool:
    """Whether most columns of sparse features belong to a few nodes each, as names do.

    A model that reads a node's own row learns such names by heart, and is ahead for so long that
    no trial would see it fall behind.
    """
    if not is_sparse(graph.x):
        return False
    nodes = np.bincount(graph.x.indices, minlength=graph.x.shape[1])
    return bool(np.median(nodes[nodes > 0]) <= _RARE)


def decide(
    config: Config, graph: Graph, make: MakeModel, say: Callable[[str], None],
    make_probe: MakeProbe | None = None,
) -> Config:  # fmt: skip
    """``config`` with the best of the candidates for each option that is `auto`.

    With ``make_probe`` samplers and estimators are chosen by the gradient's error too. Trials
    depend on the seed alone. One with costlier steps takes fewer of them. A run that is too
    short for trials, or has no validation nodes, takes the first candidates, its layer by the data.
    """
    tried = {key: CANDIDATES[key] for key in config.auto}
    if "model.layer" in tried and names_nodes(graph):
        config = _with(config, "model.layer", tried.pop("model.layer")[0])
        tried.pop("model.layers", None)
        say("model.layer = mean: most columns of the features name single nodes")
    budget = config.training.loop.budget(len(_source(config, graph))) / 3
    if len(split_nodes(graph, 1)) == 0:
        return config
    part = _left_to_try(tried, config.asked, budget, say)
    best: _Trial | None = None
    usual = _cost(config, graph)
    for key, candidates in tried.items():
        configs = [_with(config, key, candidate) for candidate in candidates]
        costs = [_cost(each, graph) / usual for each in configs]
        most = part * _steps(key) * min(costs)
        planned = [max(5, int(most / cost)) for cost in costs]
        if key == "model.layers":  # a deep step is dearer, and takes as many
            planned = [_steps(key)] * len(configs)
        if np.dot(planned, costs) > budget:
            say(f"{key} stays as usual: a third of the run has no room left for its trials")
            continue
        measured = key in _BY_ERROR and _has_room(make_probe, config, graph, make)
        probe = make_probe if measured else None
        trials: list[_Trial] = []
        for each, steps, cost in zip(configs, planned, costs, strict=True):
            if not trials and not probe and best is not None and best.steps == steps:
                trials.append(replace(best, config=each))  # it is what stands, and was tried
            else:
                trials.append(_tried(each, graph, make, steps, cost, probe))
                budget -= steps * cost
        best = _best(_near(trials), graph)
        config = best.config
        by = config.training.task.on(graph).best_by
        found = ", ".join(trial.words(key, by) for trial in trials)
        value = best.words(key, by).split()[0]
        say(f"{key} = {value}, by validation {by} after {max(planned)} steps: {found}")
    return config


def _left_to_try(
    tried: dict[str, tuple[Any, ...]], asked: tuple[str, ...], budget: float,
    say: Callable[[str], None],
) -> float:  # fmt: skip
    """What part of their steps the trials of ``tried`` take; too many of them are taken out.

    The last ones go first, those that were asked for last of all.
    """
    part, out = 1.0, list[str]()
    while tried:
        part = min(1.0, budget / sum(_steps(key) * len(tried[key]) for key in tried))
        if part * min(map(_steps, tried)) >= _LEAST:
            break
        keys = [key for key in tried if key not in asked] or [*tried]
        out.insert(0, keys[-1])
        del tried[keys[-1]]
    if out:
        say(f"the run is too short for trials of {', '.join(out)}, which stay as usual")
    return part


def _steps(key: str) -> int:
    return _STEPS.get(key, _OTHERS)


def _has_room(make_probe: MakeProbe | None, config: Config, graph: Graph, make: MakeModel) -> bool:
    """Whether gradients can be measured: several of them are held at once."""
    if make_probe is None:
        return False
    try:
        make_probe(config.training.changed(probe_every=1).loop, make(config, graph))
    except SgcnError:
        return False
    return True


def _with(config: Config, key: str, candidate: Any) -> Config:
    section, _, name = key.partition(".")
    if name == "name" and config.training.tables()[section]["name"] == candidate:
        return config  # with the options that it has
    changes = {section: {name: candidate}}
    if key == "optimizer.lr":
        changes[section][name] *= config.training.optimizer.name.usual_lr
    if key == "model.layers" and candidate == PRESETS["deep"]["model"]["layers"]:
        changes = PRESETS["deep"]
    tables = config.training.tables()
    for section, values in changes.items():
        # Options of one sampler, estimator or optimiser mean nothing to another.
        dropped: Any = ()
        if "name" in values:
            chosen = config.training.optimizer.name.values()
            dropped = chosen if section == "optimizer" else tables[section]
        kept = {option: value for option, value in tables[section].items() if option not in dropped}
        tables[section] = kept | values
    return replace(make_config({"data": config.data, **tables}), asked=config.asked)


def _tried(
    config: Config, graph: Graph, make: MakeModel, steps: int, cost: float,
    make_probe: MakeProbe | None,
) -> _Trial:  # fmt: skip
    every = None if make_probe is None else max(1, steps // 3)
    training = config.training.changed(probe_every=every)
    try:
        model = make(config, graph)
        probes = [] if make_probe is None else [make_probe(training.loop, model)]
        fitted = fit(
            model, graph, training=training, callbacks=probes, progress=False, epochs=None,
            steps=steps, patience=None, evaluate_every=max(1, steps // 4),
        )  # fmt: skip
    except TrainingInterrupted:
        raise
    except SgcnError:  # cannot be combined, or diverges
        return _Trial(config, steps, None)
    errors = [
        max(event.relative_mse, 1e-30)
        for event in fitted.events or ()
        if isinstance(event, ProbeEvent)
        and 2 * event.step >= steps  # nothing is corrected at first
    ]
    error = cost * geometric_mean(errors) if errors else None
    return _Trial(config, steps, fitted.validation, error)


def _near(trials: list[_Trial]) -> list[_Trial]:
    """Those whose gradients are not far worse, step for step of the same cost."""
    known = [trial.error for trial in trials if trial.error is not None]
    if not known:
        return trials
    return [t for t in trials if t.error is not None and t.error <= _NEAR * min(known)]


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
        graph, seeds, Key(training.loop.seed), training.model.depth,
        training.sampler.init(graph),
    )  # fmt: skip
    read = sum(block.edges + len(block.src) for block in batch.blocks)
    return float(read) * (2 if training.estimator.gradient.needs_snapshot else 1)
