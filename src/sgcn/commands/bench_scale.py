"""Time regular steps and snapshots on graphs of growing size, and measure their memory.

examples:
  sgcn bench scale                                  1e5 to 3e7 edges; needs about 14 GB
  sgcn bench scale --edges 1e5,1e6 --rounds 2       half a minute
  sgcn bench scale --out scale.json --picture scale.png
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    for name, default, metavar, help in (
        ("--edges", "1e5,3e5,1e6,3e6,1e7,3e7", "N[,..]", "undirected edges of the graphs"),
        ("--sampler", "neighbor", "NAME", "of the regular steps"),
        ("--estimator", "anchored++", "NAME", "of the steps"),
    ):
        parser.add_argument(
            name, default=default, metavar=metavar, help=f"{help}; default: %(default)s"
        )
    for name, number, help in (
        ("--width", 64, "of the two graph layers"),
        ("--rounds", 5, "each is a snapshot and five regular steps"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--threads", 1, "threads to measure with"),
        ("--seed", 0, "of graphs, weights and samples"),
    ):
        parser.add_argument(
            name, type=int, default=number, metavar="N", help=f"{help}; default: %(default)s"
        )
    parser.add_argument("--out", metavar="FILE.json", help="also write the figures here")
    parser.add_argument("--picture", metavar="FILE", help="draw them: .png, .svg or .pdf")


def run(args: argparse.Namespace) -> None:
    from sgcn.bench.scale import main

    main(args)
