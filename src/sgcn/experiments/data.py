"""Which graph an experiment runs on, and whether it is the paper's."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgcn.data.bundled import BUNDLED
from sgcn.data.source import is_file, is_synthetic
from sgcn.data.synthetic import parse_synthetic
from sgcn.errors import SgcnError
from sgcn.options import nearest
from sgcn.store import HEADER, is_graph

PAPER_DATA = ("ppi", "ppi-large", "flickr", "reddit", "yelp")

#: The paper's graphs with labels that were rebuilt from gene annotations of 2016.
_REBUILT = {f"{name}-go2016": name for name in ("ppi", "ppi-large")}

#: What --stand-in takes for a dataset that is not there: the same shape, smaller for `quick`.
STAND_INS = {
    "paper": {name: f"{name}-like" for name in PAPER_DATA},
    "quick": {name: f"synthetic:{name}-like,nodes=20000" for name in PAPER_DATA}
    | {"ppi": "ppi-like"},
}


@functools.cache
def paper() -> dict[str, Any]:
    """The numbers of the paper's tables."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "paper.json").read_text())
    return found


@dataclass(frozen=True)
class Dataset:
    """A graph by its name or path, and the dataset of the paper that it is or stands for."""

    source: str
    paper: str | None = None
    same: bool = False
    replaced: bool = False

    @property
    def label(self) -> str:
        name = Path(self.source).name if "/" in self.source else self.source
        return name.removeprefix("synthetic:")

    @property
    def note(self) -> str:
        """How it compares with the paper, for every table and figure."""
        if self.same:
            return "the paper's dataset"
        if Path(self.source).stem in _REBUILT:
            return f"labels of 2016: the paper's {self.paper}, but not its labels"
        if self.replaced:
            return f"stand-in for {self.paper}: not the same labels/graph"
        if self.paper:
            return f"not the paper's {self.paper}: not the same labels/graph"
        return "not in the paper"

    @property
    def title(self) -> str:
        return self.label if self.same else f"{self.label} ({self.note.partition(':')[0]})"


def split_names(text: str) -> list[str]:
    """Names separated by commas; those inside ``synthetic:nodes=9,degree=3`` belong to it."""
    names: list[str] = []
    for part in text.split(","):
        if "=" in part and ":" not in part and names and names[-1].startswith("synthetic:"):
            names[-1] += f",{part}"
        else:
            names.append(part.strip())
    return names


def find(names: Sequence[str], budget: str, stand_in: bool) -> list[Dataset]:
    """The datasets called ``names``; those of the paper are graph directories of their names."""
    found = [_find(name, budget, stand_in) for name in dict.fromkeys(names)]
    labels = [one.label for one in found]
    for label in labels:
        if labels.count(label) > 1:
            raise SgcnError(f"two graphs are called {label}, expected one of each name")
    return found


def _find(name: str, budget: str, stand_in: bool) -> Dataset:
    if name in PAPER_DATA:
        if is_graph(Path(name)):
            wanted = paper()["datasets"][name]["nodes"]
            found = json.loads((Path(name) / HEADER).read_text()).get("nodes")
            if found != wanted:
                raise SgcnError(
                    f"{name} has {found} nodes, expected the {wanted:,} of the paper's graph: give "
                    f"another graph by a path, as in ./{name}"
                )
            return Dataset(str(Path(name).resolve()), name, same=True)
        if stand_in:
            return Dataset(STAND_INS[budget][name], name, replaced=True)
        raise SgcnError(
            f"{name} is not here, expected a graph directory of that name (sgcn data download "
            f"{name} --import): --stand-in takes {STAND_INS[budget][name]} for it, --data another"
        )
    if name in BUNDLED:
        return Dataset(name)
    if is_synthetic(name):
        parse_synthetic(name)
        shape = name.removeprefix("synthetic:").partition(",")[0]
        known = shape.removesuffix("-like")
        return Dataset(name, known if known in PAPER_DATA else None, replaced=known in PAPER_DATA)
    path = Path(name)
    if not (path.suffix == ".npz" and path.is_file()) and not is_graph(path):
        known_names = [*PAPER_DATA, *BUNDLED]
        raise SgcnError(
            f"data is {name!r}, expected one of {', '.join(known_names)}, synthetic:OPTIONS, a "
            f"graph directory or an .npz file that exists{nearest(name, known_names)}"
        )
    stem = _REBUILT.get(path.stem, path.stem)
    return Dataset(str(path.resolve()), stem if stem in PAPER_DATA else None)


def fingerprint(source: str) -> str:
    """What a cached run depends on: the content of a file, or else the name."""
    if not is_file(source):
        return source
    path = Path(source)
    if is_graph(path):  # the header has the checksums of all arrays
        path = path / HEADER
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
