"""Features, labels and split in files of their own, for formats that hold edges only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.checks import check_ids, check_rows
from sgcn.data.draft import Draft
from sgcn.data.features import single
from sgcn.data.importers.base import Importer, text_or_none
from sgcn.data.importers.rows import counted, labels_file, labels_of, write_features_file
from sgcn.data.importers.splits import part_of, split_file, split_of_numbers
from sgcn.data.readers.arrays import npy
from sgcn.data.readers.fields import Names
from sgcn.data.readers.files import checked
from sgcn.data.readers.tables import Parquet, Table, Text
from sgcn.errors import SgcnError
from sgcn.options import Rule, flag, integer, option, optional

_TABLES = (".csv", ".tsv", ".txt", ".gz", ".parquet")
A_FILE = text_or_none("a file")
_CLASSES = "number the classes from 0 on first"
_EXACT = 2**53  # from here on float64 has gaps between whole numbers


def a_column() -> Rule:
    return Rule(
        "the name of a column, or its number from 0",
        lambda v: (isinstance(v, str) and v != "") or integer(0).test(v),
    )


def _a_delimiter() -> Rule:
    words = ("auto", "tab", "blank")
    return Rule(
        "one character, or one of " + ", ".join(words),
        lambda v: isinstance(v, str) and (v in words or (len(v) == 1 and v.isascii())),
    )


class Ids:
    """How nodes are called in the files: by their numbers, or by names, numbered as they come.

    ``kind``: numbers, compact (numbers with gaps are names) or text.
    """

    def __init__(self, kind: str = "numbers") -> None:
        self.kind = kind
        self._names = Names()
        self.names = None if kind == "numbers" else self._names

    def columns(self, table: Table, chosen: list[int], others: list[int]) -> Iterator[list[Any]]:
        """Node numbers of the chosen columns, and the numbers of the other ones.

        New names are numbered row by row, wherever parts are cut.
        """
        if self.kind == "text":
            ends = len(chosen)
            for fields in table.fields([*chosen, *others]):
                named = self._names.number(fields.columns(range(ends)))
                rest = fields.columns(range(ends, ends + len(others)))
                yield [*named.T, *table.values(rest, others).T]
            return
        exact = table.width == len(chosen)  # beside other numbers, ids may be written as reals
        for ids, values in table.numbers(chosen, others, integer=exact):
            ids = _integers(ids, str(table.path))
            numbers = ids if self.names is None else self.names.number_ints(ids)
            yield [*numbers.T, *values.T]

    def called(self, where: str) -> list[Any]:
        """What the files call node 0, 1, 2, ..."""
        return self._names.texts(where) if self.kind == "text" else self._names.ints().tolist()


def _integers(values: Any, where: str) -> Any:
    """Ids that may have been read as reals."""
    if values.dtype.kind in "iu":
        return values
    bad = ~(np.abs(values) < _EXACT) | (values != np.floor(values))
    if bad.any():
        raise SgcnError(
            f"{where} has the id {values[bad][0]:g}, expected whole numbers: set ids=text for names"
        )
    return values.astype(np.int64)


@dataclass(frozen=True)
class Tabular(Importer):
    """What reads tables of fields."""

    #: What to do about names where numbers of nodes should be.
    names_hint: ClassVar[str] = ""

    delimiter: str = option("auto", _a_delimiter(), "between fields; auto goes by the suffix")
    header: bool | None = option(None, optional(flag()), "the first row names columns; none: look")

    def table(self, path: Path, what: str, **options: Any) -> Table:
        """The table in ``path``; its suffix says what it is."""
        if checked(path, what).suffix == ".parquet":
            return Parquet(path, what, self.limit)
        options = {"delimiter": self.delimiter, "header": self.header} | options
        return Text(path, what, self.limit, **options)


@dataclass(frozen=True)
class Beside(Tabular):
    """Tables have a row a node: row k of node k, or as ``id_column`` says."""

    features: str | None = option(None, A_FILE, "features: .npy, .npz or a table")
    labels: str | None = option(None, A_FILE, "labels: .npy or a table")
    split: str | None = option(None, A_FILE, "train, valid, test: .npy, .npz, .json or a table")
    id_column: int | str | None = option(
        None, optional(a_column()), "column of the tables with ids; none: row k is of node k"
    )

    def tables(self) -> dict[str, Table]:
        """The tables among the files, by what they hold."""
        found = {}
        for key in ("features", "labels", "split"):
            path = Path(getattr(self, key) or "")
            if path.suffix in _TABLES:
                found[key] = table = self.table(path, f"{key} of nodes")
                table.hints = {None: _CLASSES} if key == "labels" else {}
                if self.id_column is not None:
                    table.hints = {**table.hints, self._key(table): self.names_hint}
        return found

    def rows(self) -> int | None:
        """How many nodes the features or the labels are of, where row k is of node k."""
        tables = self.tables()
        for key in ("features", "labels"):
            path = getattr(self, key)
            if key in tables and self.id_column is None:
                return tables[key].rows()
            if path and Path(path).suffix == ".npy":
                with npy(Path(path), f"{key} of nodes", "biuf", 1, 2) as array:
                    return int(array.shape[0])
        return None

    def rows_of(self, table: Table, ids: Ids) -> Any:
        """Which node each row is of; None where row k is of node k. Names are in a column."""
        if self.id_column is None and ids.kind == "numbers":
            return None
        parts = ids.columns(table, [self._key(table)], [])
        return np.concatenate([part[0] for part in parts])

    def write_rows(self, draft: Draft, n: int, ids: Ids) -> None:
        """Features, labels and split of ``n`` nodes, as far as there are any."""
        tables = self.tables()
        for key in ("features", "labels", "split"):
            path = getattr(self, key)
            if ids.names is not None and path and key not in tables:
                raise SgcnError(
                    f"{path} does not say which node is which, expected a table with their ids "
                    f"for {key}: nodes are numbered as they appear"
                )
        if "features" in tables:
            self._features(draft, tables["features"], n, ids)
        elif self.features:
            write_features_file(draft, Path(self.features), n, self.limit)
        if "labels" in tables:
            draft.write("y", self._labels(tables["labels"], n, ids))
        elif self.labels:
            draft.write("y", labels_file(Path(self.labels), n))
        if "split" in tables:
            draft.write("split", self._split(tables["split"], n, ids))
        elif self.split:
            draft.write("split", split_file(Path(self.split), n, self.limit))

    # -- tables ---------------------------------------------------------------------------------

    def _key(self, table: Table) -> int:
        return table.index_of(0 if self.id_column is None else self.id_column)

    def _rows_and_columns(self, table: Table, n: int, ids: Ids) -> tuple[Any, list[int]]:
        """Which nodes the rows are of (see `rows_of`), and the columns beside the ids."""
        rows = self.rows_of(table, ids)
        columns = list(range(table.width))
        if rows is None:
            return None, columns
        columns.remove(self._key(table))
        if not columns:
            raise SgcnError(f"{table.path} has nothing beside the ids, expected {table.what}")
        check_ids(rows, n, str(table.path), "in row")
        times = np.bincount(rows, minlength=n)
        if times.max() > 1:
            twice = rows[np.argmax(times[rows] > 1)]
            node = twice if ids.names is None else repr(ids.called(str(table.path))[twice])
            raise SgcnError(f"{table.path} has several rows of node {node}, expected one")
        return rows, columns

    def _features(self, draft: Draft, table: Table, n: int, ids: Ids) -> None:
        rows, columns = self._rows_and_columns(table, n, ids)
        where, shape = str(table.path), (n, len(columns))
        parts = counted(single((part for (part,) in table.numbers(columns)), where), n, where)
        if rows is None:
            draft.stream("x", shape, np.float32, parts)
            return
        x, start = np.empty(shape, np.float32), 0  # any row may be the first
        for part in parts:
            x[rows[start : start + len(part)]] = part
            start += len(part)
        draft.write("x", x)

    def _labels(self, table: Table, n: int, ids: Ids) -> npt.NDArray[Any]:
        rows, columns = self._rows_and_columns(table, n, ids)
        where = str(table.path)
        values = np.concatenate([part for (part,) in table.numbers(columns)])
        if len(columns) > 1:  # a set of labels may be empty, but must be there
            check_rows(len(values), n, where)
        return labels_of(_by_node(values, rows, n), n, where)

    def _split(self, table: Table, n: int, ids: Ids) -> npt.NDArray[np.int8]:
        rows, columns = self._rows_and_columns(table, n, ids)
        where = str(table.path)
        if len(columns) != 1:
            raise SgcnError(f"{where} has {len(columns)} columns, expected 1: the part of a node")
        words, found = coded(table, columns[0])
        parts = np.array([part_of(word, where) for word in words])[found]
        return split_of_numbers(n, _by_node(parts, rows, n), where)


def coded(table: Table, column: int) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The words of a column, and which of them each row has."""
    words = Names()
    found = [words.number(part)[:, 0] for part in table.fields([column])]
    return words.texts(str(table.path)), np.concatenate(found)


def _by_node(values: Any, rows: Any, n: int) -> Any:
    """Values in the order of nodes; who is not in the table has -1: no class, no part."""
    if rows is None:
        return values
    ordered = np.full((n, *values.shape[1:]), -1.0)
    ordered[rows] = values
    return ordered
