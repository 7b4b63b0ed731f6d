"""Time training to the same accuracy: PyG, full batch, sampling, our rules.

examples:
  python -m benchmarks convergence --data debian           some twenty minutes on one thread
  python -m benchmarks convergence --data my.npz --only pyg-minibatch,anchored/neighbor
  python -m benchmarks convergence --data flickr-like --budget 300 --trial 60 --out runs/flickr

A stopped command goes on where it was: runs that left their file in --out are not run again.

1. Our full-batch run sets the target: the F1 on validation nodes that it settles at, the median
   over seeds, minus half a point.
2. Every contestant tries the grid of learning rates and gaps K with the first seed, for a short
   time, and keeps the setting that reaches the target soonest (or comes closest to it).
3. The setting kept is run with all seeds. One that misses the target with the first seed is not
   run with the others.

Each run is a process of its own (`convergence_runs`) and leaves a file with its curve; the figures
in convergence.json are a summary of them. The test nodes are scored, and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import convergence_peers, peers
from benchmarks.convergence_picture import Curve, draw
from benchmarks.convergence_runs import Contestant, Spec
from benchmarks.options import add_integers, add_texts, check_positive
from benchmarks.process import call
from benchmarks.report import finish, write
from sgcn.commands.shared import plain
from sgcn.data import load
from sgcn.data.source import is_file, is_synthetic
from sgcn.errors import SgcnError
from sgcn.estimators import make_estimator
from sgcn.options import known_name
from sgcn.samplers import SAMPLERS
from sgcn.task import Task, split_nodes, train_nodes

#: What takes part by default: PyG, the exact gradient, plain sampling, and the corrected rules.
CONTESTANTS = (
    "pyg-full", "pyg-minibatch", "full", *(f"sgcn/{name}" for name in SAMPLERS),
    "sgcn++/neighbor", "sgcn++/ladies", "anchored/neighbor", "anchored/ladies",
    "anchored++/neighbor", "sgcn/neighbor+pre", "anchored++/neighbor+pre", "vrgcn/neighbor:1+pre",
    "pyg-minibatch+avg", "sgcn/neighbor+pre+avg", "sgcn/neighbor:2+pre+avg",
    "anchored++/neighbor:2+pre+avg", "vrgcn/neighbor:1+pre+avg", "vrgcn/neighbor:2+pre+avg",
)  # fmt: skip
BELOW = 0.005  # the target, under the F1 of the full-batch runs
_PATIENCE = 3  # PyG is given so many times the budget: its time says more than that it is over
_RUNS = "benchmarks.convergence_runs"
RESULT, PICTURE, SETTINGS = "convergence.json", "convergence.png", "settings.json"

Run = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """A point of the grid."""

    lr: float
    gap: int | None = None

    def __str__(self) -> str:
        return f"lr {self.lr:g}" + ("" if self.gap is None else f", K {self.gap}")


def arguments(parser: argparse.ArgumentParser) -> None:
    runs = (
        "pyg-full, pyg-minibatch, full, ESTIMATOR/SAMPLER[:SIZE]; +pre: P X is computed once; "
        "+avg: the moving average of the weights is scored; full always runs, it sets the target"
    )
    add_texts(
        parser,
        ("--data", "debian", "DATA", "a name, graph directory or .npz"),
        ("--only", ",".join(CONTESTANTS), "RUN[,..]", runs),
        ("--lr", "0.01,0.03", "X[,..]", "learning rates of the grid"),
        ("--gap", "10,30,100", "X[,..]", "gaps K of the grid"),
    )
    for name, seconds, help in (
        ("--trial", 12.0, "seconds of training for each point of the grid"),
        ("--budget", 90.0, "seconds of training for each run with the setting kept"),
    ):
        parser.add_argument(
            name, type=float, default=seconds, metavar="S", help=f"{help}; default: %(default)g"
        )
    add_integers(
        parser,
        ("--seeds", 3, "runs of the setting kept"),
        ("--width", 128, "of the two graph layers"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--threads", 1, "threads of every run"),
    )
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall",
        help="cpu on a machine that does other work, with one thread; default: %(default)s",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=Path, metavar="DIR",
        help="runs, convergence.json and convergence.png go here; default: runs/convergence-DATA",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    contest = _checked(args)
    report = contest.hold()
    finish(report, table, contest.out / RESULT)
    draw(report, contest.curves(), contest.out / PICTURE)
    print(f"\ncurves: {contest.out / PICTURE}; figures: {contest.out / RESULT}")


def _checked(args: argparse.Namespace) -> Contest:
    """Everything that can be wrong is found before the first run."""
    check_positive(args, "width", "batch_size", "threads", "seeds")
    for flag in ("budget", "trial"):
        if not 0 < getattr(args, flag) < math.inf:
            raise SgcnError(f"--{flag} is {getattr(args, flag)}, expected seconds above 0")
    names = [check_contestant(name.strip()) for name in args.only.split(",")]
    lrs = _numbers("--lr", args.lr, float)
    gaps = [int(gap) for gap in _numbers("--gap", args.gap, int)]
    out = args.out or Path("runs") / f"convergence-{plain(label_of(args.data))}"
    settings = {"data": args.data, "width": args.width, "batch_size": args.batch_size,
                "threads": args.threads, "clock": args.clock}  # fmt: skip
    _make_folder(out, settings)
    _check_graph(args.data)
    data = _kept(args.data, out) if is_synthetic(args.data) else args.data
    write(out / SETTINGS, settings)
    return Contest(
        data=data, out=out, settings=settings, names=names, lrs=lrs, gaps=gaps,
        seeds=args.seeds, budget=args.budget, trial=min(args.trial, args.budget),
    )  # fmt: skip


def label_of(data: str) -> str:
    """What the graph is called in a report: no path."""
    return Path(data).stem if is_file(data) else data


def check_contestant(name: str) -> str:
    """``name``, if it is one: see `Contestant`."""
    bare = name.removesuffix("+avg")
    if bare.startswith("pyg-") or name == "full":
        known_name("contestant", bare, ("pyg-full", "pyg-minibatch", "full"))
        return name
    if "/" not in name:
        raise SgcnError(
            f"--only has {name!r} in it, expected pyg-full, pyg-minibatch, full or "
            "ESTIMATOR/SAMPLER, as in anchored/neighbor"
        )
    who = Contestant.of(name)
    make_estimator(who.name)
    size = name.partition(":")[2].partition("+")[0]
    parts = (who.name, "/", who.sampler.name, ":" * bool(size), size, "+pre" * who.pre,
             "+avg" * who.averaged)  # fmt: skip
    if name != "".join(parts):
        raise SgcnError(
            f"--only has {name!r} in it, expected ESTIMATOR/SAMPLER, perhaps with :SIZE, +pre and "
            "+avg in this order, as in anchored++/neighbor:2+pre+avg"
        )
    return name


def _numbers(flag: str, text: str, kind: type[float]) -> list[float]:
    try:
        found = [kind(word) for word in text.split(",")]
    except ValueError:
        found = [0]
    if not all(0 < number < math.inf for number in found):
        raise SgcnError(f"{flag} is {text!r}, expected numbers above 0 with a comma between them")
    return found


def _make_folder(out: Path, settings: dict[str, Any]) -> None:
    """Make the folder, or make sure that its runs are of the same kind."""
    if out.is_dir() and any(out.iterdir()):
        try:
            known = json.loads((out / SETTINGS).read_text())
        except (OSError, ValueError):
            raise SgcnError(
                f"{out} holds other things, expected a new folder or one of this command: --out"
            ) from None
        if known != settings:
            raise SgcnError(
                f"{out} holds runs with {known}, expected {settings}: choose another --out"
            )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SgcnError(f"{out} cannot be made ({error.strerror}), expected a folder") from None


def _check_graph(name: str) -> None:
    graph = load(name)
    if graph.x is None:
        raise SgcnError(f"{name} has no features, expected x with one row for each node")
    Task.of(graph)
    train_nodes(graph)
    for part, word in ((1, "validation"), (2, "test")):
        if len(split_nodes(graph, part)) == 0:
            raise SgcnError(f"{name} has no {word} nodes, expected some in its split")


def _kept(name: str, out: Path) -> str:
    """A synthetic graph saved beside the runs: each of them opens it, and none makes it anew."""
    folder = out / "graph"
    if not folder.is_dir():
        load(name).save(folder)
    return str(folder)


@dataclass
class Contest:
    """The runs of one graph."""

    data: str
    out: Path
    settings: dict[str, Any]
    names: list[str]
    lrs: list[float]
    gaps: list[int]
    seeds: int
    budget: float
    trial: float
    chosen: dict[str, Setting] = field(default_factory=dict)
    trials: dict[str, list[Run]] = field(default_factory=dict)
    runs: dict[str, list[Run]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def hold(self) -> dict[str, Any]:
        from tqdm import tqdm

        if find_spec("torch_geometric") is None:
            self.skipped = {
                name: "torch_geometric is not installed"
                for name in self.names
                if name.startswith("pyg-")
            }
        others = [name for name in self.names if name != "full" and name not in self.skipped]
        total = sum(len(self.grid(name)) for name in ["full", *others])
        total += self.seeds * (1 + len(others))
        with tqdm(total=total, unit="run", disable=None, leave=False) as self.bar:
            self.choose("full", None)
            self.runs["full"] = [
                self.run("full", self.chosen["full"], seed, None, self.budget)
                for seed in range(self.seeds)
            ]
            if any(run["failed"] for run in self.runs["full"]):
                raise SgcnError(
                    f"the full-batch run failed ({self.runs['full'][0]['failed']}), expected one "
                    "that sets the target: give other learning rates with --lr"
                )
            target = median(run["validation"] for run in self.runs["full"]) - BELOW
            for name in others:
                self.choose(name, target)
            # Seed after seed: what else the machine does hits all contestants alike.
            for seed in range(self.seeds):
                for name in others:
                    self.enter(name, seed, target)
        return self.report(target)

    def grid(self, name: str) -> list[Setting]:
        """PyG's full batch is ours in other hands: it takes the learning rate found for that."""
        if name.startswith("pyg-full"):
            return [self.chosen["full"]] if "full" in self.chosen else [Setting(self.lrs[0])]
        if name.startswith("pyg-") or name == "full":
            return [Setting(lr) for lr in self.lrs]
        estimator = Contestant.of(name).name
        if estimator == "vrgcn" or not make_estimator(estimator).takes_snapshots:
            return [Setting(lr) for lr in self.lrs]
        return [Setting(lr, gap) for lr in self.lrs for gap in self.gaps]

    def choose(self, name: str, target: float | None) -> None:
        """Keep the best setting of the grid by validation alone."""
        grid, limit = self.grid(name), self.trial
        if len(grid) == 1:
            self.chosen[name] = grid[0]
            self.bar.update()
            return
        tried = []
        for setting in grid:
            run = self.run(name, setting, 0, target, limit)
            tried.append((self._rank(run), setting, run))
            if run["reached"] is not None:  # who has not reached it by then cannot win
                limit = min(limit, run["reached"][self.clock])
        self.trials[name] = [run for _, _, run in tried]
        self.chosen[name] = min(tried, key=lambda one: one[0])[1]

    @property
    def clock(self) -> str:
        return str(self.settings["clock"])

    def _rank(self, run: Run) -> tuple[float, float]:
        """Soonest first; among those that did not reach the target, the highest F1 first."""
        reached = run["reached"]
        score = -math.inf if run["failed"] or run["validation"] is None else run["validation"]
        return math.inf if reached is None else reached[self.clock], -score

    def enter(self, name: str, seed: int, target: float) -> None:
        runs = self.runs.setdefault(name, [])
        if runs and runs[0]["reached"] is None:
            self.bar.update()
            return
        limit = self.budget * (_PATIENCE if name.startswith("pyg-") else 1)
        runs.append(self.run(name, self.chosen[name], seed, target, limit))

    def run(
        self, name: str, setting: Setting, seed: int, target: float | None, limit: float
    ) -> Run:
        """A run from its file, or anew."""
        known = {key: value for key, value in self.settings.items() if key != "data"}
        spec = Spec(
            data=self.data, contestant=name, lr=setting.lr, gap=setting.gap, seed=seed,
            target=target, limit=limit, **known,
        )  # fmt: skip
        self.bar.set_postfix_str(f"{name}, {setting}, seed {seed}")
        gap = "" if setting.gap is None else f"-k{setting.gap}"
        file = self.out / f"run-{name.replace('/', '-')}-lr{setting.lr:g}{gap}-s{seed}.json"
        found = _usable(file, spec)
        if found is None:
            found = call(_RUNS, asdict(spec), file, spec.threads)
        self.bar.update()
        return found

    def report(self, target: float) -> dict[str, Any]:
        rows = {
            name: row(self.runs[name], target, self.clock, str(self.chosen[name]))
            for name in dict.fromkeys(["full", *self.names])
            if name in self.runs
        }
        label = label_of(self.settings["data"])
        ratios, bounds = compare(label, rows)
        return {
            "graph": label,
            "target": target,
            "results": rows,
            "ratios": ratios,
            "at_least": bounds,
            "grid": {"lr": self.lrs, "gap": self.gaps},
            "minibatches": convergence_peers.loader_words(),
            "skipped": self.skipped,
            "trials": {
                name: {str(Setting(run["lr"], run["gap"])): self._brief(run) for run in runs}
                for name, runs in self.trials.items()
            },
            **{key: value for key, value in self.settings.items() if key != "data"},
            "seeds": self.seeds,
            "budget": self.budget,
            "trial": self.trial,
            "versions": peers.versions(),
        }

    def _brief(self, run: Run) -> list[float | None]:
        """Of a trial: validation F1, and the seconds to the target."""
        return [run["validation"], None if run["reached"] is None else run["reached"][self.clock]]

    def curves(self) -> dict[str, list[Curve]]:
        """What each contestant's runs scored, by seed."""
        return {name: [run["curve"] for run in runs] for name, runs in self.runs.items()}


