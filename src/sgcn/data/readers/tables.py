"""Tables of others: delimited text, plain or gzipped, and Parquet; some rows at a time.

Text is split and read by kernels of our own: pyarrow's CSV reader takes 1.3 to 1.8 times as long,
and has neither comments, nor runs of blanks between fields, nor the line of a bad one.
"""

from __future__ import annotations

import csv
import gzip
import importlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import progress, rows_of
from sgcn.data.readers.fields import Fields, NotANumberError
from sgcn.data.readers.files import LIMIT, check_size, checked, unreadable
from sgcn.errors import SgcnError
from sgcn.kernels import text
from sgcn.options import nearest

COMMENTS = "#%"
#: A first line of words with one of these names the columns.
_TITLES = {"source", "src", "from", "target", "dst", "to", "weight", "node", "id", "node_id",
           "label", "class", "split", "part"}  # fmt: skip
#: Bytes of text that are read at a time, and what a single line may have.
_TEXT, _LINE = 1 << 18, 1 << 28


class Table(ABC):
    """Columns by number, or by name where the file names them."""

    path: Path
    what: str
    names: list[str] | None
    width: int
    #: What to do about text in a column of numbers; None stands for the other columns.
    hints: Mapping[int | None, str] = {}
    #: Whether a field of text may have no value, which text files write as nothing.
    gaps = False

    @abstractmethod
    def rows(self) -> int:
        """How many there are."""

    @abstractmethod
    def fields(self, chosen: Sequence[int]) -> Iterator[Fields]:
        """The chosen columns as text, some rows at a time."""

    @abstractmethod
    def numbers(self, *groups: Sequence[int], integer: bool = False) -> Iterator[tuple[Any, ...]]:
        """For each group of columns a 2-D array of numbers, some rows at a time."""

    def all_numbers(self, *, integer: bool = False) -> Iterator[Any]:
        """All columns as a 2-D array, some rows at a time."""
        return (part for (part,) in self.numbers(range(self.width), integer=integer))

    def values(self, fields: Fields, columns: Sequence[int], *, integer: bool = False) -> Any:
        """The numbers in fields of these columns."""
        try:
            return fields.numbers(integer=integer)
        except NotANumberError as error:
            column = columns[error.column]
            named = self.names and f"column {self.names[column]!r}"
            hint = self.hints.get(column, self.hints.get(None, ""))
            raise SgcnError(
                f"{self.path} has {error.found}, expected {self.what}: a {error.kind} number in "
                f"{named or f'field {column + 1}'}{f'; {hint}' if hint else ''}"
            ) from None

    def index_of(self, column: int | str) -> int:
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


