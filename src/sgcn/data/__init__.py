"""Graphs on disk and graphs made to measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgcn.graph import Graph


def load(name: str | Path, *, seed: int = 0, features: bool = True) -> Graph:
    """The graph that ``name`` means to the command line: one of `sgcn data list`, ``synthetic:``
    with options, a saved directory or an ``.npz`` file.

    ``seed`` and ``features`` are for synthetic ones; the others are what they are.
    """
    from sgcn.data.source import is_synthetic, open_as_is
    from sgcn.data.synthetic import parse_synthetic, synthetic

    name = str(name)
    if is_synthetic(name):
        return synthetic(*parse_synthetic(name, seed), features)
    return open_as_is(name)