def _usable(file: Path, spec: Spec) -> Run | None:
    """The run in ``file`` if it answers ``spec``: the same target, met or tried for long enough."""
    try:
        found: Run = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    same = found["target"] == spec.target
    ended = found["reached"] is not None or found["stopped"] in ("settled", "failed")
    return found if same and (ended or found["limit"] >= spec.limit) else None


# -- what came out --------------------------------------------------------------------------------


def row(runs: Sequence[Run], target: float, clock: str, setting: str) -> dict[str, Any]:
    """Medians over the seeds of one contestant; the target counts as met if most seeds met it."""
    met = [reached(run, target) for run in runs]
    times = {
        name: [math.inf if point is None else point[name] for point in met]
        for name in ("wall", "cpu", "step")
    }
    middle = {name: median(values) for name, values in times.items()}
    return {
        "setting": setting,
        "seconds": _finite(middle[clock]),
        "cpu_seconds": _finite(middle["cpu"]),
        "steps": _finite(middle["step"]),
        "each": [_finite(value) for value in times[clock]],
        "tried_seconds": median(run["seconds"][clock] for run in runs),
        "total_seconds": median(run["total_seconds"] for run in runs),
        "prepare_seconds": median(run["prepare_seconds"] for run in runs),
        "peak_mb": median(run["peak_mb"] for run in runs),
        "validation": _median_of(runs, "validation"),
        "test": _median_of(runs, "test"),
        "stopped": [run["stopped"] for run in runs],
        "note": runs[0]["note"],
    }


