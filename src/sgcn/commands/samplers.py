"""List every sampler with its options.

examples:
  sgcn samplers                 all of them
  sgcn samplers ladies saint    these two
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgcn.samplers import Sampler


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="samplers to show; default: all")


def run(args: argparse.Namespace) -> None:
    from sgcn.options import known_name
    from sgcn.samplers import SAMPLERS

    for name in args.names:
        known_name("sampler", name, SAMPLERS)
    print("\n\n".join(_page(SAMPLERS[name]) for name in args.names or SAMPLERS))


def _page(kind: type[Sampler]) -> str:
    lines = [f"{kind.name}: {kind.summary}"]
    for option, default, words, help in kind.described():
        shown = str(default).lower() if isinstance(default, bool | None) else default
        lines.append(f"  {f'{option} = {shown}':<26}{help}")
        lines.append(f"  {'':<26}{words}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "  (no options)"])
