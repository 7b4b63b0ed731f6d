"""A table of nodes, as data frames are saved: ids, labels, split and features in its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft
from sgcn.data.features import single, to_float32
from sgcn.data.importers.beside import A_FILE, Ids, a_column, coded
from sgcn.data.importers.edgelist import Edges
from sgcn.data.importers.rows import about, checked_edges, counted
from sgcn.data.importers.splits import part_of, split_of_numbers
from sgcn.data.readers.fields import Fields, Names, NotANumberError
from sgcn.data.readers.files import existing, read_json, there, unreadable
from sgcn.data.readers.tables import Table
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import Rule, integer, one_of, option, optional
from sgcn.store import CLASSES, FEATURES, IDS

#: What stands for a value that is not there, as pandas has it.
MISSING = {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None"}
_SHOWN = 8  # columns in a note
_USUAL_CLASSES = 10  # which nobody wonders at, in however few rows
_A_COLUMN = optional(a_column())
_COLUMNS = Rule(
    "names of columns like a,b,c, or none",
    lambda v: v is None or (bool(v) and all(map(a_column().test, v if type(v) is tuple else [v]))),
)


@dataclass
class Column:
    """Column ``at`` of the table: numbers, or words, with a feature of 0 and 1 for each value."""

    name: str
    at: int
    mean: float = 0.0
    values: list[str] | None = None
    missing: int = 0
    unknown: int = 0

    @property
    def width(self) -> int:
        return 1 if self.values is None else len(self.values)

    def kept(self) -> dict[str, Any]:
        """What another table needs to have the same features."""
        facts = {"mean": self.mean} if self.values is None else {"values": self.values}
        return {"name": self.name, **facts}


@dataclass(frozen=True)
class NodeTable(Edges):
    """Row k is node k. Columns are named in the first row, unless ``header`` is false."""

    name: ClassVar[str] = "table"
    summary: ClassVar[str] = "a table of nodes (.csv, .tsv, .txt, .parquet), and one of edges"
    names_hint: ClassVar[str] = "set id to the column with the names of nodes"

    edges: str | None = option(None, A_FILE, "the table of edges (needed)")
    id: int | str | None = option(
        "auto", _A_COLUMN, "column of ids; none: rows count from 0; auto: `id`, if it is there"
    )
    label: int | str | None = option("auto", _A_COLUMN, "column of labels, or none")
    split: int | str | None = option("auto", _A_COLUMN, "column of train, val and test, or none")
    features: str | int | tuple[int | str, ...] | None = option(
        "auto", _COLUMNS, "columns a,b,c; auto: all others"
    )
    kind: str = option(
        "auto", one_of("auto", "classes", "sets", "numbers"),
        "what labels are; sets: names with ; between; auto: numbers if one has a fraction",
    )  # fmt: skip
    most: int = option(256, integer(), "values of a column of words, each of which is a feature")
    like: str | None = option(
        None, A_FILE, "graph of another table, whose columns and classes to have"
    )

    def read(self, source: Path, draft: Draft) -> Graph:
        if self.edges is None:
            raise SgcnError("edges is none, expected the table of edges: --edges FILE")
        header = self.header is not False
        table = self.table(source, "a table of nodes", header=header, comments="")
        table.gaps = True
        key, label, split = (self._column(table, name) for name in ("id", "label", "split"))
        columns = self._columns(table, {key, label, split})
        ids = Ids("numbers" if key is None else "text")
        n = table.rows() if key is None else _named(draft, table, key, ids)
        with about(Path(self.edges)):
            edges = self._known(self.table(Path(self.edges), "an edge list"), ids, n, source)
            graph = draft.edges(edges, n, directed=self.directed)
        if label is not None:
            self._write_labels(draft, table, label)
        if split is not None:
            words, found = coded(table, split)
            parts = ["" if word in MISSING else word for word in words]
            numbers = np.array([part_of(word, str(source)) for word in parts])[found]
            draft.write("split", split_of_numbers(n, numbers, str(source)))
        if columns:
            self._write_features(draft, table, columns, n)
        return graph

    # -- columns --------------------------------------------------------------------------------

    def _column(self, table: Table, role: str) -> int | None:
        """The column that was named for ``role``."""
        name = getattr(self, role)
        if name == "auto":
            name = role if table.names and role in table.names else None
        return None if name in (None, "none") else table.index_of(name)

    def _columns(self, table: Table, others: set[int | None]) -> list[Column]:
        """Those with features, of which nothing else is known yet without ``like``."""
        if self.like is not None:
            path = existing(Path(self.like), FEATURES, f"a graph made of a table, with {FEATURES}")
            kept = read_json(path, "the columns of a table", list)
            with unreadable(path, "the columns of a table"):
                return [Column(at=table.index_of(one["name"]), **one) for one in kept]
        chosen: Any = self.features
        if chosen in (None, "none"):
            return []
        if chosen == "auto":
            chosen = [k for k in range(table.width) if k not in others]
        elif isinstance(chosen, str):
            chosen = [int(k) if k.isdecimal() and not table.names else k
                      for k in map(str.strip, chosen.split(","))]  # fmt: skip
        elif isinstance(chosen, int):
            chosen = [chosen]
        places = [table.index_of(column) for column in chosen]
        return [Column(table.names[k] if table.names else str(k), k) for k in places]

    # -- edges ----------------------------------------------------------------------------------

    def _known(self, table: Table, ids: Ids, n: int, source: Path) -> Iterator[tuple[Any, ...]]:
        """Edges as they pass; the first to a node that has no row is named."""
        edges = self.edges_of(table, ids)
        if ids.names is None:
            yield from checked_edges(edges, n, str(table.path))
            return
        before = 0
        for src, dst, *weights in edges:
            bad = (src >= n) | (dst >= n)
            if bad.any():
                k = int(np.argmax(bad))
                name = ids.called(str(table.path))[src[k] if src[k] >= n else dst[k]]
                hint = "" if before + k else "; set header=true if this names the columns"
                raise SgcnError(
                    f"{table.path} has {name!r} in edge {before + k}, expected ids of nodes with a "
                    f"row in {source}{hint}"
                )
            before += len(src)
            yield src, dst, *weights

    # -- labels ---------------------------------------------------------------------------------

    def _write_labels(self, draft: Draft, table: Table, at: int) -> None:
        words, found = coded(table, at)
        where = f"{table.path} in its column of labels"
        given = [word for word in words if word not in MISSING]
        numbers = [_number(word) for word in given]
        kind = self.kind
        whole = kind != "sets" and all(number.is_integer() for number in numbers)
        if kind == "auto":
            kind = "classes" if whole or np.isnan(numbers).any() else "numbers"
        if kind == "numbers":
            values: npt.NDArray[Any] = to_float32(np.array([_number(word) for word in words]))
            for word, value in zip(words, values, strict=True):
                if word not in MISSING and not np.isfinite(value):
                    raise SgcnError(f"{where} has {word!r}, expected numbers: set kind=classes")
            self._write_y(draft, values[found], np.isnan(values[found]))
            return
        if whole:  # 2 may be written as 2.0, and -1 is none
            words = [word if word in MISSING else f"{_number(word):.0f}" for word in words]
            words = ["" if word == "-1" else word for word in words]
        sets = [[] if word in MISSING else _parts(word, kind == "sets") for word in words]
        names: list[str] = sorted(
            {name for one in sets for name in one}, key=int if whole else None
        )
        if not names:
            raise SgcnError(f"{where} has no label, expected at least one")
        if self.like is not None and there(Path(self.like), CLASSES):
            kept = read_json(Path(self.like) / CLASSES, "the names of classes", list)
            for name in names:
                if name not in kept:
                    raise SgcnError(f"{where} has {name!r}, expected the classes of {self.like}")
            names = kept
        draft.call(CLASSES, names)
        known = int(np.bincount(found, minlength=len(words))[[bool(one) for one in sets]].sum())
        if self.kind == "auto" and whole and len(names) > max(_USUAL_CLASSES, known // 10):
            draft.notes.append(
                f"labels that are whole numbers, read as {len(names):,} classes; to predict them "
                "as numbers: --set kind=numbers"
            )
        place = {name: k for k, name in enumerate(names)}
        if kind == "sets":
            member = np.zeros((len(sets), len(names)), np.uint8)
            for row, one in zip(member, sets, strict=True):
                row[[place[name] for name in one]] = 1
            y = member[found]
            self._write_y(draft, y, y.sum(1) == 0)
            return
        classes = np.array([place[one[0]] if one else -1 for one in sets])[found]
        self._write_y(draft, classes, classes < 0)

    def _write_y(self, draft: Draft, y: Any, bare: Any) -> None:
        draft.write("y", y)
        if count := np.count_nonzero(bare):
            draft.notes.append(f"nodes without a label: {count:,}")

    # -- features -------------------------------------------------------------------------------

    def _write_features(self, draft: Draft, table: Table, columns: list[Column], n: int) -> None:
        if self.like is None:
            self._look(table, columns)
        where, width = str(table.path), sum(column.width for column in columns)
        rows = counted(single(self._rows(table, columns, width), where), n, where)
        draft.stream("x", (n, width), np.float32, rows)
        draft.call(FEATURES, [column.kept() for column in columns])
        _note(draft, "words, a feature a value", [
            f"{c.name} ({c.width})" for c in columns if c.values is not None])  # fmt: skip
        _note(draft, "missing values", [
            f"{c.name} {c.missing:,} ({'zeros' if c.values is not None else f'mean {c.mean:.4g}'})"
            for c in columns if c.missing])  # fmt: skip
        _note(draft, f"words that {self.like} does not have (zeros)", [
            f"{c.name} {c.unknown:,}" for c in columns if c.unknown])  # fmt: skip

    def _look(self, table: Table, columns: list[Column]) -> None:
        """Which columns hold words and which; the means of the others."""
        places = [column.at for column in columns]
        numeric = list(range(len(columns)))
        total, count = np.zeros((2, len(columns)))
        for fields in table.fields(places):
            values, numeric = _numbers(fields, numeric)
            given = ~np.isnan(values)
            with np.errstate(all="ignore"):  # what is infinite is refused when it is written
                total[numeric] += np.where(given, values, 0.0).sum(0)
            count[numeric] += given.sum(0)
        for k in numeric:
            columns[k].mean = float(total[k] / max(count[k], 1))
        names = {k: Names() for k in range(len(columns)) if k not in numeric}
        for fields in table.fields([places[k] for k in names]) if names else ():
            for at, (k, known) in enumerate(names.items()):
                known.number(fields.columns([at]))
                if len(known) > self.most + len(MISSING):
                    raise self._too_many(table, columns[k])
        for k, known in names.items():
            columns[k].values = sorted(set(known.texts(str(table.path))) - MISSING)
            if columns[k].width > self.most:
                raise self._too_many(table, columns[k])

    def _too_many(self, table: Table, column: Column) -> SgcnError:
        return SgcnError(
            f"{table.path} has more than {self.most} words in column {column.name!r}, expected "
            "numbers or fewer words: name the columns to use (features=a,b), or set most"
        )

    def _rows(self, table: Table, columns: list[Column], width: int) -> Iterator[Any]:
        """The features of some rows at a time; what is missing is counted."""
        starts = np.cumsum([0, *(column.width for column in columns)])
        numeric = [k for k, column in enumerate(columns) if column.values is None]
        means = np.array([columns[k].mean for k in numeric])
        worded = {
            k: (Names(), {word: place for place, word in enumerate(column.values)})
            for k, column in enumerate(columns)
            if column.values is not None
        }
        for fields in table.fields([column.at for column in columns]):
            out = np.zeros((len(fields), width), np.float32)
            values, found = _numbers(fields, numeric)
            for k in set(numeric) - set(found):
                raise SgcnError(
                    f"{table.path} has words in column {columns[k].name!r}, expected numbers, as "
                    f"in {self.like}"
                )
            gone = np.isnan(values)
            out[:, starts[numeric]] = to_float32(np.where(gone, means, values))
            for k, count in zip(numeric, gone.sum(0), strict=True):
                columns[k].missing += int(count)
            for k, (names, places) in worded.items():
                codes = names.number(fields.columns([k]))[:, 0]
                words = names.texts(str(table.path))
                place = np.array([places.get(word, -1) for word in words])[codes]
                none = np.array([word in MISSING for word in words])[codes]
                columns[k].missing += int(none.sum())
                columns[k].unknown += int(((place < 0) & ~none).sum())
                rows = np.flatnonzero(place >= 0)
                out[rows, starts[k] + place[rows]] = 1.0
            yield out


def _named(draft: Draft, table: Table, key: int, ids: Ids) -> int:
    """How many nodes there are: the first names of ``ids`` are then theirs, in order."""
    rows = np.concatenate([part[0] for part in ids.columns(table, [key], [])])
    names = ids.called(str(table.path))
    again = rows != np.arange(len(rows))
    if again.any():
        name = names[rows[np.argmax(again)]]
        raise SgcnError(f"{table.path} has several rows of node {name!r}, expected one")
    if "" in names:
        raise SgcnError(f"{table.path} has no id in row {names.index('')}, expected one in each")
    whole = all(name.isdecimal() and str(int(name)) == name for name in names)
    draft.call(IDS, [int(name) for name in names] if whole else names)
    return len(rows)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return np.nan


def _parts(word: str, several: bool) -> list[str]:
    """The labels that a word stands for."""
    parts = [part.strip() for part in word.split(";")] if several else [word]
    return [part for part in parts if part]


def _numbers(fields: Fields, columns: list[int]) -> tuple[npt.NDArray[Any], list[int]]:
    """The values of those of the columns that hold numbers, nan for none; and which these are."""
    cleaned = False
    while columns:
        try:
            return fields.columns(columns).numbers(), columns
        except NotANumberError as error:
            if cleaned:
                columns = columns[: error.column] + columns[error.column + 1 :]
            else:  # words for what is missing become nothing
                words = Names()
                codes = words.number(fields)
                gone = np.array([word in MISSING for word in words.texts("a table")])[codes]
                ends = np.where(gone, fields.starts, fields.ends)
                fields, cleaned = Fields(fields.data, fields.starts, ends, fields.lines), True
    return np.empty((len(fields), 0)), columns


def _note(draft: Draft, what: str, parts: list[str]) -> None:
    more = f" and {len(parts) - _SHOWN} more columns" if len(parts) > _SHOWN else ""
    if parts:
        draft.notes.append(f"{what}: {', '.join(parts[:_SHOWN])}{more}")
