"""Folders of the Open Graph Benchmark's node property prediction: ogbn-arxiv, -products, ..."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.features import single
from sgcn.data.importers.base import A_NAME, Importer, folder, only
from sgcn.data.importers.rows import checked_edges, counted, labels_of
from sgcn.data.importers.splits import split_of
from sgcn.data.readers.arrays import Npz
from sgcn.data.readers.files import existing
from sgcn.data.readers.tables import Text
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_FILES = "an OGB folder: raw/edge.csv.gz or raw/data.npz, and split/NAME/train.csv.gz"


#: Columns, rows in parts, and what to call their source.
Rows = tuple[int, Iterable[Any], str]


@dataclass(frozen=True)
class Ogb(Importer):
    """Both layouts: tables (``raw/edge.csv.gz``) and arrays (``raw/data.npz``)."""

    name: ClassVar[str] = "ogb"
    summary: ClassVar[str] = "folder of ogbn-...: raw/*.csv.gz or raw/*.npz, split/NAME/*.csv.gz"

    split: str | None = option(None, A_NAME, "which folder of split; none: the only one")
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")

    def read(self, source: Path, draft: Draft) -> Graph:
        folder(source, _FILES)
        layout = _arrays if (source / "raw" / "data.npz").exists() else _tables
        with ExitStack() as files:
            given = layout(source, self.limit, files)
            paths = [self._split_file(source, part) for part in ("train", "valid", "test")]
            n, (width, parts, where) = given.nodes, given.labels
            kind, shape = (np.int64, (n,)) if width == 1 else (np.uint8, (n, width))
            draft.stream("y", shape, kind, _labels(counted(parts, n, where), where))
            # Only now is n believed: there is a label for each node.
            what = "a node id in each line ({})"
            ids = [_column(path, what.format(path.name), self.limit) for path in paths]
            draft.write("split", split_of(n, ids, map(str, paths)))
            if given.features is not None:
                width, parts, where = given.features
                rows = single(counted(parts, n, where), where)
                draft.stream("x", (n, width), np.float32, rows)
            edges = checked_edges(given.edges, n, str(given.edge_file))
            return draft.edges(edges, n, directed=self.directed)

    def _split_file(self, source: Path, part: str) -> Path:
        within = source / "split"
        found = (path.name for path in within.glob("*/"))
        what = "one with train, valid and test"
        name = self.split or only(found, within, "folders", what, "split")
        return _packed(source, f"split/{name}/{part}.csv")


class _Given(NamedTuple):
    """What a folder has, in either layout; nothing but counts is read yet."""

    nodes: int
    edge_file: Path
    edges: Iterator[tuple[Any, Any]]
    labels: Rows
    features: Rows | None


def _tables(source: Path, limit: int, files: ExitStack) -> _Given:
    """``raw/*.csv.gz``; the tables may be unpacked."""

    def count(name: str, least: int) -> int:
        path = _packed(source, name)
        return _single(_column(path, f"one number ({path.name})", limit), least, path)

    def rows(name: str, noun: str) -> Rows:
        path = _packed(source, name)
        table = _table(path, f"the {noun} of a node in each line ({path.name})", limit)
        return table.width, table.all_numbers(), str(path)

    path = _packed(source, "raw/edge.csv")
    what = "an edge in each line, source and target (edge.csv)"
    pairs = _table(path, what, limit, 2).all_numbers(integer=True)
    pairs = counted(pairs, count("raw/num-edge-list.csv", 0), str(path))
    bare = not any(_there(source, f"raw/node-feat.csv{end}") for end in ("", ".gz"))
    return _Given(
        count("raw/num-node-list.csv", 1),
        path,
        ((part[:, 0], part[:, 1]) for part in pairs),
        rows("raw/node-label.csv", "labels"),
        None if bare else rows("raw/node-feat.csv", "features"),
    )


def _arrays(source: Path, limit: int, files: ExitStack) -> _Given:
    """``raw/data.npz`` and ``raw/node-label.npz``."""
    path = existing(source, "raw/data.npz", _FILES)
    label_file = existing(source, "raw/node-label.npz", _FILES)
    what = "edge_index, num_nodes_list and more (data.npz)"
    data = files.enter_context(Npz(path, what, limit))
    labels = files.enter_context(Npz(label_file, "labels (node-label.npz)", limit))

    def rows(file: Npz, key: str, kinds: str) -> Rows:
        array = files.enter_context(file.npy(key, kinds, 2))
        return array.shape[1], array.parts(), f"{key} in {file.path}"

    nodes, count = (
        _single(data.all(f"num_{thing}_list"), least, path)
        for thing, least in (("nodes", 1), ("edges", 0))
    )
    found, edges = files.enter_context(data.pairs("edge_index"))
    if found != count:
        raise SgcnError(f"{path} has {found} edges, expected {count}")
    return _Given(
        nodes,
        path,
        edges,
        rows(labels, "node_label", "biuf"),
        rows(data, "node_feat", "iuf") if "node_feat" in data else None,
    )


def _there(source: Path, name: str) -> bool:
    return (source / name).exists() or (source / name).is_symlink()


def _packed(source: Path, name: str) -> Path:
    """The file ``name.gz``, or ``name`` where only that is there."""
    plain = _there(source, name) and not _there(source, f"{name}.gz")
    return existing(source, name if plain else f"{name}.gz", _FILES)


def _table(path: Path, what: str, limit: int, width: int | None = None) -> Text:
    return Text(path, what, limit, width=width, comments="")


def _column(path: Path, what: str, limit: int) -> Any:
    parts = [part[:, 0] for part in _table(path, what, limit, 1).all_numbers(integer=True)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


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
