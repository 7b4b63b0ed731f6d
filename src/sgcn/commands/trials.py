"""Several runs of one configuration: other seeds, or other values of some of its keys."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from sgcn.commands import shared
from sgcn.errors import SgcnError, TrainingDiverged, TrainingInterrupted

if TYPE_CHECKING:
    from sgcn.runs.config import Config

#: What --vary may call by one word; the first two have flags.
_NAMES = ("sampler", "estimator", "optimizer")
_KEYS = {"optimizer": "optimizer.name"}


@dataclass(frozen=True)
class Trial:
    """One run: what is varied, the seed, and where it goes."""

    setting: str
    config: Config
    out: Path


def add_seeds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seeds", metavar="A-B",
        help="seeds 0-4 or 0,3,7, in place of one; what `auto` stands for, the first decides",
    )  # fmt: skip


def seeds_of(text: str) -> list[int]:
    """The seeds that ``0-4`` or ``0,3,7`` stands for."""
    seeds: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part.strip())
        if found is None or int(found[2] or found[1]) < int(found[1]):
            raise SgcnError(f"--seeds got {text!r}, expected seeds like 0-4 or 0,3,7")
        seeds += range(int(found[1]), int(found[2] or found[1]) + 1)
    return list(dict.fromkeys(seeds))


def trials(args: argparse.Namespace, vary: Sequence[str], out: Path) -> list[Trial]:
    """A trial for every combination of the values to ``vary`` and every seed, checked."""
    from sgcn.runs.config import assign, make_config

    if args.seeds is not None and args.seed is not None:
        raise SgcnError(
            f"--seed {args.seed} stands beside --seeds {args.seeds}, expected one of them"
        )
    seeds = [args.seed] if args.seeds is None else seeds_of(args.seeds)
    made = []
    for setting in product(*(_choices(text) for text in vary)):
        short = ", ".join(value for _, value in setting)
        label = short if len(setting) < 2 else ", ".join("=".join(pair) for pair in setting)
        for seed in seeds:
            named = {key: value for key, value in setting if key in ("sampler", "estimator")}
            values = shared.values_of(argparse.Namespace(**vars(args) | named | {"seed": seed}))
            assign(values, (f"{_KEYS.get(key, key)}={value}" for key, value in setting
                            if key not in named))  # fmt: skip
            parts = [shared.plain(label)] * bool(setting) + [f"seed-{seed}"] * (len(seeds) > 1)
            config = make_config(values)
            chosen = f"{config.training.sampler.name}, {config.training.estimator_name}"
            made.append(Trial(label or chosen, config, out.joinpath(*parts)))
    return made


def _choices(text: str) -> list[tuple[str, str]]:
    """(key, value) for each value of ``key=value,value``; brackets keep their commas."""
    key, _, values = text.partition("=")
    found = re.findall(r"(?:\[[^\]]*\]|[^,])+", values)
    if not found or not (key in _NAMES or "." in key):
        from sgcn.training.options import full_name

        meant = full_name(key) if values and "." not in key else None
        example = "like sampler=neighbor,ladies or optimizer.lr=0.003,0.01"
        hint = f"did you mean {meant}={values}?" if meant else example
        raise SgcnError(f"--vary got {text!r}, expected a key and its values, {hint}")
    return [(key, value) for value in dict.fromkeys(map(str.strip, found))]


def run_all(made: Sequence[Trial], args: argparse.Namespace, out: Path, again: str) -> None:
    """Run one after another, then print the table and draw the curves into ``out``.

    Nothing begins before all of them can. With ``args.resume`` what is finished stays as it is, and
    what was stopped goes on. ``again`` are the options that have the same command do so.
    """
    from sgcn.data.source import check_data
    from sgcn.runs import directory as runs
    from sgcn.runs.curves import draw
    from sgcn.runs.layout import CURVES, is_run

    for trial in made:
        check_data(trial.config.data)
        if args.resume and is_run(trial.out):
            _check_same(trial, runs.read_config(trial.out))
        else:
            runs.check_output(trial.out, force=args.force)
    done: list[tuple[Trial, dict[str, Any]]] = []
    failed: list[TrainingDiverged] = []
    first: dict[str, Path] = {}  # run of a setting
    for trial in made:
        if not args.quiet:
            print(f"{trial.out}:", flush=True)
        try:
            summary = _summary_of(trial, first.setdefault(trial.setting, trial.out), args)
        except TrainingDiverged as error:  # a finding; the others go on
            print(f"{trial.out}: {error}", file=sys.stderr)
            failed.append(error)
            continue
        except (KeyboardInterrupt, TrainingInterrupted) as stopped:
            raise TrainingInterrupted(
                f"stopped after {len(done) + len(failed)} of {len(made)} runs; go on with the same "
                f"command and {again}",
                getattr(stopped, "exit_code", 130) - 128, getattr(stopped, "fitted", None),
            ) from None  # fmt: skip
        done.append((trial, summary))
    if not done and failed:
        raise failed[0]
    print(*table(done), sep="\n")
    print(f"\ncurves: {draw([trial.out for trial, _ in done], out / CURVES)}")


def _summary_of(trial: Trial, first: Path, args: argparse.Namespace) -> dict[str, Any]:
    """The summary of a run: of one that is finished, that goes on, or that begins.

    What trials of options have decided for the ``first`` run of a setting holds for its others.
    """
    from sgcn.runs import directory as runs
    from sgcn.runs.layout import SUMMARY, is_run

    config, known = trial.config, args.resume and is_run(trial.out)
    if known and (trial.out / SUMMARY).is_file():
        summary: dict[str, Any] = json.loads((trial.out / SUMMARY).read_text())
        if summary["diverged"]:
            raise TrainingDiverged(summary["diverged"])
        return summary
    if known:
        config = runs.read_config(trial.out)
    elif first != trial.out and config.auto:
        seed, config = config.training.loop.seed, runs.read_config(first)
        config = replace(config, training=config.training.changed(seed=seed))
    return runs.train(
        config, trial.out, resume=known, force=args.force, quiet=args.quiet,
        make_probe=shared.make_probe,
    )  # fmt: skip


def _check_same(trial: Trial, kept: Config) -> None:
    """Make sure that a run that is kept is what ``trial`` would make: all it says, no more."""
    from sgcn.data.source import is_file
    from sgcn.training.options import Training

    data = trial.config.data
    if kept.data != (str(Path(data).resolve()) if is_file(data) else data):
        raise SgcnError(
            f"{trial.out} was begun on {kept.data}, expected {data}: choose another --out"
        )
    usual, found = Training().tables(), kept.training.tables()
    for section, table in trial.config.training.tables().items():
        for key, value in table.items():
            exact = section == "training" and key != "preaggregate"  # nothing else decides these
            if (exact or value != usual[section].get(key)) and value != found[section].get(key):
                raise SgcnError(
                    f"{trial.out} was begun with {section}.{key} = {found[section].get(key)!r}, "
                    f"expected {value!r}: go on with the same options, or choose another --out"
                )


def table(done: Sequence[tuple[Trial, dict[str, Any]]]) -> Iterator[str]:
    """A line for each setting: means over its seeds, and the spread of the test score."""
    from sgcn.metrics import key_of, label, shown

    metrics = {key_of(summary["test"]) for _, summary in done}
    what = label(min(metrics)) if len(metrics) == 1 else "score"
    test, best = f"test {what}", f"  best val. {what}"
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial, summary in done:
        groups.setdefault(trial.setting, []).append(summary)
    wide = max(8, *(len(setting) for setting in groups)) + 2
    yield f"{'setting':<{wide}}{test:>18}{best}{'seconds':>9}{'snapshots':>11}"
    for setting, runs in groups.items():
        metric = key_of(runs[0]["test"])
        tests, bests = (
            [math.nan if run[part][metric] is None else run[part][metric] for run in runs]
            for part in ("test", "validation")
        )
        spread = len(runs) > 1 and all(map(math.isfinite, tests))
        mean = shown(fmean(tests)) + (f" ± {shown(stdev(tests))}" if spread else "")
        score = shown(fmean(bests))
        yield (
            f"{setting:<{wide}}{mean:>18}{score:>{len(best)}}"
            f"{fmean(run['seconds']['total'] for run in runs):>9.1f}"
            f"{fmean(run['snapshots'] for run in runs):>11.4g}"
        )
