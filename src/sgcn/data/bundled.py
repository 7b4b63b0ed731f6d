"""The graphs that ship inside the package: real ones, small enough to be there on any machine."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgcn.options import known_name

if TYPE_CHECKING:
    from sgcn.graph import Graph

FILES = Path(__file__).parent / "box"


@dataclass(frozen=True)
class Bundled:
    """Short facts of a graph; the header of its file has all of them."""

    file: str
    nodes: int
    edges: int
    features: int
    classes: int
    about: str
    target: str = ""
    multi_label: bool = False


#: The graphs by name. `debian` and `debian-tags` are two targets in one file.
BUNDLED: dict[str, Bundled] = {
    "debian": Bundled(
        "debian.npz", 63_436, 318_970, 500, 57, "packages of Debian 12, their sections"
    ),
    "debian-tags": Bundled(
        "debian.npz", 63_436, 318_970, 500, 73, "packages of Debian 12, their tags",
        target="_tags", multi_label=True,
    ),
    "wordnet": Bundled(
        "wordnet.npz", 117_659, 183_789, 500, 45, "synsets of WordNet 3.0, their lexical fields"
    ),
}  # fmt: skip


def bundled(name: str, **options: Any) -> Graph:
    """The graph ``name``; ``options`` are those of P (normalization, self_loops)."""
    from sgcn.data.source import read_npz

    facts = BUNDLED[known_name("bundled graph", name, BUNDLED)]
    return read_npz(FILES / facts.file, facts.target, **options)


def header(name: str) -> dict[str, Any]:
    """Where the file of ``name`` is from: origin, licence, checksums, options, counts, names."""
    import numpy as np

    facts = BUNDLED[known_name("bundled graph", name, BUNDLED)]
    with np.load(FILES / facts.file, allow_pickle=False) as file:
        found: dict[str, Any] = json.loads(file["header"].tobytes())
    return found
