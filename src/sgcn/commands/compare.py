"""Train the same model with several estimators and compare them.

examples:
  sgcn compare ppi-like --estimators full,sgcn,sgcn++,anchored --out runs/compare
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import train


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument(
        "--estimators", default="full,sgcn,sgcn++,anchored", metavar="NAME[,..]",
        help="default: %(default)s",
    )  # fmt: skip
    train.add_flags(parser, without=["--estimator"])
    parser.add_argument("--out", type=Path, default=Path("runs/compare"), metavar="DIR")
    train.add_options(parser)
    parser.add_argument("--force", action="store_true", help="replace existing runs")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.metrics import key_of, label, shown
    from sgcn.runs import directory as runs
    from sgcn.runs.config import make_config
    from sgcn.runs.curves import draw
    from sgcn.runs.layout import CURVES

    estimators = args.estimators.split(",")
    configs = [make_config(v) for v in train.values_of_each(args, [args.sampler], estimators)]
    for config in configs:
        runs.check_output(args.out / config.training.estimator_name, force=args.force)
    rows = []
    for config in configs:
        name = config.training.estimator_name
        if not args.quiet:
            print(f"{name}:", flush=True)
        summary = runs.train(
            config, args.out / name, force=args.force, quiet=args.quiet,
            make_probe=train.make_probe,
        )  # fmt: skip
        rows.append((name, summary))
    key = key_of(rows[0][1]["test"])
    test, best = f"  test {label(key)}", f"  best val. {label(key)}"
    print(f"\n{'estimator':<12}{test}{best}{'seconds':>9}{'snapshots':>11}")
    for name, summary in rows:
        print(
            f"{name:<12}{shown(summary['test'][key]):>{len(test)}}"
            f"{shown(summary['validation'][key]):>{len(best)}}{summary['seconds']['total']:>9.1f}"
            f"{summary['snapshots']:>11}"
        )
    curves = draw([args.out / name for name, _ in rows], args.out / CURVES)
    print(f"\ncurves: {curves}")
