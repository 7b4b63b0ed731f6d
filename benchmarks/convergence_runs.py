"""One training run of `python -m benchmarks convergence`, in a process of its own.

    python -m benchmarks.convergence_runs SPEC.json OUT.json

The clock counts CPU seconds of the one thread. It stops while the weights are scored: all
contestants are scored by the same pass, at the same share of their time, and none pays for it. It
starts after a rehearsal of some steps, in which kernels are loaded and what a sampler derives from
the graph is made.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from time import process_time
from typing import Any

import llvmlite.binding
import numpy as np
import torch

from benchmarks.engines import set_threads
from benchmarks.process import answer
from sgcn.data.source import open_data
from sgcn.errors import TrainingDiverged
from sgcn.estimators import ESTIMATORS, Estimator, make_estimator
from sgcn.estimators.operands import Operands, needed_rows
from sgcn.graph import Graph
from sgcn.nn import Model, make_model
from sgcn.options import parse_value
from sgcn.samplers import Sampler, make_sampler
from sgcn.task import Task, split_nodes, train_nodes
from sgcn.training.averaging import WeightAverage
from sgcn.training.loop import fit
from sgcn.training.options import LoopOptions

PYG = ("pyg-full", "pyg-minibatch")
WHOLE = ("pyg-full", "full")  # every step is a pass over the whole graph
#: A look at the scores is due after this share of the time so far, or of the last look's time.
_LOOK, _REST = 0.04, 0.25
_REHEARSAL = 3


@dataclass(frozen=True)
class Spec:
    """What decides a run."""

    data: str
    contestant: str  # one of PYG, or an estimator
    optimizer: str
    lr: float
    sampler: str | None  # NAME or NAME:SIZES; None on the whole graph, and for PyG
    gap: int | None  # a snapshot every so many steps and none between; None: the estimator's way
    seed: int
    limit: float  # CPU seconds
    width: int
    batch_size: int | None  # None on the whole graph

    @property
    def whole(self) -> bool:
        return self.contestant in WHOLE

    def make_sampler(self) -> Sampler:
        return sampler_of(self.sampler or "neighbor")

    def make_estimator(self, *, at_once: bool) -> Estimator:
        """``at_once``: nothing plain comes before the first snapshot."""
        warms_up = "warmup" in ESTIMATORS[self.contestant]
        options: dict[str, Any] = {"warmup": 0} if warms_up and at_once else {}
        if self.gap is not None:
            options = {"gap": self.gap, "restart": "never"} | options
            if warms_up:
                options.setdefault("warmup", self.gap)
        return make_estimator(self.contestant, **options)


def sampler_of(text: str) -> Sampler:
    """NAME or NAME:SIZES."""
    name, _, sizes = text.partition(":")
    return make_sampler(name, **({"sizes": parse_value(sizes)} if sizes else {}))


class Enough(Exception):
    """Ends a run."""


@dataclass
class Watch:
    """The clock of a run, and its scores. Called before every step."""

    spec: Spec
    model: Model
    graph: Graph
    seconds: float = 0.0
    steps: int = 0
    curve: list[tuple[int, float, float]] = field(default_factory=list)  # step, seconds, F1
    best: float = -math.inf  # the highest F1 on validation nodes
    test: float = math.nan  # that on test nodes then
    evaluation: float = 0.0

    def __post_init__(self) -> None:
        self.task = Task.of(self.graph)
        self.parts = [split_nodes(self.graph, part) for part in (1, 2)]
        self.operands = Operands(
            self.model, self.graph, self.task, train_nodes(self.graph),
            preaggregate=self.model.layer(0).sums_inputs,
            needed_rows=needed_rows(self.graph, *self.parts),
        )  # fmt: skip
        self.looked = self.look_seconds = 0.0
        self.first_look = 3 if self.spec.whole else 12
        # Whole-graph gradients have no noise: their average would only lag.
        decay = LoopOptions().average
        self.average = None if self.spec.whole else WeightAverage(self.model, decay)
        self._began = process_time()

    def __call__(self, *_: Any) -> None:
        if self.average is not None and self.steps:
            self.average.update()
        self.seconds += process_time() - self._began
        self._decide()
        self.steps += 1
        self._began = process_time()

    def _decide(self) -> None:
        over = self.seconds >= self.spec.limit
        wait = max(_LOOK * self.seconds, _REST * self.look_seconds)
        if self.steps < self.first_look or not (over or self.seconds - self.looked >= wait):
            return
        self.look()
        if over:
            raise Enough

    @torch.no_grad()
    def look(self) -> None:
        """Score the weights as they are."""
        began = process_time()
        with nullcontext() if self.average is None else self.average.swapped():
            found = self.operands.exact_pass(dict(self.model.named_parameters()))
            logits = [found.logits(self.operands.row_of(nodes)) for nodes in self.parts]
        if not all(bool(torch.isfinite(one).all()) for one in logits):
            raise TrainingDiverged("the outputs are not finite: training blew up")
        validation, test = (
            self.task.score(one, torch.from_numpy(nodes).long())["f1_micro"]
            for one, nodes in zip(logits, self.parts, strict=True)
        )
        if validation > self.best:
            self.best, self.test = validation, test
        self.curve.append((self.steps, round(self.seconds, 4), round(validation, 5)))
        self.looked, self.look_seconds = self.seconds, process_time() - began
        self.evaluation += self.look_seconds


def run(spec: Spec) -> dict[str, Any]:
    """Train once; what happened, as plain values."""
    began = process_time()
    set_threads(1)
    graph = open_data(spec.data, features="standard")
    note = _train(spec, graph, fresh_model(spec, graph), _Rehearsal(), None)
    model = fresh_model(spec, graph)
    watch = Watch(spec, model, graph)
    failed = None
    try:
        _train(spec, graph, model, watch, note)
    except TrainingDiverged as error:
        failed = str(error)
    return {key: value for key, value in asdict(spec).items() if key != "data"} | {
        "failed": failed,
        "validation": watch.best if watch.curve else None,
        "test": watch.test if watch.curve else None,
        "steps": watch.steps,
        "seconds": watch.seconds,
        "evaluation_seconds": watch.evaluation,
        "process_seconds": process_time() - began,
        "note": note,
        "processor": llvmlite.binding.get_host_cpu_name(),
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
        graph.x.shape[1], task.outputs, layer=layer, widths=spec.width, seed=spec.seed
    )


def _train(
    spec: Spec, graph: Graph, model: Model, watch: Callable[..., None], note: str | None
) -> str:
    """Train until ``watch`` has enough; a note on how it was done."""
    try:
        if spec.contestant in PYG:
            from benchmarks import convergence_peers

            note = note or convergence_peers.faster(graph, model, spec)
            convergence_peers.train(graph, model, note, spec, watch)
        else:
            # As `sgcn train` does it, but sampling stands in line: one thread is one thread.
            fit(
                model, graph, sampler=spec.make_sampler(),
                estimator=spec.make_estimator(at_once=isinstance(watch, _Rehearsal)),
                optimizer=spec.optimizer, lr=spec.lr, steps=sys.maxsize, patience=None,
                batch_size=spec.batch_size or 512, seed=spec.seed, threads=0,
                average=0.0,  # the watch has its own, the same for all contestants
                evaluate_every=sys.maxsize, callbacks=[watch],
            )  # fmt: skip
    except Enough:
        pass
    return note or ""


def _answer(order: dict[str, Any]) -> dict[str, Any]:
    """Strict JSON: a score that does not exist is null."""
    return {
        key: None if isinstance(value, float) and not np.isfinite(value) else value
        for key, value in run(Spec(**order)).items()
    }


if __name__ == "__main__":
    sys.exit(answer(_answer))
