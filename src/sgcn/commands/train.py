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
from collections.abc import Collection, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgcn.errors import SgcnError
from sgcn.options import parse_value
from sgcn.training.options import check_table, flags

if TYPE_CHECKING:
    from sgcn.nn import Model
    from sgcn.training.loop import Callback
    from sgcn.training.options import LoopOptions


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", metavar="DATA", help="a name, graph directory or .npz")
    add_flags(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: runs/DATA-...")
    add_options(parser)
    parser.add_argument("--resume", type=Path, metavar="RUN", help="continue a stopped run")
    parser.add_argument("--force", action="store_true", help="replace an existing run")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def add_flags(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """The flags of options that have one, but those ``without``."""
    for flag in flags():
        if flag.name not in without:
            named = flag.key == "name"
            parser.add_argument(
                flag.name, type=str if named else parse_value, metavar="NAME" if named else "N",
                help=f"{flag.help}; default: {flag.default}",
            )  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options from a file, and one by one."""
    parser.add_argument("--config", type=Path, metavar="FILE.toml", help="options from a file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="section.key=value", help="one option"
    )


def add_measuring(
    parser: argparse.ArgumentParser, numbers: dict[str, tuple[int | float, str]]
) -> None:
    """What commands share that measure samplers; ``numbers`` are flags with default and help."""
    parser.add_argument("data", nargs="?", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument("--sampler", metavar="NAME[,..]", help="default: neighbor")
    for name, (default, help) in numbers.items():
        parser.add_argument(
            name, type=type(default), default=default, metavar="N",
            help=f"{help}; default: %(default)s",
        )  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="K", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write all figures here")
    add_options(parser)


def run(args: argparse.Namespace) -> None:
    from sgcn.data.source import is_file
    from sgcn.metrics import words
    from sgcn.runs import directory as runs
    from sgcn.runs.config import make_config
    from sgcn.runs.layout import CURVES, SUMMARY

    if args.resume is not None:
        given = [getattr(args, flag.attribute) for flag in flags()]
        if args.set or any(v is not None for v in (args.data, args.config, args.out, *given)):
            raise SgcnError("--resume takes a run as it is, expected no other options beside it")
        out, config = args.resume, runs.read_config(args.resume)
        if (out / SUMMARY).is_file():
            print(f"{out} is finished; its results are in {out / SUMMARY}")
            return
    else:
        config = make_config(values_of(args))
        graph = Path(config.data).stem if is_file(config.data) else plain(config.data)
        chosen = config.training
        name = f"{graph}-{chosen.sampler.name}-{chosen.estimator_name}-{chosen.loop.seed}"
        out = args.out or Path("runs") / name
    summary = runs.train(
        config, out, resume=args.resume is not None, force=args.force, quiet=args.quiet,
        make_probe=make_probe,
    )  # fmt: skip
    if not args.quiet:
        scores, seconds = words(summary["test"]), summary["seconds"]["total"]
        print(f"test {scores}, {seconds:.1f} s; curves in {out / CURVES}")


def make_probe(loop: LoopOptions, model: Model) -> Callback:
    """What looks at the gradient's error on the way (``training.probe_every``)."""
    from sgcn.analysis import GradientProbe

    assert loop.probe_every is not None
    probe = GradientProbe(8, loop.probe_every, seed=loop.seed)
    probe.check_room(model, "leave out training.probe_every")
    return probe


def plain(name: str) -> str:
    """``name`` as part of a file's name: synthetic:nodes=9,noise=0.3 has signs that shells read."""
    return re.sub(r"[^\w.=-]+", "-", name)


def values_of(args: argparse.Namespace) -> dict[str, Any]:
    """The configuration that the options spell out: file first, then flags, then --set."""
    from sgcn.runs.config import assign, read_toml

    values = {} if args.config is None else read_toml(args.config)
    if args.data is not None:
        values["data"] = args.data
    for flag in flags():
        value = getattr(args, flag.attribute, None)
        if value is not None:
            table = values.setdefault(flag.section, {})
            check_table(flag.section, table)
            if flag.key == "name" and table.get("name", flag.default) != value:
                table.clear()  # options of another sampler or estimator mean nothing here
            table[flag.key] = value
    assign(values, args.set)
    return values


def names(text: str | None) -> list[str | None]:
    """Names separated by commas; without a text, that of the configuration."""
    return [None] if text is None else [*text.split(",")]


def values_of_each(
    args: argparse.Namespace, samplers: Iterable[str | None], estimators: Iterable[str | None]
) -> Iterator[dict[str, Any]]:
    """`values_of` every sampler with every estimator."""
    for sampler, estimator in product(samplers, estimators):
        chosen = {"sampler": sampler, "estimator": estimator}
        yield values_of(argparse.Namespace(**vars(args) | chosen))
