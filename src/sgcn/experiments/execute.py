"""Running cases: every run has a directory named after the hash of all that decides it.

A run that is done (`result.json`) is read, one that was stopped goes on, and the rest start.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from sgcn.analysis.variance import measure
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.experiments.core import MEMORY, PROBE, TIMES, Case, Plan, Run
from sgcn.experiments.data import fingerprint, split_names
from sgcn.experiments.inside import memory, snapshot_sampling
from sgcn.experiments.settings import ROWS
from sgcn.files import write_text
from sgcn.options import check, integer, nearest
from sgcn.runs import directory as runs_directory
from sgcn.runs.config import make_config
from sgcn.runs.layout import STATE, is_run
from sgcn.training.events import to_json

RESULT = "result.json"


@dataclass(frozen=True)
class Job:
    """One run: what it does, its configuration and its directory. Goes to other processes."""

    kind: str
    values: dict[str, Any]
    folder: Path
    probes: int = 0  # draws a measurement (PROBE)
    name: str = ""

    @property
    def steps(self) -> int:
        training = self.values["training"]
        return int(training["epochs"] * training["batches_per_epoch"])


def run_all(
    cases: Sequence[Case], plan: Plan, out: Path, *, jobs: int = 1, quiet: bool = False
) -> list[Run]:
    """Every case with every seed, seeds outermost: what is stopped early has complete tables."""
    prints = {case.data.source: fingerprint(case.data.source) for case in cases}
    wanted = [
        (case, seed, {kind: _job(case, seed, kind, plan, out, prints) for kind in case.kinds})
        for seed in range(plan.runs)
        for case in cases
    ]
    unique = {job.folder: job for _, _, by_kind in wanted for job in by_kind.values()}
    todo = [job for job in unique.values() if read_result(job) is None]
    done: Iterable[Job] = _perform_all(todo, jobs)
    if not quiet:
        print(f"{len(unique)} runs, {len(unique) - len(todo)} of them known", file=sys.stderr)
        done = _progress(done, len(todo))
    for _ in done:
        pass
    return [_done(case, seed, by_kind) for case, seed, by_kind in wanted]


def _progress(jobs: Iterable[Job], total: int) -> Iterator[Job]:
    """A bar on a terminal, else a line for each job."""
    for number, job in enumerate(tqdm(jobs, total=total, unit="run", disable=None), 1):
        if not sys.stderr.isatty():
            print(f"{number}/{total} {job.name}", file=sys.stderr, flush=True)
        yield job


def _job(case: Case, seed: int, kind: str, plan: Plan, out: Path, prints: dict[str, str]) -> Job:
    values = case.values | {"training": case.values["training"] | {"seed": seed}}
    probes = plan.probes if kind == PROBE else 0
    decides = {"kind": kind, "probes": probes, **values, "data": prints[case.data.source]}
    text = json.dumps(decides, sort_keys=True)
    folder = out / "runs" / hashlib.sha256(text.encode()).hexdigest()[:16]
    return Job(kind, values, folder, probes, f"{case.words} seed {seed} {kind}")


def _sections(values: dict[str, Any]) -> dict[str, Any]:
    """All options, as JSON has them; the graph is known by its content."""
    found: dict[str, Any] = json.loads(json.dumps(make_config(values).training.tables()))
    return found


def read_result(job: Job) -> dict[str, Any] | None:
    """The result in a run's directory, unless an option had another value then."""
    try:
        found = json.loads((job.folder / RESULT).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or "config" not in found:
        return None
    now = _sections(job.values)
    for section, options in found["config"].items():
        if any(now[section].get(key, value) != value for key, value in options.items()):
            return None
    result: dict[str, Any] = found
    return result


def _done(case: Case, seed: int, by_kind: dict[str, Job]) -> Run:
    results = {kind: read_result(job) for kind, job in by_kind.items()}
    known = {kind: result for kind, result in results.items() if result is not None}
    return Run(case, seed, known, {kind: job.folder for kind, job in by_kind.items()})


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
        waiting: dict[Future[None], Job] = {pool.submit(perform, job): job for job in alone}
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
    """One run; its result is written last."""
    found = {"failed": None, "threads": torch.get_num_threads()}
    found |= _probe(job) if job.kind == PROBE else _train(job)
    job.folder.mkdir(parents=True, exist_ok=True)
    facts = {"kind": job.kind, "name": job.name, "config": _sections(job.values)}
    write_text(job.folder / RESULT, to_json(facts | found, indent=1) + "\n")


def _train(job: Job) -> dict[str, Any]:
    resume = is_run(job.folder) and not (job.folder / RESULT).exists()
    if not resume:
        shutil.rmtree(job.folder, ignore_errors=True)
    config = make_config(job.values)
    try:
        summary = runs_directory.train(config, job.folder, resume=resume, quiet=True)
    except TrainingDiverged as error:  # a finding, unlike a full disk
        return {"failed": str(error)}
    shutil.rmtree(job.folder / STATE, ignore_errors=True)
    found: dict[str, Any] = {"summary": summary}
    if job.kind == MEMORY:
        found["memory"] = memory(config)
    if job.kind == TIMES:
        found["snapshot_sampling"] = snapshot_sampling(config)
    return found


def _probe(job: Job) -> dict[str, Any]:
    # Not a multiple of K = 10, or all measurements would be equally far from a snapshot.
    every = 7 if job.steps <= 300 else 10 * (job.steps // 300) + 7
    (result,) = measure([make_config(job.values)], job.steps, job.probes, every, quiet=True)
    return result


def with_changes(
    plan: Plan, runs: int | None, epochs: int | None, samplers: str | None, restart: str
) -> Plan:
    """``plan`` with the runs, epochs, samplers and restart rule that a user wants."""
    plan = replace(
        plan,
        runs=plan.runs if runs is None else runs,
        epochs=plan.epochs if epochs is None else epochs,
        restart=restart,
    )
    check("--runs", plan.runs, integer())
    check("--epochs", plan.epochs, integer())
    chosen = plan.samplers if samplers is None else tuple(split_names(samplers))
    for name in chosen:
        if name not in ROWS:
            raise SgcnError(
                f"--samplers has {name!r}, expected some of {', '.join(ROWS)}{nearest(name, ROWS)}"
            )
    return replace(plan, samplers=chosen)
