"""Folders of the Open Graph Benchmark's node property prediction: ogbn-arxiv, -products, ..."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.feature_rows import single
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


@dataclass(frozen=True)
class Ogb(Importer):
    """Both layouts: tables (``raw/edge.csv.gz``) and arrays (``raw/data.npz``)."""

    name: ClassVar[str] = "ogb"
    summary: ClassVar[str] = "folder of ogbn-...: raw/*.csv.gz or raw/*.npz, split/NAME/*.csv.gz"

    split: str | None = option(None, A_NAME, "which folder of split; none: the only one")
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")

    def read(self, source: Path, draft: Draft) -> Graph:
        folder(source, _FILES)
        binary = (source / "raw" / "data.npz").exists()
        layout = _Arrays(source, self.limit) if binary else _Tables(source, self.limit)
        paths = [self._split_file(source, part) for part in ("train", "valid", "test")]
        n = layout.nodes()
        with layout.labels() as (width, parts, where):
            one = width == 1
            draft.stream(
                "y",
                (n,) if one else (n, width),
                np.int64 if one else np.uint8,
                _labels(counted(parts, n, where), where),
            )
        # Only now is n believed: there is a label for each node.
        ids = [_column(path, f"a node id in each line ({path.name})", self.limit) for path in paths]
        draft.write("split", split_of(n, ids, map(str, paths)))
        with layout.features() as (width, parts, where):
            if width:
                rows = single(counted(parts, n, where), where)
                draft.stream("x", (n, width), np.float32, rows)
        edges = checked_edges(layout.edges(), n, str(layout.edge_file))
        return draft.edges(edges, n, directed=self.directed)

    def _split_file(self, source: Path, part: str) -> Path:
        within = source / "split"
        found = (path.name for path in within.glob("*/"))
        what = "one with train, valid and test"
        name = self.split or only(found, within, "folders", what, "split")
        return _packed(source, f"split/{name}/{part}.csv")


#: Columns (0 where there is no such file), rows in parts, and what to call their source.
Rows = Iterator[tuple[int, Iterable[Any], str]]


class _Tables:
    """``raw/*.csv.gz``; the tables may be unpacked."""

    def __init__(self, source: Path, limit: int) -> None:
        self.source, self.limit = source, limit
        self.edge_file = _packed(source, "raw/edge.csv")

    def nodes(self) -> int:
        return _one(_packed(self.source, "raw/num-node-list.csv"), 1, self.limit)

    def edges(self) -> Iterator[tuple[Any, Any]]:
        count = _one(_packed(self.source, "raw/num-edge-list.csv"), 0, self.limit)
        what = "an edge in each line, source and target (edge.csv)"
        parts = _table(self.edge_file, what, self.limit, 2).all_numbers(integer=True)
        for part in counted(parts, count, str(self.edge_file)):
            yield part[:, 0], part[:, 1]

    @contextmanager
    def labels(self) -> Rows:
        yield self._rows(_packed(self.source, "raw/node-label.csv"), "labels")

    @contextmanager
    def features(self) -> Rows:
        if not any(_there(self.source, f"raw/node-feat.csv{end}") for end in ("", ".gz")):
            yield 0, (), ""
            return
        yield self._rows(_packed(self.source, "raw/node-feat.csv"), "features")

    def _rows(self, path: Path, noun: str) -> tuple[int, Iterable[Any], str]:
        table = _table(path, f"the {noun} of a node in each line ({path.name})", self.limit)
        return table.width, table.all_numbers(), str(path)


class _Arrays:
    """``raw/data.npz`` and ``raw/node-label.npz``."""

    def __init__(self, source: Path, limit: int) -> None:
        self.limit = limit
        self.edge_file = existing(source, "raw/data.npz", _FILES)
        self.label_file = existing(source, "raw/node-label.npz", _FILES)

    def nodes(self) -> int:
        with self._data() as file:
            return _single(file.all("num_nodes_list"), 1, self.edge_file)

    def edges(self) -> Iterator[tuple[Any, Any]]:
        with self._data() as file:
            count = _single(file.all("num_edges_list"), 0, self.edge_file)
            seen = 0
            for src, dst in file.pairs("edge_index"):
                seen += len(src)
                yield src, dst
        if seen != count:
            raise SgcnError(f"{self.edge_file} has {seen} edges, expected {count}")

    @contextmanager
    def labels(self) -> Rows:
        what = "labels (node-label.npz)"
        with (
            Npz(self.label_file, what, self.limit) as file,
            file.npy("node_label", "biuf", 2) as array,
        ):
            yield array.shape[1], array.parts(), f"node_label in {self.label_file}"

    @contextmanager
    def features(self) -> Rows:
        with self._data() as file:
            if "node_feat" not in file:
                yield 0, (), ""
                return
            with file.npy("node_feat", "iuf", 2) as array:
                yield array.shape[1], array.parts(), f"node_feat in {self.edge_file}"

    def _data(self) -> Npz:
        return Npz(self.edge_file, "edge_index, num_nodes_list and more (data.npz)", self.limit)


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


def _one(path: Path, least: int, limit: int) -> int:
    return _single(_column(path, f"one number ({path.name})", limit), least, path)


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
