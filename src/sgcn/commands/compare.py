"""Train with each of several values of any options, with one seed or more, and compare.

examples:
  sgcn compare debian                                      four estimators
  sgcn compare debian --vary estimator=sgcn,anchored++ --seeds 0-2
  sgcn compare my.npz --vary sampler=neighbor,ladies --vary optimizer.lr=0.003,0.01
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import shared, trials

_ESTIMATORS = "estimator=full,sgcn,sgcn++,anchored"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument(
        "--vary", action="append", metavar="KEY=V,V..",
        help="sampler, estimator, optimizer or section.key, and its values; several flags: every "
        f"combination; default: {_ESTIMATORS}",
    )  # fmt: skip
    shared.add_flags(parser)
    trials.add_seeds(parser)
    parser.add_argument("--out", type=Path, default=Path("runs/compare"), metavar="DIR")
    shared.add_options(parser)
    parser.add_argument("--force", action="store_true", help="replace existing runs")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.runs.curves import draw
    from sgcn.runs.layout import CURVES

    done = trials.run_all(trials.trials(args, args.vary or [_ESTIMATORS], args.out), args)
    print()
    for line in trials.table(done):
        print(line)
    print(f"\ncurves: {draw([trial.out for trial, _ in done], args.out / CURVES)}")
