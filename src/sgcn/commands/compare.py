"""Train with each of several values of any options, with one seed or more, and compare.

examples:
  sgcn compare debian                                      five estimators
  sgcn compare debian --vary estimator=sgcn,anchored++ --seeds 0-2
  sgcn compare my.npz --vary sampler=neighbor,ladies --vary optimizer.lr=0.003,0.01
  sgcn compare debian --resume                             the runs that a stopped one has left
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import shared, trials

_ESTIMATORS = "estimator=full,sgcn,sgcn++,anchored,anchored++"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument(
        "--vary", action="append", metavar="KEY=V,V..",
        help="sampler, estimator, optimizer or section.key, and its values; several flags: every "
        f"combination; default: {_ESTIMATORS}",
    )  # fmt: skip
    shared.add_flags(parser)
    trials.add_seeds(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default: runs/compare, or runs/compare-run2 .."
    )
    shared.add_options(parser)
    parser.add_argument(
        "--resume", action="store_true", help="keep finished runs, go on with the others"
    )
    parser.add_argument("--force", action="store_true", help="replace existing runs")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.runs.directory import free_place, last_place

    place = Path("runs/compare")
    find = last_place if args.resume else free_place
    out = args.out or (place if args.force else find(place))
    made = trials.trials(args, args.vary or [_ESTIMATORS], out)
    trials.run_all(made, args, out, f"--resume --out {out}")
