"""Graphs that others saved: one file a format, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgcn.data.draft import Draft
from sgcn.data.importers.base import Importer
from sgcn.data.importers.dgl import Dgl
from sgcn.data.importers.edgelist import EdgeList
from sgcn.data.importers.graphsage import GraphSage
from sgcn.data.importers.graphsaint import GraphSaint
from sgcn.data.importers.networkx import NetworkX
from sgcn.data.importers.ogb import Ogb
from sgcn.data.importers.planetoid import Planetoid
from sgcn.data.importers.pyg import Pyg
from sgcn.data.importers.scipy import Scipy
from sgcn.data.importers.table import NodeTable
from sgcn.graph import Graph
from sgcn.options import build

IMPORTERS: dict[str, type[Importer]] = {
    kind.name: kind
    for kind in (
        GraphSaint,
        GraphSage,
        Planetoid,
        Ogb,
        Pyg,
        Dgl,
        NetworkX,
        Scipy,
        EdgeList,
        NodeTable,
    )
}  # fmt: skip


def import_graph(
    format: str,
    source: str | Path,
    out: str | Path,
    *,
    overwrite: bool = False,
    say: Callable[[str], object] = lambda note: None,
    **options: Any,
) -> Graph:
    """Read ``source``, which is in ``format``, write a graph directory ``out``, and open it.

    Large arrays pass through memory in parts; ``out`` appears complete or not at all.
    ``say`` gets what was found on the way: missing values, say.
    """
    importer: Importer = build("format", IMPORTERS, format, options)
    with Draft.new(Path(out), overwrite=overwrite) as draft:
        draft.finish(importer.read(Path(source), draft))
    for note in draft.notes:
        say(note)
    return Graph.open(out)
