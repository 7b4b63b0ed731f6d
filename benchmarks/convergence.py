"""Time training to the same accuracy: PyG, full batch, sampling, our rules.

examples:
  python -m benchmarks convergence --data tolokers.npz             half an hour on one thread
  python -m benchmarks convergence --data debian,ppi.npz --only pyg-full,full,anchored++
  python -m benchmarks convergence --data reddit-like --trial 60 --budget 300 --seeds 1
  python -m benchmarks convergence --data debian,tolokers --summary --out convergence.json

All contestants train one model on the same arrays: features are standardised by training rows.

1. Each tries Adam and Muon with a few learning rates, and those that sample other samplers, sizes
   of batches and gaps between snapshots, for --trial seconds with seed 0; validation nodes choose.
2. What was chosen is run with all seeds for --budget seconds, PyG's three times as long.
3. The targets are half a point, two and five points of F1 on validation nodes under the best that
   any of these runs reached. The seconds to them are read off the curves.

Each run is a process of its own (`convergence_runs`), leaves a file with its curve in --work and is
not run again: a command may be stopped, and files of several machines may be put together. The test
nodes are scored, and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import convergence_peers, peers
from benchmarks.convergence_picture import draw
from benchmarks.convergence_runs import PYG, WHOLE, Spec
from benchmarks.options import add_integers, add_out, add_texts, check_positive, listed, target
from benchmarks.process import call
from benchmarks.report import finish
from sgcn.commands.shared import plain
from sgcn.data import load
from sgcn.data.source import check_data, is_file, is_synthetic
from sgcn.errors import SgcnError
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.options import known_name
from sgcn.task import Task, split_nodes, train_nodes

PLAIN = "sgcn"
CONTESTANTS = (
    *PYG, "full", PLAIN, "sgcn+", "sgcn++", "anchored", "anchored++", "vrgcn",
)  # fmt: skip
BELOW = (0.005, 0.02, 0.05)  # the targets, under the best F1 of all runs; the hardest first
#: PyG is given so many times the seconds, so that its time says more than that it is over; and the
#: trials of `full`, which choose for PyG too.
_PATIENCE = 3
_SAMPLERS = ("neighbor:2", "neighbor:5")
_PLAIN_SAMPLERS = (*_SAMPLERS, "labor", "ladies")
_RUNS = "benchmarks.convergence_runs"

Run = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """What validation chooses for a contestant."""

    optimizer: str
    lr: float
    sampler: str | None = None
    batch_size: int | None = None
    gap: int | None = None

    @staticmethod
    def of(run: Run) -> Setting:
        return Setting(**{one.name: run[one.name] for one in fields(Setting)})

    def __str__(self) -> str:
        batch = "" if self.batch_size is None else f"batch {self.batch_size}"
        gap = "" if self.gap is None else f"K {self.gap}"
        parts = (f"{self.optimizer} {self.lr:g}", self.sampler, batch, gap)
        return ", ".join(filter(None, parts))


def arguments(parser: argparse.ArgumentParser) -> None:
    add_texts(
        parser,
        ("--data", "debian", "DATA[,..]", "names, graph directories or .npz files"),
        ("--only", ",".join(CONTESTANTS), "RUN[,..]", "pyg-full, pyg-minibatch or estimators"),
        ("--adam", "0.003,0.01,0.03", "X[,..]", "learning rates that are tried with Adam"),
        ("--muon", "0.01,0.02,0.05,0.1", "X[,..]", "and with Muon"),
        ("--batch-size", "512,2048", "N[,..]", "of the trials above, and what is tried beside it"),
        ("--gap", "10,30,100", "K[,..]", "gaps that are tried beside the estimator's own schedule"),
    )
    for name, seconds, help in (("--trial", 12.0, "a trial"), ("--budget", 60.0, "a run")):
        parser.add_argument(
            name, type=float, default=seconds, metavar="S",
            help=f"CPU seconds of training in {help}; default: %(default)g",
        )  # fmt: skip
    add_integers(
        parser,
        ("--seeds", 3, "runs of the setting that is chosen"),
        ("--width", 128, "of the two graph layers"),
    )
    parser.add_argument(
        "--work", type=Path, default=Path("runs/convergence"), metavar="DIR",
        help="the runs, a file each; default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--summary", action="store_true", help="run nothing: read --work")
    parser.add_argument("--picture", metavar="FILE.png", help="also draw the curves here")
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    out, picture = target(args.out), target(args.picture, "--picture")
    contests = _checked(args)
    if not args.summary:
        for contest in contests:
            contest.hold()
    found = {contest.label: contest.found() for contest in contests}
    for label, runs in found.items():
        if not runs.runs:
            raise SgcnError(f"{args.work} has no runs of {label}, expected some: run the contest")
    report = summary(found)
    finish(report, table, out)
    if picture is not None:
        curves = {
            label: {name: found[label].runs_of(name) for name in graph["rows"]}
            for label, graph in report["results"].items()
        }
        draw(report, curves, picture)


def _checked(args: argparse.Namespace) -> list[Contest]:
    """Everything that can be wrong is found before the first run."""
    check_positive(args, "width", "seeds")
    for flag in ("budget", "trial"):
        if not 0 < getattr(args, flag) < math.inf:
            raise SgcnError(f"--{flag} is {getattr(args, flag)}, expected seconds above 0")
    known = (*PYG, *ESTIMATORS)
    names = [known_name("contestant", name, known) for name in listed("--only", args.only)]
    rates = {name: _numbers(f"--{name}", getattr(args, name), float) for name in ("adam", "muon")}
    sizes = [int(size) for size in _numbers("--batch-size", args.batch_size, int)]
    gaps = [int(gap) for gap in _numbers("--gap", args.gap, int)]
    if not args.summary and find_spec("torch_geometric") is None:
        names = [name for name in names if name not in PYG]
        print("PyG is left out: torch_geometric is not installed")
    contests = []
    for data in listed("--data", args.data):
        label = Path(data).stem if is_file(data) else data
        folder = args.work / plain(label)
        if not args.summary:
            check_data(data)
            data = _prepared(data, folder)
        contests.append(Contest(data, label, folder, names, rates, sizes, gaps, args))
    return contests


def _numbers(flag: str, text: str, kind: type[float]) -> list[float]:
    try:
        found = [kind(word) for word in text.split(",")]
    except ValueError:
        found = [0]
    if not all(0 < number < math.inf for number in found):
        raise SgcnError(f"{flag} is {text!r}, expected numbers above 0 with a comma between them")
    return found


def _prepared(data: str, folder: Path) -> str:
    """Make sure that ``data`` can be trained on; a synthetic graph is made once, for all runs."""
    kept = folder / "graph"
    graph = load(str(kept) if kept.is_dir() else data)
    if graph.x is None:
        raise SgcnError(f"{data} has no features, expected x with one row for each node")
    Task.of(graph)
    train_nodes(graph)
    for part, word in ((1, "validation"), (2, "test")):
        if len(split_nodes(graph, part)) == 0:
            raise SgcnError(f"{data} has no {word} nodes, expected some in its split")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SgcnError(f"{folder} cannot be made ({error.strerror}), expected a folder") from None
    if not is_synthetic(data):
        return data
    if not kept.is_dir():
        graph.save(kept)
    return str(kept)


@dataclass
class Contest:
    """The runs of one graph."""

    data: str
    label: str
    folder: Path
    names: list[str]
    rates: dict[str, list[float]]
    sizes: list[int]
    gaps: list[int]
    args: argparse.Namespace

    def hold(self) -> None:
        """Trials of all contestants, then runs: with the same seed one after another, so that what
        else the machine does hits all alike."""
        trying = [_tried_as(name) for name in self.names]
        for name in trying:
            sampler = None if name in WHOLE or name in PYG else _SAMPLERS[0]
            size = None if name in WHOLE else self.sizes[0]
            for optimizer, rates in self.rates.items():
                for lr in rates:
                    self._run(name, Setting(optimizer, lr, sampler, size), 0, trial=True)
        # Only what earlier stages tried decides: a command that goes on decides as before.
        first: tuple[Callable[[Setting], bool], ...] = (
            lambda one: one.sampler in (None, _SAMPLERS[0]),
            lambda one: one.batch_size in (None, self.sizes[0]),
            lambda one: one.gap is None,
        )
        for stage, variants in enumerate((self._samplers_of, self._sizes_of, self._gaps_of)):
            found = self.found().tried(first[stage:])
            for name in trying:
                for best in found.ranked(name)[:1]:
                    for setting in variants(name, best):
                        self._run(name, setting, 0, trial=True)
        found = self.found()
        for seed in range(self.args.seeds):
            for name in self.names:
                for setting in found.ranked(name)[:1]:  # none, if all trials failed
                    self._run(name, setting, seed, trial=False)

    def _samplers_of(self, name: str, best: Setting) -> Iterator[Setting]:
        if best.sampler is not None:
            for sampler in _PLAIN_SAMPLERS if name == PLAIN else _SAMPLERS:
                yield replace(best, sampler=sampler)

    def _sizes_of(self, name: str, best: Setting) -> Iterator[Setting]:
        """With the same learning rate, and with one as much higher as the noise is lower."""
        if best.batch_size is not None:
            for size in self.sizes[1:]:
                for factor in (1.0, math.sqrt(size / self.sizes[0])):
                    lr = float(f"{best.lr * factor:.3g}")
                    yield replace(best, batch_size=size, lr=lr)

    def _gaps_of(self, name: str, best: Setting) -> Iterator[Setting]:
        if best.sampler is None:
            return
        estimator = make_estimator(name)
        if estimator.takes_snapshots and estimator.schedule.gap is not None:
            for gap in self.gaps:
                yield replace(best, gap=gap)

    def _run(self, name: str, setting: Setting, seed: int, *, trial: bool) -> None:
        limit = min(self.args.trial, self.args.budget) if trial else self.args.budget
        spec = Spec(
            data=self.data, contestant=name, **asdict(setting), seed=seed,
            limit=limit * (_PATIENCE if name in PYG or (trial and name in WHOLE) else 1),
            width=self.args.width,
        )  # fmt: skip
        words = re.sub(r"[ :,]+", "-", str(setting))
        file = self.folder / name / f"{'trial' if trial else 'run'}-{words}-s{seed}.json"
        if _usable(file, spec):
            return
        file.parent.mkdir(exist_ok=True)
        found = call(_RUNS, asdict(spec), file, 1)
        best = "failed" if found["failed"] else f"F1 {found['validation']:.4f}"
        print(f"{self.label} {name} {file.stem}: {best}, {found['steps']} steps, "
              f"{found['seconds']:.1f} s", flush=True)  # fmt: skip

    def found(self) -> Found:
        """What the folder holds, whoever ran it."""
        kinds: dict[str, dict[str, list[Run]]] = {"trial": {}, "run": {}}
        for kind, by_name in kinds.items():
            for file in sorted(self.folder.glob(f"*/{kind}-*.json")):
                by_name.setdefault(file.parent.name, []).append(json.loads(file.read_text()))
        return Found(kinds["trial"], kinds["run"])


def _tried_as(name: str) -> str:
    """PyG's full batch is ours in other hands, step for step: it takes what is chosen for that."""
    return "full" if name == "pyg-full" else name


