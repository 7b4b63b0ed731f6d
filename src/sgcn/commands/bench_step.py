"""Time training steps against torch, PyG, the published procedure and the machine's limit.

examples:
  sgcn bench step                                       flickr-like, 1 and 2 threads
  sgcn bench step --graph reddit-like --threads 1 --out step.json
  sgcn bench step --sampler neighbor --estimator anchored
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    for name, default, metavar, help in (
        ("--graph", "flickr-like", "NAME[,..]", "names of `sgcn data list` or saved graphs"),
        ("--sampler", "ladies", "NAME", "of the ten regular steps"),
        ("--estimator", "sgcn++", "NAME", "of the snapshot and the ten regular steps"),
    ):
        parser.add_argument(
            name, default=default, metavar=metavar, help=f"{help}; default: {default}"
        )
    for name, number, help in (
        ("--rounds", 5, "each times everyone once"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--seed", 0, "of graphs, weights and samples"),
    ):
        parser.add_argument(
            name, type=int, default=number, metavar="N", help=f"{help}; default: %(default)s"
        )
    parser.add_argument(
        "--threads", metavar="N[,..]", help="numbers of threads to measure with; default: 1,2"
    )
    parser.add_argument("--out", metavar="FILE.json", help="also write the figures here")


def run(args: argparse.Namespace) -> None:
    from sgcn.bench.step import main

    main(args)
