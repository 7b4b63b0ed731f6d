"""Measure bias and variance of sampled gradients along a training run.

examples:
  sgcn variance ppi-like --sampler neighbor,ladies --out variance.json
  sgcn variance my-graph/ --estimators sgcn,anchored --steps 100 --probes 8
  sgcn variance my.npz --set model.widths=64 --picture variance.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from sgcn.commands import shared
from sgcn.errors import SgcnError


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_measuring(parser, {
        "--steps": (200, "steps of each training run"),
        "--probes": (16, "draws at each step that is measured"),
        "--every": (7, "steps from one measurement to the next"),
    })  # fmt: skip
    parser.add_argument(
        "--estimators", default="sgcn,sgcn+,sgcn++,anchored", metavar="NAME[,..]",
        help="default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--picture", type=Path, metavar="FILE.svg", help="draw them here")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(args: argparse.Namespace) -> None:
    from sgcn.analysis import variance
    from sgcn.files import check_target, write_text
    from sgcn.runs.config import make_config
    from sgcn.runs.drawing import FORMATS
    from sgcn.training.events import to_json

    samplers, estimators = shared.names(args.sampler), shared.names(args.estimators)
    configs = [make_config(v) for v in shared.values_of_each(args, samplers, estimators)]
    if args.out is not None:
        check_target("--out", args.out, (".json",))
    if args.picture is not None:
        check_target("--picture", args.picture, FORMATS)
    results: list[dict[str, Any]] = []
    for result in variance.measure(configs, args.steps, args.probes, args.every, quiet=args.quiet):
        if not results:
            print(variance.heading())
        print(variance.row(result), flush=True)
        results.append(result)
    for line in variance.distances(results):
        print(line)
    if args.out is not None:
        facts = {"data": configs[0].data, "steps": args.steps, "probes": args.probes,
                 "every": args.every, "seed": configs[0].training.loop.seed}  # fmt: skip
        write_text(args.out, to_json(facts | {"results": results}, indent=1) + "\n")
    if args.picture is not None:
        variance.draw(results, args.picture)
    failed = [result["failed"] for result in results if "failed" in result]
    if len(failed) == len(results):
        raise SgcnError(failed[0])
