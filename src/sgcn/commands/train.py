"""Train a model on a graph and write a run directory.

examples:
  sgcn train flickr-like                              defaults: neighbor sampling, anchored++
  sgcn train my.npz --sampler ladies --estimator sgcn++ --epochs 20 --seed 1 --out runs/a
  sgcn train my-graph/ --set model.widths=256 --set sampler.sizes=10
  sgcn train debian --seeds 0-4                       five runs, their mean and spread
  sgcn train --resume runs/a                          go on where a run was stopped
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import trials
from sgcn.commands.shared import add_flags, add_options, make_probe, plain, values_of
from sgcn.errors import SgcnError
from sgcn.training.options import flags


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", metavar="DATA", help="a name, graph directory or .npz")
    add_flags(parser)
    trials.add_seeds(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: runs/DATA-.., a new one")
    add_options(parser)
    parser.add_argument(
        "--resume", type=Path, metavar="RUN",
        help="continue a stopped run; beside --seeds, their folder",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing run")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.data.source import is_file
    from sgcn.metrics import words
    from sgcn.runs import directory as runs
    from sgcn.runs.config import make_config
    from sgcn.runs.layout import CURVES, SUMMARY

    if args.resume is not None and args.seeds is None:
        given = [args.preset, *(getattr(args, flag.attribute) for flag in flags())]
        given += [args.data, args.config, args.out]
        if args.set or any(value is not None for value in given):
            raise SgcnError("--resume takes a run as it is, expected no other options beside it")
        out, config = args.resume, runs.read_config(args.resume)
        if (out / SUMMARY).is_file():
            print(f"{out} is finished; its results are in {out / SUMMARY}")
            return
    else:
        config = make_config(values_of(args))
        data = config.data
        graph = Path(data).resolve().stem if is_file(data) else plain(data)
        chosen = config.training
        name = f"{graph}-{chosen.sampler.name}-{chosen.estimator_name}"
        name += f"-{chosen.loop.seed}" if args.seeds is None else ""
        place = Path("runs") / name  # by default a new one
        out = args.out or args.resume or (place if args.force else runs.free_place(place))
        if args.seeds is not None:
            if args.resume not in (None, out):
                raise SgcnError(f"--out is {out}, expected the folder of --resume, {args.resume}")
            trials.run_all(trials.trials(args, [], out), args, out, f"--resume {out}")
            return
    summary = runs.train(
        config, out, resume=args.resume is not None, force=args.force, quiet=args.quiet,
        make_probe=make_probe,
    )  # fmt: skip
    if not args.quiet:
        print(
            f"test {words(summary['test'])}; validation {words(summary['validation'])} at step "
            f"{summary['best_step']}, the best; {summary['seconds']['total']:.1f} s; curves in "
            f"{out / CURVES}"
        )
