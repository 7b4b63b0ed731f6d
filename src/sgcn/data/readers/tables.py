"""Tables of others: delimited text, plain or gzipped, and Parquet; some rows at a time."""

from __future__ import annotations

import csv
import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.chunks import progress, rows_of
from sgcn.data.readers.files import check_size, checked, gunzipped, unreadable
from sgcn.data.readers.lines import number_rows, whole_lines
from sgcn.data.readers.words import NotANumberError, Words
from sgcn.errors import SgcnError
from sgcn.kernels import text
from sgcn.options import nearest

COMMENTS = "#%"
_MARKS = np.array(list(COMMENTS.encode()), np.uint8)
#: A first line of words with one of these names the columns.
_TITLES = {"source", "src", "from", "target", "dst", "to", "weight", "node", "id", "node_id",
           "label", "class", "split", "part"}  # fmt: skip


class Table(ABC):
    """Columns by number, or by name where the file names them."""

    path: Path
    what: str
    names: list[str] | None
    width: int
    #: Whether all columns are numbers, as far as the first rows tell.
    numeric: bool
    #: What to do about text in a column of numbers; None stands for the other columns.
    hints: Mapping[int | None, str] = {}

    @abstractmethod
    def rows(self) -> int:
        """How many there are."""

    @abstractmethod
    def numbers(self, dtype: Any = np.float64) -> Iterator[Any]:
        """All columns as a 2-D array of int64 or float64, some rows at a time."""

    @abstractmethod
    def words(self, chosen: list[int]) -> Iterator[list[Words]]:
        """The chosen columns as text, some rows at a time."""

    def columns(self, chosen: list[int], *, whole: bool = False) -> Iterator[list[Any]]:
        """The chosen columns as numbers, whatever the others hold."""
        for part in self.words(chosen):
            pairs = zip(part, chosen, strict=True)
            yield [self._values(words, k, str(self.path), whole) for words, k in pairs]

    def _values(self, words: Words, column: int, place: str, whole: bool) -> Any:
        try:
            return words.numbers(place, whole=whole)
        except NotANumberError as error:
            raise self._advised(error, column) from None

    def _advised(self, error: SgcnError, column: int | None) -> SgcnError:
        hint = self.hints.get(column, self.hints.get(None, ""))
        return SgcnError(f"{error}; {hint}") if hint else error

    def place(self, column: int | str) -> int:
        """The number of a column that was named, or numbered from 0."""
        if isinstance(column, int):
            if column >= self.width:
                raise SgcnError(
                    f"{self.path} has {self.width} columns, expected column {column} (from 0) too"
                )
            return column
        if self.names is None:
            raise SgcnError(
                f"{self.path} has no line with names, expected the column {column!r} in one: give "
                "its number, from 0, or set header=true"
            )
        if column not in self.names:
            raise SgcnError(
                f"{self.path} has no column {column!r}, expected one of "
                f"{', '.join(self.names)}{nearest(column, self.names)}"
            )
        return self.names.index(column)


def open_table(
    path: Path, what: str, *, delimiter: str = "auto", header: bool | None = None, limit: int
) -> Table:
    """The table in ``path``; its suffix says what it is."""
    checked(path, what)
    if path.suffix == ".parquet":
        return Parquet(path, what, limit)
    return Text(path, what, delimiter, header, limit)


