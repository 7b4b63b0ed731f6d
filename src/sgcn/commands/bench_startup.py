"""Time how soon commands start: --help, the first training step, compiling kernels.

examples:
  sgcn bench startup                               debian, with an empty cache of kernels first
  sgcn bench startup --warm --rounds 5 --out startup.json
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="debian", metavar="DATA", help="default: %(default)s")
    for name, number, help in (
        ("--rounds", 3, "starts to take the median of"),
        ("--threads", 1, "threads of the training"),
    ):
        parser.add_argument(
            name, type=int, default=number, metavar="N", help=f"{help}; default: %(default)s"
        )
    parser.add_argument(
        "--warm", action="store_true", help="leave out the start that compiles all kernels"
    )
    parser.add_argument("--out", metavar="FILE.json", help="also write the figures here")


def run(args: argparse.Namespace) -> None:
    from sgcn.bench.startup import main

    main(args)
