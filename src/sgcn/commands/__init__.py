"""One module a command of the command line; `sgcn.cli.COMMANDS` is the table of them.

A command module has a docstring (first line: the summary; the rest: examples), a function
``arguments(parser)`` and a function ``run(args)``. It imports what it needs inside ``run``: every
module here is loaded for ``sgcn --help``, which must not wait for numba and torch.
"""

from __future__ import annotations

import argparse


def graph_argument(parser: argparse.ArgumentParser) -> None:
    """The name of a graph, for commands that take any."""
    parser.add_argument(
        "data", metavar="NAME", help="a name (see `sgcn data list`), graph directory or .npz file"
    )
