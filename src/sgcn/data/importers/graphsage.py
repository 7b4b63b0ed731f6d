"""GraphSAGE's folders: a graph as node-link JSON, with maps beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter, methodcaller
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.checks import check_ids
from sgcn.data.draft import Draft
from sgcn.data.importers.base import A_NAME, Importer, only
from sgcn.data.importers.networkx import LINKS, ends_of, listed
from sgcn.data.importers.rows import class_map, write_npy
from sgcn.data.importers.splits import split_of
from sgcn.data.readers.fields import Fields, Names
from sgcn.data.readers.files import existing, there
from sgcn.data.readers.jsontext import json_text, whole_numbers
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, one_of, option

_FILES = "a GraphSAGE folder: PREFIX-G.json, PREFIX-id_map.json, PREFIX-class_map.json"
Ints = npt.NDArray[np.int64]
_MARKS = {None: -1, False: 0, True: 1}  # what is said about val and test
#: Ends of links, as they stand in the file, to rows.
Mapping = Callable[[list[Any]], Ints]


@dataclass(frozen=True)
class GraphSage(Importer):
    """Rows are numbered by the id map; features may be missing, as some were published without."""

    name: ClassVar[str] = "graphsage"
    summary: ClassVar[str] = "folder with PREFIX-G.json, -id_map.json, -class_map.json, -feats.npy"

    prefix: str | None = option(None, A_NAME, "what the files' names begin with; none: look")
    links: str = option("auto", one_of("auto", "index", "id"),
                        "ends of links: indices into the list of nodes, or ids")  # fmt: skip
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")
    standardise: bool = option(True, flag(), "features to mean 0, variance 1 of training rows")

    def read(self, source: Path, draft: Draft) -> Graph:
        kind = "files named PREFIX-G.json"
        prefix = self.prefix or only(source, "*-G.json", kind, _FILES, "prefix")
        files = (f"{prefix}-{part}.json" for part in ("G", "id_map", "class_map"))
        graph, id_map, labels = (existing(source, name, _FILES) for name in files)
        row_of = _IdMap(id_map)
        n = len(row_of)
        nodes = _Nodes(graph, row_of)
        split = nodes.split()
        draft.write("split", split)
        draft.write("y", class_map(labels, n, row_of))
        if there(source, f"{prefix}-feats.npy"):
            features = existing(source, f"{prefix}-feats.npy", "features")
            write_npy(draft, features, n, split if self.standardise else None)
        edges = nodes.edges(self.links)
        del nodes, row_of  # so that they are let go when the last edge is read
        return draft.edges(edges, n, directed=self.directed)


class _IdMap:
    """The row of each node id, all as text; a table of bytes, a third of a dict."""

    def __init__(self, path: Path) -> None:
        what = "an object with the row of each node id (id_map.json)"
        self.names = Names()
        parts: list[tuple[Any, Any]] = []
        with json_text(path, what) as text:
            for entries in text.entries():
                given = whole_numbers(list(entries.values()))
                parts.append((self.names.number(Fields.of(list(entries)))[:, 0], given))
        n = len(self.names)
        if n == 0:
            raise SgcnError(f"{path} names no node, expected {what}")
        self.rows: Ints = np.full(n, -1)
        for numbers, given in parts:
            self.rows[numbers] = -1 if given is None else given  # which is then no row
        if not np.array_equal(np.sort(self.rows), np.arange(n)):
            raise SgcnError(
                f"{path} does not give each row from 0 to {n - 1} once, expected {what}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __call__(self, ids: list[str], said: str, expected: str) -> Ints:
        """The rows of ``ids``; the first that is unknown is said."""
        numbers = self.names.number(Fields.of(ids))[:, 0]
        new = numbers >= len(self)
        if new.any():
            raise SgcnError(f"{said} {ids[int(new.argmax())][:40]!r}, expected {expected}")
        return self.rows[numbers]


class _Nodes:
    """The list of nodes of a graph, and the rows that its links join."""

    def __init__(self, path: Path, row_of: _IdMap) -> None:
        self.path, self.row_of = path, row_of
        self.numbers, self.in_order = False, True  # some ids are numbers; all are 0, 1, 2, ...
        rows: list[Ints] = []
        marks: dict[str, list[Any]] = {"val": [], "test": []}
        count = 0
        for nodes in listed(path, ("nodes",)):
            try:
                ids = list(map(itemgetter("id"), nodes))
                said = {key: list(map(methodcaller("get", key), nodes)) for key in marks}
            except (KeyError, TypeError, IndexError, AttributeError):
                raise SgcnError(
                    f"{path} has a node without an id, expected objects with id, val and test"
                ) from None
            for key, values in said.items():
                if not set(map(type, values)) <= {bool, type(None)}:
                    raise SgcnError(f"{path} has a node whose {key} is odd, expected true or false")
                marks[key].append(np.fromiter(map(_MARKS.__getitem__, values), np.int8))
            where = f"{path} has the node"
            rows.append(row_of(list(map(str, ids)), where, "only nodes of the id map"))
            self.numbers |= any(isinstance(node, int) for node in ids)
            self.in_order &= ids == list(range(count, count + len(ids)))
            count += len(ids)
        if count == 0:
            raise SgcnError(f"{path} has no nodes, expected at least one")
        self.rows: Ints = np.concatenate(rows)
        if len(np.unique(self.rows)) < count:
            raise SgcnError(f"{path} lists a node twice, expected each once")
        self.val, self.test = map(np.concatenate, marks.values())

    def split(self) -> npt.NDArray[np.int8]:
        """A node without val and test is in no part."""
        val, test = self.val, self.test
        train = (val < 1) & (test < 1) & ((val == 0) | (test == 0))
        parts = (
            (train, f"{self.path}, where val and test are false,"),
            (val == 1, f"val in {self.path}"),
            (test == 1, f"test in {self.path}"),
        )
        return split_of(len(self.row_of), ((self.rows[chosen], where) for chosen, where in parts))

    def edges(self, kind: str) -> Iterator[tuple[Ints, Ints]]:
        """Rows of sources and targets; ``kind`` says what the ends of links are."""
        mapping = {"index": self._by_index, "id": self._by_id}.get(kind) or self._mapping()
        return self._mapped(mapping)

    def _mapped(self, mapping: Mapping) -> Iterator[tuple[Ints, Ints]]:
        for links in listed(self.path, LINKS):
            if links:
                src, dst = ends_of(links, self.path)
                yield mapping(src), mapping(dst)

    def _mapping(self) -> Mapping:
        """How the ends of links are read.

        Text is an id. A number is an index into the list of nodes where ids are text. Where both
        are numbers, and not the same ones, only one reading may fit all links.
        """
        if not self.numbers:
            return lambda ends: (self._by_id if isinstance(ends[0], str) else self._by_index)(ends)
        if self.in_order:
            return self._by_index
        fits = [self._fits(mapping) for mapping in (self._by_index, self._by_id)]
        if all(fits):
            raise SgcnError(
                f"{self.path} has links that may be ids or indices into the list of nodes, "
                "expected only one to fit: set links=id or links=index"
            )
        return self._by_index if fits[0] else self._by_id

    def _fits(self, mapping: Mapping) -> bool:
        try:
            for _ in self._mapped(mapping):
                pass
        except SgcnError:
            return False
        return True

    def _by_index(self, ends: list[Any]) -> Ints:
        indices = whole_numbers(ends)
        if indices is None:
            raise SgcnError(
                f"{self.path} has a link end that is no whole number, expected an index"
            )
        check_ids(indices, len(self.rows), str(self.path), "as the link end", ends, noun="index")
        chosen: Ints = self.rows[indices]
        return chosen

    def _by_id(self, ends: list[Any]) -> Ints:
        return self.row_of(list(map(str, ends)), f"{self.path} links to", "the id of a node")