class Text(Table):
    """Lines of fields. Lines that begin with one of ``comments``, and empty ones, are passed over.

    Without ``width`` the first row says how many fields there are; without ``header`` the first
    two rows say whether the first names the columns.
    """

    def __init__(
        self, path: Path, what: str, limit: int = LIMIT, *, delimiter: str = ",",
        header: bool | None = False, width: int | None = None, comments: str = COMMENTS,
    ) -> None:  # fmt: skip
        self.path, self.what, self.limit, self.comments = path, what, limit, comments
        kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
        auto = {".csv": ",", ".tsv": "\t"}.get(kind, "")
        self.delimiter = {"auto": auto, "tab": "\t", "blank": ""}.get(delimiter, delimiter)
        self.names, self.before, self.numeric = None, 0, True
        if width is not None:
            self.width = width
            return
        first, second, line = self._start()
        if header is None:  # names of columns are words, above numbers or known as names
            titles = bool(_TITLES & {word.lower() for word in first})
            words = not any(map(_is_number, first))
            header = words and (titles or any(map(_is_number, second)))
        if header:
            first[0] = first[0].lstrip("\ufeff")  # which Excel puts there
            self.names, self.before = first, line
        self.width = len(first)
        self.numeric = all(map(_is_number, second if header else first))
        if header and not second:
            raise SgcnError(f"{path} names its columns and has no row, expected {what}")

    def rows(self) -> int:
        return sum(map(len, self._parts(quotes=not self.numeric)))

    def fields(self, chosen: Sequence[int]) -> Iterator[Fields]:
        return (part.columns(chosen) for part in self._parts(quotes=True))

    def numbers(self, *groups: Sequence[int], integer: bool = False) -> Iterator[tuple[Any, ...]]:
        for part in self._parts(quotes=not self.numeric):
            yield tuple(
                self.values(part.columns(group), group, integer=integer) for group in groups
            )

    def _parts(self, *, quotes: bool) -> Iterator[Fields]:
        """All fields, some lines at a time; with ``quotes`` a delimiter between quotes is none."""
        before = 0
        for data in self._blocks():
            while before < self.before and len(data):
                line = int(np.argmax(data == ord("\n"))) + 1
                data, before = data[line:], before + 1
            if quotes and (data == ord('"')).any():
                yield from self._quoted(data, before)
                before += int(np.count_nonzero(data == ord("\n")))
            else:
                before = yield from self._plain(data, before)

    def _plain(self, data: Any, before: int) -> Generator[Fields, None, int]:
        """The fields of some lines, ``before`` of which came earlier; how many then came."""
        sign = ord(self.delimiter) if self.delimiter else 0
        marks = np.array(list(self.comments.encode()), np.uint8)
        while len(data):
            most = len(data) // self.width + 1
            starts, ends = np.empty((2, most, self.width), np.int32)
            lines = np.empty(most, np.int32)
            rows, used, seen, fields = text.split_fields(data, sign, marks, starts, ends, lines)
            if fields >= 0:
                raise self._ragged(fields, before + seen)
            if rows:
                yield Fields(data, starts[:rows], ends[:rows], before + 1 + lines[:rows])
            data, before = data[used:], before + seen
        return before

    def _quoted(self, data: Any, before: int) -> Iterator[Fields]:
        rows = list(self._rows(data))
        for line, row in rows:
            if len(row) != self.width:
                raise self._ragged(len(row), before + line)
        if rows:
            words = [word for _, row in rows for word in row]
            yield Fields.of(words, self.width, before + np.array([line for line, _ in rows]))

    def _ragged(self, fields: int, line: int) -> SgcnError:
        return SgcnError(
            f"{self.path} has {fields} fields in line {line}, expected {self.width} in every line "
            f"of {self.what}"
        )

    def _blocks(self) -> Iterator[Any]:
        """The bytes of the file, cut behind line ends; the last line gets one if it has none."""
        path, what = self.path, self.what
        packed = checked(path, what).suffix == ".gz"
        seen, rest, more = 0, b"", True
        with (
            gzip.open(path, "rb") if packed else path.open("rb") as file,
            progress(f"reading {path.name}", "B") as step,
        ):
            while more:
                with unreadable(path, what):
                    data = file.read(max(_TEXT, len(rest)))
                more, seen = bool(data), seen + len(data)
                if packed:
                    check_size(path, seen, self.limit)
                step(len(data))
                data = rest + (data if more or not rest else b"\n")
                cut = data.rfind(b"\n") + 1
                rest = data[cut:]
                if len(rest) > _LINE:
                    raise SgcnError(
                        f"{path} has a line of more than {_LINE >> 20} MiB, expected {what} in "
                        "lines"
                    )
                if cut:
                    block = np.frombuffer(data, np.uint8, cut)
                    if not block.all():
                        raise SgcnError(f"{path} is binary, expected {what} as text")
                    yield block

    def _start(self) -> tuple[list[str], list[str], int]:
        """The first two rows, and the number of the first one's line."""
        found: list[tuple[int, list[str]]] = []
        before = 0
        for data in self._blocks():
            some = islice(self._rows(data), 2 - len(found))
            found += ((before + line, row) for line, row in some)
            if len(found) == 2:
                break
            before += int(np.count_nonzero(data == ord("\n")))
        if not found:
            raise SgcnError(f"{self.path} has no row, expected {self.what}")
        (line, first), (_, second) = (*found, (0, []))[:2]
        return first, second, line

    def _rows(self, data: Any) -> Iterator[tuple[int, list[str]]]:
        """The rows of some lines as `csv` reads them, with the numbers of their lines from 1."""
        with unreadable(self.path, f"{self.what} in UTF-8"):
            lines = data.tobytes().decode().split("\n")
        starts = (line.lstrip()[:1] for line in lines)
        kept = [k for k, start in enumerate(starts) if start and start not in self.comments]
        texts = (lines[k] if self.delimiter else " ".join(lines[k].split()) for k in kept)
        rows = csv.reader(texts, delimiter=self.delimiter or " ", strict=True)
        try:
            for seen, (k, row) in enumerate(zip(kept, rows, strict=True)):
                if rows.line_num != seen + 1:
                    raise SgcnError(
                        f"{self.path} has a quoted field of several lines, expected {self.what}: "
                        "one row a line"
                    )
                yield k + 1, [word.strip() for word in row]
        except csv.Error as error:
            raise SgcnError(
                f"{self.path} cannot be read, expected {self.what}: one row a line ({error})"
            ) from None


