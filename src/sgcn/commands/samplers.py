"""List every sampler with its options.

examples:
  sgcn samplers                 all of them
  sgcn samplers ladies saint    these two
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="samplers to show; default: all")


def run(args: argparse.Namespace) -> None:
    from sgcn.options import known_name, page
    from sgcn.samplers import SAMPLERS

    chosen = [SAMPLERS[known_name("sampler", name, SAMPLERS)] for name in args.names or SAMPLERS]
    print("\n\n".join(page(kind.name, kind.summary, kind) for kind in chosen))
