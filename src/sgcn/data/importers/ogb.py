"""Folders of the Open Graph Benchmark's node property prediction: ogbn-arxiv, -products, ..."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.features import single
from sgcn.data.importers.base import A_NAME, Importer, only
from sgcn.data.importers.rows import Edges, checked_edges, counted, labels_of
from sgcn.data.importers.splits import split_of
from sgcn.data.readers.arrays import Npz
from sgcn.data.readers.files import existing, there
from sgcn.data.readers.tables import Text, numbers_of
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_FILES = "an OGB folder: raw/edge.csv.gz or raw/data.npz, and split/NAME/train.csv.gz"

#: Columns, rows in parts, and what to call their source.
Rows = tuple[int, Iterable[Any], str]
#: The number of nodes, edges, labels and features; nothing but counts is read yet.
Given = tuple[int, Edges, Rows, Rows | None]


@dataclass(frozen=True)
class Ogb(Importer):
    """Both layouts: tables (``raw/edge.csv.gz``) and arrays (``raw/data.npz``)."""

    name: ClassVar[str] = "ogb"
    summary: ClassVar[str] = "folder of ogbn-...: raw/*.csv.gz or raw/*.npz, split/NAME/*.csv.gz"

    split: str | None = option(None, A_NAME, "which folder of split; none: the only one")
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")

    def read(self, source: Path, draft: Draft) -> Graph:
        layout = _arrays if (source / "raw" / "data.npz").exists() else _tables
        with ExitStack() as files:
            n, edges, (width, parts, where), features = layout(source, self.limit, files)
            paths = [self._split_file(source, part) for part in ("train", "valid", "test")]
            kind, shape = (np.int64, (n,)) if width == 1 else (np.uint8, (n, width))
            draft.stream("y", shape, kind, _labels(counted(parts, n, where), where))
            # Only now is n believed: there is a label for each node.
            what = "a node id in each line ({})"
            ids = [numbers_of(path, what.format(path.name), self.limit) for path in paths]
            draft.write("split", split_of(n, zip(ids, map(str, paths), strict=True)))
            if features is not None:
                width, parts, where = features
                rows = single(counted(parts, n, where), where)
                draft.stream("x", (n, width), np.float32, rows)
            return draft.edges(edges, n, directed=self.directed)

    def _split_file(self, source: Path, part: str) -> Path:
        what = "one with train, valid and test"
        name = self.split or only(source / "split", "*/", "folders", what, "split")
        return _packed(source, f"split/{name}/{part}.csv")


def _tables(source: Path, limit: int, files: ExitStack) -> Given:
    """``raw/*.csv.gz``; the tables may be unpacked."""

    def count(thing: str, least: int) -> int:
        path = _packed(source, f"raw/num-{thing}-list.csv")
        return _single(numbers_of(path, f"one number ({path.name})", limit), least, path)

    def rows(thing: str, noun: str) -> Rows:
        path = _packed(source, f"raw/node-{thing}.csv")
        what = f"the {noun} of a node in each line ({path.name})"
        table = Text(path, what, limit, comments="")
        return table.width, table.all_numbers(), str(path)

    n, path = count("node", 1), _packed(source, "raw/edge.csv")
    what = "an edge in each line, source and target (edge.csv)"
    pairs = Text(path, what, limit, width=2, comments="").all_numbers(integer=True)
    pairs = counted(pairs, count("edge", 0), str(path))
    edges = checked_edges((tuple(part.T) for part in pairs), n, str(path))
    bare = not any(there(source, f"raw/node-feat.csv{end}") for end in ("", ".gz"))
    return n, edges, rows("label", "labels"), None if bare else rows("feat", "features")


def _arrays(source: Path, limit: int, files: ExitStack) -> Given:
    """``raw/data.npz`` and ``raw/node-label.npz``."""
    path = existing(source, "raw/data.npz", _FILES)
    label_file = existing(source, "raw/node-label.npz", _FILES)
    what = "edge_index, num_nodes_list and more (data.npz)"
    data = files.enter_context(Npz(path, what, limit))
    labels = files.enter_context(Npz(label_file, "labels (node-label.npz)", limit))

    def rows(file: Npz, key: str, kinds: str) -> Rows:
        array = file.npy(key, kinds, 2)
        return array.shape[1], array.parts(), f"{key} in {file.path}"

    n, count = (
        _single(data.all(f"num_{thing}_list"), least, path)
        for thing, least in (("nodes", 1), ("edges", 0))
    )
    found, pairs = data.pairs("edge_index")
    if found != count:
        raise SgcnError(f"{path} has {found} edges, expected {count}")
    features = rows(data, "node_feat", "iuf") if "node_feat" in data else None
    return n, checked_edges(pairs, n, str(path)), rows(labels, "node_label", "biuf"), features


def _packed(source: Path, name: str) -> Path:
    """The file ``name.gz``, or ``name`` where only that is there."""
    plain = there(source, name) and not there(source, f"{name}.gz")
    return existing(source, name if plain else f"{name}.gz", _FILES)


def _single(numbers: Any, least: int, path: Path) -> int:
    """The number of nodes or edges of the only graph."""
    if len(numbers) != 1:
        raise SgcnError(f"{path} counts {len(numbers)} graphs, expected one: node property data")
    if not least <= numbers[0] < 2**40:
        raise SgcnError(f"{path} counts {numbers[0]}, expected a number >= {least}")
    return int(numbers[0])


def _labels(parts: Iterable[Any], where: str) -> Iterator[Any]:
    """Classes (-1 for nan) or 0/1 rows; rows are counted from the part's first in messages."""
    before = 0
    for part in parts:
        rows = f", counted from row {before} on," if before else ""
        yield labels_of(part, len(part), f"{where}{rows}")
        before += len(part)
