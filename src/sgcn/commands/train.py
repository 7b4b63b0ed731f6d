"""Train a model on a graph and write a run directory.

examples:
  sgcn train flickr-like                              defaults: neighbor sampling, anchored++
  sgcn train my.npz --sampler ladies --estimator sgcn++ --epochs 20 --seed 1 --out runs/a
  sgcn train my-graph/ --set model.widths=256 --set sampler.sizes=10
  sgcn train --resume runs/a                          go on where a run was stopped
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from sgcn.errors import SgcnError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument("--sampler", metavar="NAME", help="see sgcn samplers; default: neighbor")
    parser.add_argument("--estimator", metavar="NAME", help="default: anchored++")
    parser.add_argument("--epochs", type=int, metavar="N", help="default: 10")
    parser.add_argument("--seed", type=int, metavar="K", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: runs/DATA-...")
    parser.add_argument("--config", type=Path, metavar="FILE.toml", help="options from a file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="section.key=value", help="one option"
    )
    parser.add_argument("--resume", type=Path, metavar="RUN", help="continue a stopped run")
    parser.add_argument("--force", action="store_true", help="replace an existing run")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.data.source import is_file
    from sgcn.runs import directory as runs
    from sgcn.runs.config import make_config
    from sgcn.runs.layout import SUMMARY

    if args.resume is not None:
        chosen = (args.data, args.sampler, args.estimator, args.epochs, args.seed, args.config)
        if args.set or args.out or any(value is not None for value in chosen):
            raise SgcnError("--resume takes a run as it is, expected no other options beside it")
        out, config = args.resume, runs.read_config(args.resume)
        if (out / SUMMARY).is_file():
            print(f"{out} is finished; its results are in {out / SUMMARY}")
            return
    else:
        config = make_config(values_of(args))
        graph = Path(config.data).stem if is_file(config.data) else plain(config.data)
        name = f"{graph}-{config.sampler.name}-{config.estimator_name}"
        out = args.out or Path("runs") / f"{name}-{config.training.seed}"
    summary = runs.train(
        config, out, resume=args.resume is not None, force=args.force, quiet=args.quiet
    )
    if not args.quiet:
        test = summary["test"]
        print(
            f"test F1 {test['f1_micro']:.4f}, loss {test['loss']:.4f}, "
            f"{summary['seconds']['total']:.1f} s; curves in {out / 'curves.png'}"
        )


def plain(name: str) -> str:
    """``name`` as part of a file's name: synthetic:nodes=9,noise=0.3 has signs that shells read."""
    return re.sub(r"[^\w.=-]+", "-", name)


def values_of(args: argparse.Namespace) -> dict[str, Any]:
    """The configuration that the options spell out: file first, then names, then --set."""
    from sgcn.runs.config import DEFAULT_NAMES, put, read_toml

    values = {} if args.config is None else read_toml(args.config)
    if args.data is not None:
        values["data"] = args.data
    for section, key, value in (
        ("sampler", "name", args.sampler),
        ("estimator", "name", args.estimator),
        ("training", "epochs", args.epochs),
        ("training", "seed", args.seed),
    ):
        if value is not None:
            table = values.setdefault(section, {})
            if not isinstance(table, dict):
                raise SgcnError(f"{section} is {table!r}, expected a table of options")
            if key == "name" and table.get("name", DEFAULT_NAMES[section]) != value:
                table.clear()  # options of another sampler or estimator mean nothing here
            table[key] = value
    put(values, args.set)
    return values
