"""List the graphs that a name stands for.

examples:
  sgcn data list
  sgcn data info wordnet                              a name
  sgcn train synthetic:flickr-like,noise=0.3,seed=1   one that is changed a little
  sgcn data info synthetic:nodes=5000,degree=12       one of your own; docs/synthetic.md has all
"""

from __future__ import annotations

import argparse
from typing import Any

_SHAPES = {
    "ppi-like": "as large as PPI of GraphSAINT",
    "ppi-large-like": "as large as PPI of GraphSAGE",
    "flickr-like": "as large as Flickr of GraphSAINT",
    "reddit-like": "as large as Reddit of GraphSAGE",
    "yelp-like": "as large as Yelp of GraphSAINT",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(args: argparse.Namespace) -> None:
    from dataclasses import fields

    from sgcn.data.bundled import BUNDLED
    from sgcn.data.synthetic import NAMED, Synthetic

    print(f"{'name':<18}{'nodes':>10}{'edges':>12}{'features':>10}{'classes':>9}")
    graphs: dict[str, Any] = {**BUNDLED, **NAMED}
    for name, facts in graphs.items():
        kind = "multi-label" if facts.multi_label else "one class a node"
        about = BUNDLED[name].about if name in BUNDLED else f"synthetic, {_SHAPES[name]}"
        print(
            f"{name:<18}{facts.nodes:>10,}{facts.edges:>12,}{facts.features:>10}{facts.classes:>9}"
            f"  {kind:<18}{about}"
        )
    options = ", ".join(field.name for field in fields(Synthetic))
    print(
        f"\nsynthetic:NAME,OPTION=VALUE,... changes one of the synthetic graphs, and "
        f"synthetic:OPTION=VALUE,... makes a new one; options: {options}, seed."
        "\nA graph directory and an .npz file are named by their paths; sgcn data import and "
        "sgcn data download make them."
    )
