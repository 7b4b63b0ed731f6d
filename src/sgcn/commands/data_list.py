"""List the graphs that a name stands for.

examples:
  sgcn data list
"""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(args: argparse.Namespace) -> None:
    from sgcn.data.bundled import BUNDLED
    from sgcn.data.synthetic import NAMED

    print(f"{'name':<18}{'nodes':>10}{'edges':>12}{'features':>10}{'classes':>9}")
    graphs: dict[str, Any] = {**BUNDLED, **NAMED}
    for name, facts in graphs.items():
        kind = "multi-label" if facts.multi_label else "one class a node"
        about = BUNDLED[name].about if name in BUNDLED else "synthetic"
        print(
            f"{name:<18}{facts.nodes:>10,}{facts.edges:>12,}{facts.features:>10}{facts.classes:>9}"
            f"  {kind:<18}{about}"
        )
