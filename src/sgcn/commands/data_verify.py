"""Read all of a graph and check that it is sound.

examples:
  sgcn data verify my-graph/

Prints a line for each check. The first that fails ends the command with exit code 2 and a sentence.
"""

from __future__ import annotations

import argparse

from sgcn.commands import graph_argument as arguments

__all__ = ["arguments", "run"]


def run(args: argparse.Namespace) -> None:
    from sgcn.data.verify import verify

    for check in verify(args.data):
        print(f"{check:<34}ok", flush=True)