def numbers_of(path: Path, what: str, limit: int = LIMIT) -> npt.NDArray[np.int64]:
    """The whole numbers of a file that has one in each line."""
    parts = Text(path, what, limit, width=1, comments="").all_numbers(integer=True)
    return np.concatenate([np.empty(0, np.int64), *(part[:, 0] for part in parts)])


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


class Parquet(Table):
    """A Parquet file, read with pyarrow if that is installed."""

    names: list[str]

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
        if about.num_rows == 0:
            raise SgcnError(f"{path} has no row, expected {what}")

    def rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def numbers(self, *groups: Sequence[int], integer: bool = False) -> Iterator[tuple[Any, ...]]:
        for part in self._batches([k for group in groups for k in group]):
            empty = np.empty((len(next(iter(part.values()))), 0))
            yield tuple(
                np.stack([self._numbers(part[k], k, integer) for k in group], 1) if group else empty
                for group in groups
            )

    def _numbers(self, column: Any, k: int, integer: bool) -> Any:
        with unreadable(self.path, self.what):
            values = column.to_numpy(zero_copy_only=False)
        if values.dtype == object:
            return self.values(self._text([column]), [k], integer=integer)[:, 0]
        if values.dtype.kind not in "biuf":
            raise SgcnError(f"{self.path} holds {values.dtype}, expected {self.what}: numbers")
        return values

    def fields(self, chosen: Sequence[int]) -> Iterator[Fields]:
        return (self._text([part[k] for k in chosen]) for part in self._batches(chosen))

    def _text(self, columns: list[Any]) -> Fields:
        """Columns of text, whose bytes are put one behind the other."""
        data, offsets, before = [], [], 0
        with unreadable(self.path, self.what):
            for column in (column.cast("large_string") for column in columns):
                if column.null_count and not self.gaps:
                    raise ValueError("a field has no value")
                column = column.fill_null("")
                _, ends, content = column.buffers()
                ends = np.frombuffer(ends, np.int64)[column.offset :][: len(column) + 1]
                data.append(np.frombuffer(content or b"", np.uint8))
                offsets.append(ends + before)
                before += len(data[-1])
        cuts = np.stack(offsets, 1)
        return Fields(np.concatenate(data), cuts[:-1], cuts[1:])

    def _batches(self, chosen: Sequence[int]) -> Iterator[dict[int, Any]]:
        """The chosen columns by their numbers."""
        names = [self.names[k] for k in chosen]
        batches = self.file.iter_batches(rows_of(len(names)), columns=names, use_threads=False)
        with progress(f"reading {self.path.name}", " rows", self.rows()) as step:
            while True:
                with unreadable(self.path, self.what):
                    batch = next(batches, None)
                if batch is None:
                    self.pool.release_unused()  # it would keep some 15 MB for later
                    return
                yield {k: batch.column(self.names[k]) for k in chosen}
                step(len(batch))