class Text(Table):
    """Lines of fields. Lines that begin with # or %, and empty ones, are passed over."""

    def __init__(
        self, path: Path, what: str, delimiter: str, header: bool | None, limit: int
    ) -> None:
        self.path, self.what, self.limit = path, what, limit
        kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        auto = {".csv": ",", ".tsv": "\t"}.get(kind, "")
        self.delimiter = {"auto": auto, "tab": "\t", "blank": ""}.get(delimiter, delimiter)
        first, second, line = self._start()
        if header is None:  # names of columns are words, above numbers or known as names
            titles = bool(_TITLES & {word.lower() for word in first})
            words = not any(map(_is_number, first))
            header = words and (titles or any(map(_is_number, second)))
        self.names = first if header else None
        self.before = line if header else 0
        self.width = len(first)
        self.numeric = all(map(_is_number, second if header else first))
        if header and not second:
            raise SgcnError(f"{path} names its columns and has no row, expected {what}")

    def rows(self) -> int:
        if self.numeric:
            return sum(map(len, self.numbers()))
        return sum(len(part[0]) for part in self.words([0]))

    def numbers(self, dtype: Any = np.float64) -> Iterator[Any]:
        with gunzipped(self.path, self.what, self.limit) as stream:
            try:
                yield from number_rows(
                    stream, self.path, self.what, self.width, self.delimiter, dtype,
                    comments=COMMENTS, skip=self.before,
                )  # fmt: skip
            except NotANumberError as error:
                raise self._advised(error, error.field) from None

    def words(self, chosen: list[int]) -> Iterator[list[Words]]:
        before = 0
        for data in self._blocks():
            skipped = max(0, self.before - before)
            ends = np.flatnonzero(data == ord("\n")) + 1
            if skipped < len(ends):
                rest = data[ends[skipped - 1] :] if skipped else data
                fields = self._quoted if (rest == ord('"')).any() else self._plain
                yield from fields(rest, before + skipped, chosen)
            before += len(ends)

    def _plain(self, data: Any, before: int, chosen: list[int]) -> Iterator[list[Words]]:
        most = len(data) // self.width + 1
        starts, ends = np.empty((2, most, self.width), np.int32)
        sign = ord(self.delimiter) if self.delimiter else 0
        while len(data):
            lines = np.empty(most, np.int32)
            rows, used, seen, fields = text.split_fields(data, sign, _MARKS, starts, ends, lines)
            if fields >= 0:
                raise self._ragged(fields, before + seen)
            if rows:
                lines = before + 1 + lines[:rows]
                yield [Words(data, starts[:rows, k], ends[:rows, k], lines) for k in chosen]
            data, before = data[used:], before + seen

    def _quoted(self, data: Any, before: int, chosen: list[int]) -> Iterator[list[Words]]:
        """Where a field has quotes around it, it may hold delimiters."""
        lines = self._decoded(data)
        kept = [k for k, line in enumerate(lines) if _is_row(line)]
        rows = self._parsed([lines[k] for k in kept])
        for row, k in zip(rows, kept, strict=True):
            if len(row) != self.width:
                raise self._ragged(len(row), before + k + 1)
        if rows:
            columns = list(zip(*rows, strict=True))
            numbers = before + 1 + np.array(kept)
            yield [Words.of(list(columns[k]), numbers) for k in chosen]

    def _ragged(self, fields: int, line: int) -> SgcnError:
        return SgcnError(
            f"{self.path} has {fields} fields in line {line}, expected {self.width} in every line "
            f"of {self.what}"
        )

    def _blocks(self) -> Iterator[Any]:
        with gunzipped(self.path, self.what, self.limit) as stream:
            for data in whole_lines(stream, self.path, self.what):
                if not data.all():
                    raise SgcnError(f"{self.path} is binary, expected {self.what} as text")
                yield data

    def _start(self) -> tuple[list[str], list[str], int]:
        """The first two rows, and the number of the first one's line."""
        found: list[list[str]] = []
        before = first = 0
        for data in self._blocks():
            lines = self._decoded(data)
            kept = [k for k, line in enumerate(lines) if _is_row(line)][: 2 - len(found)]
            if kept:
                first = first or before + kept[0] + 1
                found += self._parsed([lines[k] for k in kept])
            if len(found) == 2:
                break
            before += len(lines) - 1  # behind the last line end is nothing
        if not found:
            raise SgcnError(f"{self.path} has no row, expected {self.what}")
        return found[0], (*found, [])[1], first

    def _decoded(self, data: Any) -> list[str]:
        with unreadable(self.path, f"{self.what} in UTF-8"):
            return str(data.tobytes().decode()).split("\n")

    def _parsed(self, lines: list[str]) -> list[list[str]]:
        if not self.delimiter:
            lines = [" ".join(line.split()) for line in lines]
        try:
            rows = list(csv.reader(lines, delimiter=self.delimiter or " ", strict=True))
        except csv.Error as error:
            raise SgcnError(
                f"{self.path} cannot be read, expected {self.what}: one row a line ({error})"
            ) from None
        if len(rows) != len(lines):
            raise SgcnError(
                f"{self.path} has a quoted field of several lines, expected {self.what}: one row "
                "a line"
            )
        return [[word.strip() for word in row] for row in rows]


