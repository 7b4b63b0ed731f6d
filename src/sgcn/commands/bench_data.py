"""Time importing a graph against only reading its files, interleaved in one run.

examples:
  sgcn bench data                                   reddit-like: 1.2 GB in GraphSAINT's layout
  sgcn bench data --graph flickr-like --out bench.json
  sgcn bench data --graph my-graph/ --rounds 5
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--graph",
        default="reddit-like",
        metavar="NAME",
        help="a synthetic graph by name, or a directory that Graph.save wrote; "
        "default: %(default)s",
    )
    for name, default, help in (
        ("--rounds", 3, "each reads and imports once"),
        ("--seed", 0, "of the synthetic graph"),
    ):
        parser.add_argument(
            name, type=int, default=default, metavar="N", help=f"{help}; default: %(default)s"
        )
    parser.add_argument("--out", metavar="FILE.json", help="also write the figures here")


def run(args: argparse.Namespace) -> None:
    from sgcn.bench.data import main

    main(args)
