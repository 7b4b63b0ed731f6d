"""Graphs on disk and graphs made to measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sgcn.errors import SgcnError

if TYPE_CHECKING:
    from sgcn.graph import Graph


def load(name: str, *, seed: int = 0, features: bool = True) -> Graph:
    """The graph that ``name`` means: a bundled one, a synthetic one or a saved directory.

    ``synthetic:`` may stand before the name of a synthetic one. ``seed`` and ``features`` are for
    those; the others are what they are.
    """
    from sgcn.data.bundled import BUNDLED, bundled
    from sgcn.data.store import open_graph
    from sgcn.data.synthetic import NAMED, synthetic
    from sgcn.options import nearest

    prefix, _, rest = name.rpartition(":")
    if rest in NAMED and prefix in ("", "synthetic"):
        return synthetic(rest, seed, features)
    if name in BUNDLED:
        return bundled(name)
    if not Path(name).exists():
        names = [*BUNDLED, *NAMED]
        raise SgcnError(
            f"graph is {name!r}, expected a directory that Graph.save wrote, or one of "
            f"{', '.join(names)}{nearest(rest, names)}"
        )
    return open_graph(Path(name))