def _usable(file: Path, spec: Spec) -> bool:
    """Whether the run in ``file`` answers ``spec``: it failed, or had as much time."""
    if not file.is_file():
        return False
    found: Run = json.loads(file.read_text())
    if found["width"] != spec.width:
        raise SgcnError(
            f"{file.parent.parent} holds runs with width {found['width']}, expected {spec.width}: "
            "choose another --work"
        )
    return bool(found["failed"]) or found["seconds"] >= spec.limit


# -- what came out --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Trials and runs of one graph by contestant, from their files."""

    trials: dict[str, list[Run]]
    runs: dict[str, list[Run]]

    def best(self) -> tuple[float, str]:
        """The highest F1 of all runs and trials, and whose it is."""
        return max(
            (one["validation"], name)
            for kind in (self.trials, self.runs) for name, runs in kind.items() for one in runs
            if one["validation"] is not None
        )  # fmt: skip

    def tried(self, wanted: Sequence[Callable[[Setting], bool]]) -> Found:
        """With those trials alone whose settings are all that is ``wanted``."""
        kept = {
            name: [one for one in runs if all(test(Setting.of(one)) for test in wanted)]
            for name, runs in self.trials.items()
        }
        return Found(kept, self.runs)

    def ranked(self, name: str) -> list[Setting]:
        """The settings that were tried, the best first: who meets a harder target is before who
        meets it later, and then comes the higher F1. Targets are those of the trials."""
        mine = [one for one in self.trials.get(_tried_as(name), []) if not one["failed"]]
        if not mine:
            return []
        targets = targets_under(Found(self.trials, {}).best()[0])

        def rank(one: Run) -> tuple[Any, ...]:
            return *(reached(one, target)[1] for target in targets), -one["validation"]

        return [Setting.of(one) for one in sorted(mine, key=rank)]

    def runs_of(self, name: str) -> list[Run]:
        """The runs of the best setting that has some."""
        for setting in self.ranked(name):
            if found := [one for one in self.runs[name] if Setting.of(one) == setting]:
                return found
        return self.runs[name]