def _is_row(line: str) -> bool:
    start = line.lstrip()
    return bool(start) and start[0] not in COMMENTS


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


class Parquet(Table):
    """A Parquet file, read with pyarrow if that is installed."""

    def __init__(self, path: Path, what: str, limit: int) -> None:
        self.path, self.what = path, what
        try:
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise SgcnError(
                f"{path} is Parquet, expected pyarrow to read it: `pip install pyarrow`, or save "
                "the table as CSV"
            ) from None
        self.pool = importlib.import_module("pyarrow").default_memory_pool()
        with unreadable(path, what):
            # A small buffer: pages of a column pass one by one instead of a row group at once.
            self.file: Any = parquet.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
        about = self.file.metadata
        groups = map(about.row_group, range(about.num_row_groups))
        check_size(path, sum(group.total_byte_size for group in groups), limit)
        self.names = list(self.file.schema_arrow.names)
        self.width = len(self.names)
        self.numeric = False  # columns have types of their own here
        if about.num_rows == 0:
            raise SgcnError(f"{path} has no row, expected {what}")

    def rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def numbers(self, dtype: Any = np.float64) -> Iterator[Any]:
        for part in self.columns(list(range(self.width)), whole=np.dtype(dtype).kind == "i"):
            yield np.stack(part, 1)

    def columns(self, chosen: list[int], *, whole: bool = False) -> Iterator[list[Any]]:
        for part in self._batches(chosen):
            pairs = zip(part, chosen, strict=True)
            yield [self._numbers(column, k, whole) for column, k in pairs]

    def _numbers(self, column: Any, k: int, whole: bool) -> Any:
        with unreadable(self.path, self.what):
            values = column.to_numpy(zero_copy_only=False)
        if values.dtype == object:
            place = f"column {(self.names or [])[k]!r} of {self.path}"
            return self._values(self._text(column), k, place, whole)
        if values.dtype.kind not in "biuf":
            raise SgcnError(f"{self.path} holds {values.dtype}, expected {self.what}: numbers")
        return values

    def words(self, chosen: list[int]) -> Iterator[list[Words]]:
        for part in self._batches(chosen):
            yield [self._text(column) for column in part]

    def _text(self, column: Any) -> Words:
        with unreadable(self.path, self.what):
            column = column.cast("large_string")
            if column.null_count:
                raise ValueError("a field has no value")
            _, offsets, data = column.buffers()
            places = np.frombuffer(offsets, np.int64)[column.offset :][: len(column) + 1]
            content = np.frombuffer(data or b"", np.uint8)
        return Words(content, places[:-1], places[1:])

    def _batches(self, chosen: list[int]) -> Iterator[list[Any]]:
        names = [(self.names or [])[k] for k in chosen]
        batches = self.file.iter_batches(rows_of(len(names)), columns=names, use_threads=False)
        with progress(f"reading {self.path.name}", " rows", self.rows()) as step:
            while True:
                with unreadable(self.path, self.what):
                    batch = next(batches, None)
                    if batch is None:
                        self.pool.release_unused()  # it would keep some 15 MB for later
                        return
                    columns = [batch.column(name) for name in names]
                yield columns
                step(len(batch))
