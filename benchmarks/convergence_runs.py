"""One training run of `python -m benchmarks convergence`, in a process of its own.

    python -m benchmarks.convergence_runs SPEC.json OUT.json

A process of its own has its own threads and its own peak of memory. The clock of a run stops while
the weights are scored: all contestants are scored by the same pass, at the same share of their
time, and none pays for it. It starts after a rehearsal of some steps, in which kernels are loaded
and what a sampler derives from the graph is made.
"""

from __future__ import annotations

import math
import sys
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from time import perf_counter, process_time
from typing import Any

import torch

from benchmarks.process import answer, forget_peak, peak_mb
from sgcn.compute.exact import predict
from sgcn.data.source import open_data
from sgcn.errors import TrainingDiverged
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.graph import Graph
from sgcn.nn import Model, make_model
from sgcn.options import parse_value
from sgcn.rows import store_of
from sgcn.samplers import Sampler, make_sampler
from sgcn.task import Task, split_nodes
from sgcn.training.averaging import WeightAverage
from sgcn.training.loop import fit

#: A look at the scores is due after this share of the time so far, or of the last look's time.
_LOOK, _REST = 0.04, 0.25
#: After the target a run goes on for this share of its time, so that the curve shows it.
_SLACK = 0.25
#: A run has settled if the last part of its time raised the best F1 by less than this.
_SETTLED, _LAST = 0.001, 0.4
_LEAST_STEPS = {True: 300, False: 1000}  # on the whole graph, on batches: before it may settle
_REHEARSAL = 3
AVERAGE = 0.98  # decay of the moving average of weights, the default of `fit`


@dataclass(frozen=True)
class Contestant:
    """A name taken apart: pyg-full, pyg-minibatch, full or ESTIMATOR/SAMPLER[:SIZE][+pre][+avg]."""

    name: str
    sampler: Sampler
    pre: bool  # P X is computed once
    averaged: bool  # the moving average of the weights is scored

    @staticmethod
    def of(text: str) -> Contestant:
        name, *more = text.split("+avg")[0].split("+pre")
        estimator, _, drawn = name.partition("/")
        sampler, _, size = drawn.partition(":")
        options = {"sizes": parse_value(size)} if size else {}
        return Contestant(
            estimator, make_sampler(sampler or "neighbor", **options), bool(more), "+avg" in text
        )


@dataclass(frozen=True)
class Spec:
    """What decides a run."""

    data: str
    contestant: str
    lr: float
    gap: int | None
    seed: int
    target: float | None  # None: train until the score has settled
    limit: float  # seconds on ``clock``
    width: int
    batch_size: int
    threads: int
    clock: str

    @cached_property
    def who(self) -> Contestant:
        return Contestant.of(self.contestant)

    @property
    def pyg(self) -> bool:
        return self.contestant.startswith("pyg-")

    @property
    def whole(self) -> bool:
        """Whether every step is a pass over the whole graph."""
        return self.who.name in ("full", "pyg-full")


class Enough(Exception):
    """Ends a run."""


@dataclass
class Watch:
    """The clock of a run, its scores, and when to stop. Called before every step."""

    spec: Spec
    model: Model
    graph: Graph
    seconds: dict[str, float] = field(default_factory=lambda: {"wall": 0.0, "cpu": 0.0})
    steps: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)
    reached: dict[str, float] | None = None  # the point of the curve that met the target
    test: float = math.nan
    peak_mb: float = math.nan
    evaluation: float = 0.0
    stopped: str = ""

    def __post_init__(self) -> None:
        self.task = Task.of(self.graph)
        self.parts = [torch.from_numpy(split_nodes(self.graph, part)).long() for part in (1, 2)]
        self.features = store_of(self.graph.x)
        self.looked = self.look_seconds = 0.0
        self.first_look = 3 if self.spec.whole else 12
        self.average = WeightAverage(self.model, AVERAGE) if self.spec.who.averaged else None
        self._began = perf_counter(), process_time()

    def __call__(self, *_: Any) -> None:
        if self.average is not None and self.steps:
            self.average.update()
        wall, cpu = self._began
        self.seconds["wall"] += perf_counter() - wall
        self.seconds["cpu"] += process_time() - cpu
        self._decide()
        self.steps += 1
        self._began = perf_counter(), process_time()

    @property
    def now(self) -> float:
        return self.seconds[self.spec.clock]

    def _decide(self) -> None:
        over = self.now >= self.spec.limit
        wait = max(_LOOK * self.now, _REST * self.look_seconds)
        if self.steps < self.first_look or not (over or self.now - self.looked >= wait):
            return
        self.look()
        if self.reached is not None and self.spec.target is not None:
            if self.now >= (1.0 + _SLACK) * self.reached[self.spec.clock]:
                self.stop("target")
        elif self._settled():
            self.stop("settled")
        if over:
            self.stop("limit")

    def stop(self, why: str) -> None:
        self.stopped = why
        raise Enough

    def look(self) -> None:
        """Score the weights as they are; the first look comes after the peak of memory is known."""
        if not self.curve:
            self.peak_mb = peak_mb()
        began = perf_counter()
        with nullcontext() if self.average is None else self.average.swapped():
            logits = predict(self.model, self.graph, self.features)
        if not bool(torch.isfinite(logits).all()):
            raise TrainingDiverged("the outputs are not finite: training blew up")
        validation, test = (
            self.task.score(logits.index_select(0, nodes), nodes)["f1_micro"]
            for nodes in self.parts
        )
        if validation > self.best():
            self.test = test
        point = {"step": float(self.steps), **self.seconds, "f1": validation}
        self.curve.append(point)
        if self.reached is None and self.spec.target is not None:
            self.reached = point if validation >= self.spec.target else None
        self.looked, self.look_seconds = self.now, perf_counter() - began
        self.evaluation += self.look_seconds

    def best(self, until: float = math.inf) -> float:
        """The highest F1 of the first ``until`` seconds."""
        seen = (point["f1"] for point in self.curve if point[self.spec.clock] <= until)
        return max(seen, default=-math.inf)

    def _settled(self) -> bool:
        early = self.steps < _LEAST_STEPS[self.spec.whole]
        return not early and self.best() < self.best((1.0 - _LAST) * self.now) + _SETTLED


