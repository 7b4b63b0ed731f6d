"""List the graphs that a name stands for.

examples:
  sgcn data list
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(args: argparse.Namespace) -> None:
    from sgcn.data.synthetic import NAMED

    print(f"{'name':<18}{'nodes':>10}{'edges':>12}{'features':>10}{'classes':>9}")
    for name, spec in NAMED.items():
        print(
            f"{name:<18}{spec.nodes:>10,}{spec.edges:>12,}{spec.features:>10}{spec.classes:>9}"
            f"{'  multi-label' if spec.multi_label else ''}"
        )