def reached(run: Run, target: float) -> dict[str, float] | None:
    """The first point of the curve at the target or above."""
    return next((point for point in run["curve"] if point["f1"] >= target), None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _median_of(runs: Sequence[Run], key: str) -> float | None:
    found = [run[key] for run in runs if run[key] is not None]
    return median(found) if found else None


def compare(label: str, rows: dict[str, dict[str, Any]]) -> tuple[dict[str, float], list[str]]:
    """How many times sooner each of ours is than the best of PyG, than `full`, and than the best
    plain sampling. If those did not reach the target, the time that they were given stands in:
    the ratio is then a lower bound, and its key is in the second result."""
    groups = {
        "pyg": [name for name in rows if name.startswith("pyg-")],
        "full": [name for name in rows if name == "full"],
        "sgcn": [name for name in rows if name.startswith("sgcn/")],
    }
    ratios, bounds = {}, []
    for name, one in rows.items():
        for group, members in groups.items():
            if not members or name in members or one["seconds"] is None:
                continue
            times = [rows[other]["seconds"] for other in members]
            known = [time for time in times if time is not None]
            key = f"{label}/{name}/{group}"
            if not known:
                known = [max(rows[other]["tried_seconds"] for other in members)]
                bounds.append(key)
            ratios[key] = min(known) / one["seconds"]
    return ratios, bounds


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    unit = "CPU s" if report["clock"] == "cpu" else "s"
    lines = [
        f"{report['graph']}: validation F1 {report['target']:.4f} is the target, {BELOW * 100:g} "
        f"points under the full batch",
        "",
        f"{'run':<31}{'to target, ' + unit:>16}{'steps':>8}{'in all, s':>11}{'MB':>8}"
        f"{'test F1':>9}  setting",
    ]
    order = sorted(report["results"].items(), key=lambda one: one[1]["seconds"] or math.inf)
    for name, one in order:
        seconds, steps, test = one["seconds"], one["steps"], one["test"]
        time = f"> {one['tried_seconds']:.1f}" if seconds is None else f"{seconds:.2f}"
        lines.append(
            f"{name:<31}{time:>16}{'-' if steps is None else f'{steps:.0f}':>8}"
            f"{one['total_seconds']:>11.1f}{one['peak_mb']:>8.0f}"
            f"{'-' if test is None else f'{test:.4f}':>9}  {one['setting']}"
            + (f", {one['note']}" if one["note"] else "")
        )
    lines += [
        "",
        f"medians of {report['seeds']} seeds, {report['threads']} thread(s), width "
        f"{report['width']}, batch {report['batch_size']}; lr of {report['grid']['lr']}, K of "
        f"{report['grid']['gap']}, chosen on validation with the first seed",
        "to target: training alone, scoring not counted for anyone; in all: loading and preparing "
        "too; MB: peak while training",
        f"mini-batches of PyG: {report['minibatches']}",
    ]
    lines += [f"{name}: skipped, {why}" for name, why in report["skipped"].items()]
    if "limit" in report["results"]["full"]["stopped"]:
        lines.append("full had not settled when its time was over: a longer --budget gives a "
                     "higher target")  # fmt: skip
    ours = [(name, one) for name, one in order if Contestant.of(name).name not in _PLAIN]
    if ours and ours[0][1]["seconds"] is not None:
        name = ours[0][0]
        lines += ["", f"best corrected run: {name}"]
        for group, words in _GROUPS.items():
            key = f"{report['graph']}/{name}/{group}"
            if key in report["ratios"]:
                least = "at least " if key in report["at_least"] else ""
                lines.append(f"  {least}{report['ratios'][key]:.1f}x sooner than {words}")
    return "\n".join(lines)


#: Contestants without a correction.
_PLAIN = ("pyg-full", "pyg-minibatch", "full", "sgcn")
_GROUPS = {"pyg": "the best of PyG", "full": "our full batch", "sgcn": "our best plain sampling"}