def targets_under(best: float) -> list[float]:
    return [best - below for below in BELOW]


def reached(one: Run, target: float) -> tuple[float, float]:
    """The step and the second of the first score at ``target`` or above; infinite for none."""
    points = ((step, seconds) for step, seconds, f1 in one["curve"] if f1 >= target)
    return next(points, (math.inf, math.inf))


def summary(found: dict[str, Found]) -> dict[str, Any]:
    """What is kept: medians and ratios, by graph."""
    results: dict[str, Any] = {}
    ratios: dict[str, float] = {}
    bounds: list[str] = []
    for label, runs in found.items():
        best, who = runs.best()
        targets = targets_under(best)
        rows = {name: row(runs.runs_of(name), targets) for name in _in_order(runs.runs)}
        more, least = compare(label, rows)
        ratios, bounds = ratios | more, bounds + least
        trials = {
            name: {str(Setting.of(one)): one["validation"] for one in tried}
            for name, tried in runs.trials.items()
        }
        results[label] = {
            "best": best, "best_by": who, "targets": targets, "rows": rows, "trials": trials,
        }  # fmt: skip
    every = [one for runs in found.values() for many in runs.runs.values() for one in many]
    return {
        "below": BELOW, "results": results, "ratios": ratios, "at_least": bounds,
        **{key: sorted({one[key] for one in every}) for key in ("width", "processor")},
        "minibatches": convergence_peers.loader_words(), "versions": peers.versions(),
    }  # fmt: skip


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=[*PYG, *ESTIMATORS].index)


