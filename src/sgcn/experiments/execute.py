"""Running cases: every run is a file named after the hash of all that decides it.

A file is written when its run is done, holds no path, and stays small: files that were made on
several machines can be put together. What was stopped starts again.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import torch
from tqdm import tqdm

from sgcn.analysis.variance import measure
from sgcn.errors import SgcnError, TrainingDiverged, TrainingInterrupted
from sgcn.estimators.engine import Engine
from sgcn.experiments.core import MEMORY, PROBE, TIMES, TRAIN, Case, Plan, Run
from sgcn.experiments.data import fingerprint
from sgcn.experiments.measures import of_probes, of_training
from sgcn.files import write_text
from sgcn.machine import peak_memory, resident_memory
from sgcn.runs.config import Config, make_config
from sgcn.runs.directory import prepare
from sgcn.samplers.base import exact_block
from sgcn.sources import Loader
from sgcn.task import split_nodes, train_nodes
from sgcn.training.events import Event, StepEvent, to_json
from sgcn.training.loop import fit
from sgcn.training.sinks import Memory

_MEGABYTE = 1 << 20
_REPEATS = 3  # of what is timed


@dataclass(frozen=True)
class Job:
    """One run: what it does, its configuration and its file. Goes to other processes."""

    kind: str
    values: dict[str, Any]
    file: Path
    probes: int = 0  # draws a measurement (PROBE)
    name: str = ""


def run_all(
    cases: Sequence[Case], plan: Plan, out: Path, *, jobs: int = 1, quiet: bool = False,
    start: bool = True,
) -> list[Run]:  # fmt: skip
    """Every case with every seed, seeds outermost: what is stopped early has complete tables.

    A case with a choice of learning rates tries all of them with the first seed. Without ``start``
    nothing is run: the runs that are done are all.
    """
    prints = {case.data.source: fingerprint(case.data.source) for case in cases}

    def found_of(wanted: list[Job]) -> dict[Path, dict[str, Any]]:
        unique = {job.file: job for job in wanted}
        _do([job for job in unique.values() if read_result(job) is None] if start else [],
            len(unique), jobs, quiet)  # fmt: skip
        read = {file: read_result(job) for file, job in unique.items()}
        return {file: result for file, result in read.items() if result is not None}

    tried = [
        [(one, _job(one, 0, TRAIN, plan, out, prints)) for one in map(case.at, case.rates)]
        for case in cases
    ]
    found = found_of([job for trials in tried for _, job in trials])
    settled = [
        _best(trials, found) if trials else case for case, trials in zip(cases, tried, strict=True)
    ]
    wanted = [
        (case, seed, {kind: _job(case, seed, kind, plan, out, prints) for kind in case.kinds})
        for seed in range(plan.runs)
        for case in settled
        if case is not None
    ]
    found = found_of([job for *_, made in wanted for job in made.values()])
    runs = [
        Run(case, seed, {kind: found[job.file] for kind, job in made.items()})
        for case, seed, made in wanted
        if all(job.file in found for job in made.values())
    ]
    if not runs:
        raise SgcnError(f"{out} has no finished run of these, expected some: leave out --known")
    return runs


def _best(trials: list[tuple[Case, Job]], found: dict[Path, dict[str, Any]]) -> Case | None:
    """The case of the lowest validation loss; None if not all have been tried."""
    if not all(job.file in found for _, job in trials):
        return None
    losses = [found[job.file].get("lowest_validation_loss") for _, job in trials]
    known = [(loss, at) for at, loss in enumerate(losses) if loss is not None]
    return trials[min(known)[1] if known else 0][0]


def _do(todo: list[Job], of: int, jobs: int, quiet: bool) -> None:
    if not quiet and of:
        print(f"{of} runs, {of - len(todo)} of them known", file=sys.stderr)
    off = True if quiet else None  # None: a bar on a terminal only, and elsewhere a line a job
    done = tqdm(_perform_all(todo, jobs), total=len(todo), unit="run", disable=off)
    for number, job in enumerate(done, 1):
        if not quiet and not sys.stderr.isatty():
            print(f"{number}/{len(todo)} {job.name}", file=sys.stderr, flush=True)


def _job(case: Case, seed: int, kind: str, plan: Plan, out: Path, prints: dict[str, str]) -> Job:
    values = case.values | {"training": case.values["training"] | {"seed": seed}}
    probes = plan.probes if kind == PROBE else 0
    decides = {"kind": kind, "probes": probes, **values, "data": prints[case.data.source]}
    text = json.dumps(decides, sort_keys=True)
    file = out / "runs" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    return Job(kind, values, file, probes, f"{case.words} seed {seed} {kind}")


def _sections(values: dict[str, Any]) -> dict[str, Any]:
    """All options, as JSON has them; the graph is known by its content."""
    found: dict[str, Any] = json.loads(json.dumps(make_config(values).training.tables()))
    return found


def read_result(job: Job) -> dict[str, Any] | None:
    """The result in a run's file, unless an option had another value then."""
    try:
        found: dict[str, Any] = json.loads(job.file.read_text())
        then = found["config"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # the last two: another file
        return None
    now = _sections(job.values)
    for section, options in then.items():
        if any(now[section].get(key, value) != value for key, value in options.items()):
            return None
    return found


# -- doing them ---------------------------------------------------------------------------------


def _perform_all(todo: Sequence[Job], jobs: int) -> Iterator[Job]:
    """Perform ``todo``, in this process, or in ``jobs`` others that share the cores.

    Memory is measured in a process of its own: a peak never goes down again.
    """
    alone = [job for job in todo if jobs > 1 or job.kind == MEMORY]
    for job in todo:
        if job not in alone:
            perform(job)
            yield job
    if not alone:
        return
    threads = max((os.cpu_count() or 1) // jobs, 1)
    fresh = any(job.kind == MEMORY for job in alone)
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), max_tasks_per_child=1 if fresh else None)
    with _threads(threads if jobs > 1 else None), pool:
        waiting = {pool.submit(perform, job): job for job in alone}
        try:
            for future in as_completed(waiting):
                future.result()
                yield waiting[future]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Processes that start meanwhile have so many threads; later, numba would reset torch's."""
    names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS") if number is not None else ()
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, str(number)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def perform(job: Job) -> None:
    """One run; its file is written when all is known."""
    found = {"failed": None, "threads": torch.get_num_threads()}
    try:
        found |= _probe(job) if job.kind == PROBE else _train(job)
    except TrainingInterrupted as stopped:
        raise TrainingInterrupted(
            f"stopped in {job.name}: the same command goes on with the runs that are left",
            stopped.exit_code - 128, stopped.fitted,
        ) from None  # fmt: skip
    job.file.parent.mkdir(parents=True, exist_ok=True)
    facts = {"kind": job.kind, "name": job.name, "config": _sections(job.values)}
    write_text(job.file, to_json(facts | found) + "\n")