def run(spec: Spec) -> dict[str, Any]:
    """Train once; what happened, as plain values."""
    began = perf_counter()
    torch.set_num_threads(spec.threads)
    graph = open_data(spec.data)
    loaded = perf_counter()
    rehearsal = _Rehearsal()
    note = _train(spec, graph, fresh_model(spec, graph), rehearsal, None)
    ready = perf_counter()
    rehearsed = 0.0 if spec.pyg else peak_mb()  # it took a snapshot, which may come late in a run
    forget_peak()
    model = fresh_model(spec, graph)
    watch = Watch(spec, model, graph)
    failed = None
    try:
        _train(spec, graph, model, watch, note)
    except TrainingDiverged as error:
        failed = str(error)
    return asdict(spec) | {
        "failed": failed,
        "stopped": "failed" if failed else watch.stopped,
        "reached": watch.reached,
        "validation": watch.best() if watch.curve else None,
        "test": watch.test if watch.curve else None,
        "steps": watch.steps,
        "seconds": watch.seconds,
        "peak_mb": max(watch.peak_mb if watch.curve else peak_mb(), rehearsed),
        "total_seconds": perf_counter() - began - watch.evaluation,
        "load_seconds": loaded - began,
        "prepare_seconds": ready - loaded,
        "evaluation_seconds": watch.evaluation,
        "note": note,
        "curve": watch.curve,
    }


class _Rehearsal:
    """Ends a run after some steps."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, *_: Any) -> None:
        if self.steps == _REHEARSAL:
            raise Enough
        self.steps += 1


def fresh_model(spec: Spec, graph: Graph) -> Model:
    """The model of `sgcn train`, with weights of the seed."""
    assert graph.x is not None
    task = Task.of(graph)
    layer = "concat" if task.multi_label else "mean"
    return make_model(
        graph.x.shape[1], task.classes, layer=layer, widths=spec.width, seed=spec.seed
    )


def _train(
    spec: Spec, graph: Graph, model: Model, watch: Watch | _Rehearsal, note: str | None
) -> str:
    """Train until ``watch`` has enough; a note on how it was done."""
    try:
        if spec.pyg:
            from benchmarks import convergence_peers

            whole = spec.whole
            note = note or convergence_peers.faster(graph, model, whole, spec.batch_size, spec.seed)
            convergence_peers.train(
                graph, model, note,
                whole=whole, lr=spec.lr, batch_size=spec.batch_size, seed=spec.seed, watch=watch,
            )  # fmt: skip
        else:
            _ours(spec, graph, model, watch)
    except Enough:
        pass
    return note or ""


def _ours(spec: Spec, graph: Graph, model: Model, watch: Watch | _Rehearsal) -> None:
    """As `sgcn train` does it, but sampling stands in line: one thread is one thread."""
    who = spec.who
    options = {} if spec.gap is None else {"gap": spec.gap}
    if isinstance(watch, _Rehearsal):
        options["warmup"] = 0
    elif "warmup" in ESTIMATORS[who.name] and spec.gap is not None:
        options["warmup"] = spec.gap
    fit(
        model, graph, sampler=who.sampler, estimator=make_estimator(who.name, **options),
        lr=spec.lr, steps=sys.maxsize, patience=None, batch_size=spec.batch_size, preaggregate=who.pre,
        average=0.0,  # the watch has its own, the same for all contestants
        evaluate_every=sys.maxsize, seed=spec.seed, threads=0, callbacks=[watch],
    )  # fmt: skip


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    """Strict JSON: a score that does not exist is null."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in run(Spec(**order)).items()
    }


if __name__ == "__main__":
    sys.exit(answer(_answer))