def row(runs: Sequence[Run], targets: Sequence[float]) -> dict[str, Any]:
    """Medians over the seeds of one contestant; a target counts as met if most seeds met it."""
    met = [[reached(one, target) for one in runs] for target in targets]
    scored = [one for one in runs if one["validation"] is not None]
    return {
        "setting": str(Setting.of(runs[0])),
        "seconds": [_finite(median(seconds for _, seconds in points)) for points in met],
        "steps": [_finite(median(step for step, _ in points)) for points in met],
        "tried_seconds": round(median(one["seconds"] for one in runs), 2),
        "ms_per_step": round(1e3 * sum(one["seconds"] for one in runs)
                             / max(sum(one["steps"] for one in runs), 1), 3),
        "validation": median(one["validation"] for one in scored) if scored else None,
        "test": round(median(one["test"] for one in scored), 5) if scored else None,
        "seeds": len(runs),
        "failed": sum(bool(one["failed"]) for one in runs),
        "note": runs[0]["note"],
    }  # fmt: skip


def _finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None


def compare(label: str, rows: dict[str, dict[str, Any]]) -> tuple[dict[str, float], list[str]]:
    """How many times sooner our best run is than PyG's, and our best corrected run than plain.

    Where PyG, or plain sampling, did not meet a target, the time that it was given stands in: the
    ratio is then a lower bound, and its key is in the second result.
    """
    ours = [name for name in rows if name not in PYG]
    pairs = {
        "pyg": ([name for name in rows if name in PYG], ours),
        "plain": ([PLAIN] if PLAIN in rows else [],
                  [name for name in ours if name not in (PLAIN, "full")]),
    }  # fmt: skip
    ratios, bounds = {}, []
    for number, below in enumerate(BELOW):
        for group, (theirs, mine) in pairs.items():
            best = _soonest(rows, mine, number)
            if best is None or not theirs:
                continue
            key, other = f"{label}/{100 * below:g}/{group}", _soonest(rows, theirs, number)
            if other is None:
                other = max(rows[name]["tried_seconds"] for name in theirs)
                bounds.append(key)
            ratios[key] = round(other / best, 2)
    return ratios, bounds


