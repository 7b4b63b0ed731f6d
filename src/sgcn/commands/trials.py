"""Several runs of one configuration: other seeds, or other values of some of its keys."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from sgcn.commands import shared
from sgcn.errors import SgcnError
from sgcn.options import parse_value

if TYPE_CHECKING:
    from sgcn.runs.config import Config

#: What --vary may call by one word.
_NAMES = ("sampler", "estimator", "optimizer")


@dataclass(frozen=True)
class Trial:
    """One run: what is varied, the seed, and where it goes."""

    setting: str
    config: Config
    out: Path


def add_seeds(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", metavar="A-B", help="seeds 0-4 or 0,3,7, in place of one")


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
    from sgcn.runs.config import make_config

    seeds = [args.seed] if args.seeds is None else seeds_of(args.seeds)
    made = []
    for setting in product(*(_choices(text) for text in vary)):
        short = ", ".join(value for _, value in setting)
        label = short if len(setting) < 2 else ", ".join("=".join(pair) for pair in setting)
        for seed in seeds:
            values = shared.values_of(argparse.Namespace(**vars(args) | {"seed": seed}))
            for key, value in setting:
                _assign(values, key, value)
            parts = [shared.plain(label)] * bool(setting) + [f"seed-{seed}"] * (len(seeds) > 1)
            made.append(Trial(label, make_config(values), out.joinpath(*parts)))
    return made


def _choices(text: str) -> list[tuple[str, str]]:
    """(key, value) for each value of ``key=value,value``; brackets keep their commas."""
    key, _, values = text.partition("=")
    found = re.findall(r"(?:\[[^\]]*\]|[^,])+", values)
    if not found or not (key in _NAMES or "." in key):
        raise SgcnError(
            f"--vary got {text!r}, expected a key and its values, like sampler=neighbor,ladies or "
            "optimizer.lr=0.003,0.01"
        )
    return [(key, value.strip()) for value in found]


def _assign(values: dict[str, Any], key: str, value: str) -> None:
    section, _, name = key.partition(".")
    table = values.setdefault(section, {})
    if not name:
        if table.get("name") != value:
            table.clear()  # options of another one mean nothing here
        name = "name"
    table[name] = parse_value(value) if name != "name" else value


def run_all(made: Sequence[Trial], args: argparse.Namespace) -> list[tuple[Trial, dict[str, Any]]]:
    """Run one after another; nothing begins before all of them can."""
    from sgcn.runs import directory as runs

    for trial in made:
        runs.check_output(trial.out, force=args.force)
    done = []
    for trial in made:
        if not args.quiet:
            print(f"{trial.out}:", flush=True)
        summary = runs.train(
            trial.config, trial.out, force=args.force, quiet=args.quiet,
            make_probe=shared.make_probe,
        )  # fmt: skip
        done.append((trial, summary))
    return done


def table(done: Sequence[tuple[Trial, dict[str, Any]]]) -> Iterator[str]:
    """A line for each setting: means over its seeds, and the spread of the test score."""
    metric = "f1_micro"
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial, summary in done:
        groups.setdefault(trial.setting, []).append(summary)
    wide = max(8, *(len(setting) for setting in groups)) + 2
    yield f"{'setting':<{wide}}{'test F1':>18}{'best val. F1':>14}{'seconds':>9}{'snapshots':>11}"
    for setting, runs in groups.items():
        tests = [run["test"][metric] for run in runs]
        spread = f" ± {stdev(tests):.4f}" if len(runs) > 1 else ""
        mean = f"{fmean(tests):.4f}{spread}"
        yield (
            f"{setting:<{wide}}{mean:>18}{fmean(run['validation'][metric] for run in runs):>14.4f}"
            f"{fmean(run['seconds']['total'] for run in runs):>9.1f}"
            f"{fmean(run['snapshots'] for run in runs):>11.4g}"
        )
