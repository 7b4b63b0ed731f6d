"""Measure how far a sampler's propagation matrix is from the exact one.

examples:
  sgcn theory ppi-like --sampler neighbor,ladies,fastgcn
  sgcn theory my.npz --sampler neighbor --set sampler.weighting=row --out theory.json
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

from sgcn.commands import train
from sgcn.commands.variance import check_place


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="?", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument("--sampler", metavar="NAME[,..]", help="default: neighbor")
    parser.add_argument(
        "--draws", type=int, default=200, metavar="N", help="samples to draw; default: %(default)s"
    )
    parser.add_argument("--seed", type=int, metavar="K", help="default: 0")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the figures here")
    parser.add_argument("--config", type=Path, metavar="FILE.toml", help="options from a file")
    parser.add_argument(
        "--set", action="append", default=[], metavar="section.key=value", help="one option"
    )


def run(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from sgcn.analysis import theory
    from sgcn.checkpoint import write_text
    from sgcn.config import make_config
    from sgcn.data.source import open_data
    from sgcn.events import to_json

    configs = []
    for sampler in [None] if args.sampler is None else args.sampler.split(","):
        one = copy.copy(args)
        one.sampler, one.estimator, one.epochs = sampler, None, None
        configs.append(make_config(train.values_of(one)))
    check_place("--out", args.out, (".json",))
    theory.check_draws(args.draws)
    first = configs[0]
    graph, seed = open_data(first.data, **asdict(first.graph)), first.training.seed
    rows = theory.some_rows(graph, first.training.batch_size, seed)
    results: list[dict[str, Any]] = []
    for config in configs:
        found = theory.propagation_error(
            graph, config.sampler, rows, draws=args.draws, seed=seed, depth=config.model.layers
        )
        if not results:
            print(f"{'sampler':<10}{'E|M - Pbar|^2':>22}{'formula':>10}{'|Pbar - P|^2':>24}"
                  f"{'formula':>10}{'rows':>9}")  # fmt: skip
        print(_row(config.sampler.name, found), flush=True)
        results.append({"sampler": config.sampler.name, **found.as_dict()})
    if args.out is not None:
        facts = {"data": first.data, "draws": args.draws, "seed": seed}
        write_text(args.out, to_json(facts | {"results": results}, indent=1) + "\n")


def _row(name: str, found: Any) -> str:
    variance, bias2 = found.formula or (None, None)
    cells = [f"{name:<10}"]
    for mean, formula, width in ((found.variance, variance, 22), (found.bias2, bias2, 24)):
        cells.append(f"{f'{mean.value:.3g} +- {mean.error:.1g}':>{width}}")
        cells.append(f"{'-' if formula is None else f'{formula:.3g}':>10}")
    return "".join(cells) + f"{found.rows:>9}"
