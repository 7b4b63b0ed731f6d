"""Read all of a graph and check that it is sound.

examples:
  sgcn data verify my-graph/

Prints a line for each check. The first that fails ends the command with exit code 2 and a sentence.
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="NAME", help="a name (see `sgcn data list`), graph directory or .npz file"
    )


def run(args: argparse.Namespace) -> None:
    from sgcn.data.verify import verify

    for check in verify(args.data):
        print(f"{check:<34}ok", flush=True)
