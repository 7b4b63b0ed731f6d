"""Opening a graph to look at it or to make another one of it."""

from __future__ import annotations

from pathlib import Path

from sgcn.data.layout import is_graph
from sgcn.data.source import is_file, open_data
from sgcn.errors import SgcnError
from sgcn.graph import Graph


def open_as_is(name: str, *, verify: bool = False) -> Graph:
    """The graph called ``name``; a saved one keeps the P that it was saved with.

    With ``verify`` the checksums of a saved one are compared.
    """
    path = Path(name)
    if is_file(name) and is_graph(path):
        return Graph.open(path, verify=verify)
    return open_data(name)


def check_new(path: Path) -> Path:
    """``path`` itself, if nothing is there yet: said before the work and not after it."""
    if path.exists():
        raise SgcnError(f"{path} exists already, expected a new name: choose another one")
    return path
