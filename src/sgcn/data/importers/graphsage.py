"""GraphSAGE's folders: a graph as node-link JSON, with maps beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import is_not, itemgetter, methodcaller
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft
from sgcn.data.importers.base import Importer, a_name, folder
from sgcn.data.importers.classmap import class_map
from sgcn.data.importers.features import write_npy
from sgcn.data.importers.nodelink import LINKS, ends_of, listed
from sgcn.data.importers.splits import split_of, whole_numbers
from sgcn.data.readers.files import existing
from sgcn.data.readers.jsontext import json_text
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, one_of, option

_FILES = "a GraphSAGE folder: PREFIX-G.json, PREFIX-id_map.json, PREFIX-class_map.json"
Ints = npt.NDArray[np.int64]
#: Ends of links, as they stand in the file, to rows.
Mapping = Callable[[list[Any]], Ints]


@dataclass(frozen=True)
class GraphSage(Importer):
    """Rows are numbered by the id map; features may be missing, as some were published without."""

    name: ClassVar[str] = "graphsage"
    summary: ClassVar[str] = "folder with PREFIX-G.json, -id_map.json, -class_map.json, -feats.npy"

    prefix: str | None = option(None, a_name(), "what the files' names begin with; none: look")
    links: str = option("auto", one_of("auto", "index", "id"),
                        "ends of links: places in the list of nodes, or ids")  # fmt: skip
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")
    standardise: bool = option(True, flag(), "features to mean 0, variance 1 of training rows")

    def read(self, source: Path, draft: Draft) -> Graph:
        prefix = self.prefix or _prefix(folder(source, _FILES))
        path = {
            part: existing(source, f"{prefix}-{part}.json", _FILES)
            for part in ("G", "id_map", "class_map")
        }
        row_of = _id_map(path["id_map"])
        n = len(row_of)
        ids, split = _nodes(path["G"], row_of)
        draft.write("split", split)
        draft.write("y", class_map(path["class_map"], n, row_of.__getitem__))
        features = f"{prefix}-feats.npy"
        if (source / features).is_symlink() or (source / features).exists():
            train = np.flatnonzero(split == 0) if self.standardise else None
            write_npy(draft, existing(source, features, "features"), n, train)
        mapping = self._mapping(path["G"], ids, row_of)
        parts = ((mapping(src), mapping(dst)) for src, dst in _links(path["G"]))
        return draft.finish(draft.edges(parts, n, directed=self.directed))

    def _mapping(self, path: Path, ids: list[Any], row_of: dict[str, int]) -> Mapping:
        """How the ends of links are read.

        Text is an id. A number is a place in the list of nodes where ids are text. Where both are
        numbers, and not the same ones, only one reading may fit all links.
        """
        rows = np.fromiter(map(row_of.__getitem__, map(str, ids)), np.int64, len(ids))
        by_place = _by_place(path, rows)
        by_id = _by_id(path, row_of)
        if self.links != "auto":
            return by_place if self.links == "index" else by_id
        if not any(isinstance(node, int) for node in ids):
            return lambda ends: by_id(ends) if isinstance(ends[0], str) else by_place(ends)
        if ids == list(range(len(ids))):
            return by_place
        fits = [_fits(path, mapping) for mapping in (by_place, by_id)]
        if all(fits):
            raise SgcnError(
                f"{path} has links that may be ids or places in the list of nodes, expected only "
                "one to fit: set links=id or links=index"
            )
        return by_place if fits[0] else by_id


def _prefix(source: Path) -> str:
    found = sorted(path.name.removesuffix("-G.json") for path in source.glob("*-G.json"))
    if len(found) != 1:
        raise SgcnError(
            f"{source} has {len(found)} files named PREFIX-G.json, expected {_FILES}"
            + (f": set prefix to one of {', '.join(found)}" if found else "")
        )
    return found[0]


def _id_map(path: Path) -> dict[str, int]:
    """Node ids, all as text, to rows: whole numbers from 0 without gaps."""
    what = "an object with the row of each node id (id_map.json)"
    row_of: dict[str, int] = {}
    with json_text(path, what) as text:
        for entries in text.entries():
            row_of.update(entries)
        text.end()
    n = len(row_of)
    if n == 0:
        raise SgcnError(f"{path} names no node, expected {what}")
    rows = whole_numbers(list(row_of.values()))
    if rows is None or not np.array_equal(np.sort(rows), np.arange(n)):
        raise SgcnError(f"{path} does not give each row from 0 to {n - 1} once, expected {what}")
    return row_of


def _nodes(path: Path, row_of: dict[str, int]) -> tuple[list[Any], npt.NDArray[np.int8]]:
    """The ids in the order of the list, and the split; a node without val and test is in none."""
    ids: list[Any] = []
    marks: dict[str, list[Any]] = {"val": [], "test": []}
    for nodes in listed(path, ("nodes",)):
        try:
            ids.extend(map(itemgetter("id"), nodes))
            for key, values in marks.items():
                values.extend(map(methodcaller("get", key), nodes))
        except (KeyError, TypeError, IndexError, AttributeError):
            raise SgcnError(
                f"{path} has a node without an id, expected objects with id, val and test"
            ) from None
    rows = np.fromiter((row_of.get(name, -1) for name in map(str, ids)), np.int64, len(ids))
    if len(rows) == 0:
        raise SgcnError(f"{path} has no nodes, expected at least one")
    if rows.min() < 0:
        name = str(ids[int(rows.argmin())])
        raise SgcnError(f"{path} has the node {name[:40]!r}, expected only nodes of the id map")
    if len(np.unique(rows)) < len(rows):
        raise SgcnError(f"{path} lists a node twice, expected each once")
    return ids, _split(path, rows, marks, len(row_of))


def _split(path: Path, rows: Ints, marks: dict[str, list[Any]], n: int) -> npt.NDArray[np.int8]:
    chosen, said = {}, np.zeros(len(rows), np.bool_)
    for key, values in marks.items():
        if not set(map(type, values)) <= {bool, type(None)}:
            raise SgcnError(f"{path} has a node whose {key} is odd, expected true or false")
        chosen[key] = np.fromiter(map(bool, values), np.bool_, len(rows))
        said |= np.fromiter(map(partial(is_not, None), values), np.bool_, len(rows))
    train = said & ~chosen["val"] & ~chosen["test"]
    return split_of(
        n,
        (rows[train], rows[chosen["val"]], rows[chosen["test"]]),
        (f"{path}, where val and test are false,", f"val in {path}", f"test in {path}"),
    )


def _links(path: Path) -> Iterator[tuple[list[Any], list[Any]]]:
    """Sources and targets, some thousands at a time."""
    for links in listed(path, LINKS):
        if links:
            yield ends_of(links, path)


def _by_place(path: Path, rows: Ints) -> Mapping:
    def mapping(ends: list[Any]) -> Ints:
        places = whole_numbers(ends)
        if places is None:
            raise SgcnError(f"{path} has a link end that is no whole number, expected a place")
        bad = (places < 0) | (places >= len(rows))
        if bad.any():
            raise SgcnError(
                f"{path} links to {places[bad.argmax()]}, expected a place in the list of nodes, "
                f"from 0 to {len(rows) - 1}"
            )
        chosen: Ints = rows[places]
        return chosen

    return mapping


def _by_id(path: Path, row_of: dict[str, int]) -> Mapping:
    def mapping(ends: list[Any]) -> Ints:
        try:
            return np.fromiter(map(row_of.__getitem__, map(str, ends)), np.int64, len(ends))
        except KeyError as error:
            raise SgcnError(
                f"{path} links to {error.args[0][:40]!r}, expected the id of a node"
            ) from None

    return mapping


def _fits(path: Path, mapping: Mapping) -> bool:
    try:
        for ends in _links(path):
            for side in ends:
                mapping(side)
    except SgcnError:
        return False
    return True