def _soonest(rows: dict[str, dict[str, Any]], names: list[str], number: int) -> float | None:
    times = (rows[name]["seconds"][number] for name in names)
    return min((time for time in times if time is not None), default=None)


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    points = [f"{100 * below:g}" for below in report["below"]]
    heads = "".join(f"{f'to -{point}, s':>12}" for point in points)
    lines = []
    for label, graph in report["results"].items():
        targets = ", ".join(f"{target:.4f}" for target in graph["targets"])
        lines += [
            f"{label}: best F1 {graph['best']:.4f} ({graph['best_by']}), targets {targets}",
            f"  {'run':<14}{heads}{'ms/step':>9}{'best F1':>9}{'test':>8}  setting",
        ]
        for name, one in sorted(graph["rows"].items(), key=lambda pair: _late(pair[1])):
            missed = f"> {one['tried_seconds']:.1f}"
            times = [missed if time is None else f"{time:.2f}" for time in one["seconds"]]
            scores = [
                "-" if score is None else f"{score:.4f}"
                for score in (one["validation"], one["test"])
            ]
            setting = "; ".join(filter(None, (one["setting"], one["note"])))
            lines.append(
                f"  {name:<14}{''.join(f'{time:>12}' for time in times)}{one['ms_per_step']:>9.2f}"
                f"{scores[0]:>9}{scores[1]:>8}  {setting}; {one['seeds']} seeds"
            )
        for group, words in _GROUPS.items():
            figures = []
            for point in points:
                ratio = report["ratios"].get(key := f"{label}/{point}/{group}")
                least = ">= " if key in report["at_least"] else ""
                figures.append("-" if ratio is None else f"{least}{ratio:.1f}")
            lines.append(f"  {words}: {', '.join(figures)}")
        lines.append("")
    lines += [
        "CPU seconds of training on one thread, scoring not counted; medians over seeds",
        f"mini-batches of PyG: {report['minibatches']}",
    ]
    return "\n".join(lines)


def _late(one: dict[str, Any]) -> tuple[float, ...]:
    return tuple(math.inf if time is None else time for time in one["seconds"])


_GROUPS = {
    "pyg": "our best run sooner than the best of PyG, times",
    "plain": "our best corrected run sooner than our best plain run, times",
}
