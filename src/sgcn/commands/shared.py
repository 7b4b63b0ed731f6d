"""What commands that train or measure share: options into a configuration."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgcn.options import parse_value
from sgcn.training.options import PRESETS, check_table, flags

if TYPE_CHECKING:
    from sgcn.nn import Model
    from sgcn.training.loop import Callback
    from sgcn.training.options import LoopOptions


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of options that have one, and the recipe under them."""
    parser.add_argument("--preset", metavar="NAME", help=f"known recipe: {', '.join(PRESETS)}")
    for flag in flags():
        named = flag.key == "name"
        parser.add_argument(
            flag.name, type=str if named else parse_value, metavar="NAME" if named else "N",
            help=f"{flag.help}; default: {'none' if flag.default is None else flag.default}",
        )  # fmt: skip


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """A run, and the graph to use its model on."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="what sgcn train wrote")
    parser.add_argument(
        "--data", metavar="DATA", help="another graph, with the same features; default: the run's"
    )


def note_unfinished(run: Path) -> None:
    """Say that ``run`` may still get better."""
    from sgcn.runs.layout import SUMMARY

    if not (run / SUMMARY).is_file():
        print(
            f"{run} is not finished, these are its best weights so far; it goes on with: "
            f"sgcn train --resume {run}", file=sys.stderr,
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


def make_probe(loop: LoopOptions, model: Model) -> Callback:
    """What looks at the gradient's error on the way (``training.probe_every``)."""
    from sgcn.analysis import GradientProbe

    assert loop.probe_every is not None
    probe = GradientProbe(8, loop.probe_every, seed=loop.seed)
    probe.check_room(model, "leave out training.probe_every")
    return probe


def plain(name: str) -> str:
    """``name`` as part of a file's name: synthetic:nodes=9,noise=0.3 has signs that shells read."""
    return re.sub(r"[^\w.=+-]+", "-", name)


def values_of(args: argparse.Namespace) -> dict[str, Any]:
    """The configuration that the options spell out: file first, then flags, then --set."""
    from sgcn.runs.config import assign, read_toml

    values = {} if args.config is None else read_toml(args.config)
    if args.data is not None:
        values["data"] = args.data
    if getattr(args, "preset", None) is not None:
        values["preset"] = args.preset
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