class _Clock(Memory):
    """Keeps all events, and the processor's seconds of every step: scores between are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.spent: list[float] = []
        self._began = 0.0

    def __call__(self, engine: Engine, loader: Loader, step: int) -> None:
        self._began = process_time()

    def emit(self, event: Event) -> None:
        super().emit(event)
        if isinstance(event, StepEvent):
            self.spent.append(process_time() - self._began)


def _train(job: Job) -> dict[str, Any]:
    config, graph, model = prepare(make_config(job.values))
    clock = _Clock()
    try:
        fitted = fit(model, graph, training=config.training, sinks=[clock], callbacks=[clock],
                     progress=False)  # fmt: skip
    except TrainingDiverged as error:  # a finding, unlike a full disk
        if error.fitted is None or error.fitted.steps < _steps(job):
            return {"failed": str(error)}
        fitted = error.fitted  # of what was best before
    found = of_training(fitted, clock.events, clock.spent)
    found["lr"] = config.training.optimizer.rate
    if job.kind == MEMORY:
        found["memory"] = _memory(config)
    if job.kind == TIMES:
        found["snapshot_sampling"] = _snapshot_sampling(config)
    return found


def _steps(job: Job) -> int:
    training = job.values["training"]
    return int(training["epochs"] * training["batches_per_epoch"])


def _probe(job: Job) -> dict[str, Any]:
    steps = _steps(job)
    # With no factor of K, or all measurements would be equally far from a snapshot.
    every = 7 if steps <= 300 else 10 * (steps // 300) + 7
    gap = job.values["estimator"].get("gap", 10)
    while isinstance(gap, int) and math.gcd(every, gap) > 1:
        every += 1
    (result,) = measure([make_config(job.values)], steps, job.probes, every, quiet=True)
    return {"failed": result.get("failed")} | of_probes(result)


# -- what a run's files do not say --------------------------------------------------------------


def _memory(config: Config) -> dict[str, float | None]:
    """Megabytes of this process and its device, and of the history tables.

    The process must have done nothing but the run of ``config``.
    """
    now = resident_memory() / _MEGABYTE, peak_memory() / _MEGABYTE  # before anything else is made
    device = torch.cuda.max_memory_allocated() / _MEGABYTE if torch.cuda.is_available() else None
    engine = _engine(config)
    tables = 0.0
    if engine.estimator.takes_snapshots:
        engine.snapshot()
        tables = engine.table_bytes / _MEGABYTE
    return {"rss_mb": now[0], "peak_rss_mb": now[1], "tables_mb": tables, "device_mb": device}


def _snapshot_sampling(config: Config) -> float:
    """Seconds that the blocks of a large-batch snapshot take; 0 if snapshots cover all nodes."""
    engine = _engine(config)
    if engine.estimator.snapshot_nodes is None or not engine.estimator.takes_snapshots:
        return 0.0
    engine.snapshot()  # draws the pool
    assert engine.pool is not None
    began = perf_counter()
    for _ in range(_REPEATS):
        rows = engine.pool
        for _ in range(engine.operands.sampled_depth):
            rows = exact_block(engine.graph, rows).src
    return (perf_counter() - began) / _REPEATS


def _engine(config: Config) -> Engine:
    config, graph, model = prepare(config)
    return Engine(
        config.training.estimator, model, graph, config.training.task.on(graph), train_nodes(graph),
        config.training.sampler, seed=config.training.loop.seed, scored=split_nodes(graph, 1),
    )  # fmt: skip
