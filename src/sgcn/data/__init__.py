"""Graphs on disk and graphs made to measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sgcn.errors import SgcnError, no_graph
from sgcn.options import known_name

if TYPE_CHECKING:
    from sgcn.graph import Graph


def load(
    name: str | Path, *, scale: str = "raw", seed: int = 0, features: bool = True
) -> Graph:
    """The graph that ``name`` means to the command line: one of `sgcn data list`, ``synthetic:``
    with options, a saved directory or an ``.npz`` file.

    ``scale`` makes its features ready for training: "auto" as `sgcn train` does, or "unit" or
    "standard". ``seed`` and ``features`` are for synthetic graphs; the others are what they are.
    """
    from sgcn.data.scaling import KINDS, Scaling
    from sgcn.data.source import is_synthetic, open_as_is
    from sgcn.data.synthetic import parse_synthetic, synthetic

    known_name("scale", scale, KINDS)
    if hasattr(name, "edge_index"):
        raise no_graph(name)
    if not isinstance(name, str | Path):
        raise SgcnError(f"data.load got a {type(name).__name__}, expected a name or a path")
    name = str(name)
    if is_synthetic(name):
        graph = synthetic(*parse_synthetic(name, seed), features)
    else:
        graph = open_as_is(name)
    return Scaling.of(graph, scale).apply(graph)
