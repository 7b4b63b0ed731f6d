"""Lines of text: cut behind their ends, and numbers in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.chunks import progress
from sgcn.data.readers.files import Readable, unreadable
from sgcn.data.readers.words import NotANumberError
from sgcn.errors import SgcnError
from sgcn.kernels import text

#: Bytes of text that are read at a time, and what a single line may have.
_TEXT, _LINE = 1 << 18, 1 << 28


def number_rows(
    stream: Readable,
    path: Path,
    what: str,
    columns: int | None,
    delimiter: str = ",",
    dtype: Any = np.int64,
    *,
    comments: str = "",
    skip: int = 0,
) -> Iterator[Any]:
    """The rows of a table of numbers in text, some at a time; a bad field is named by its line.

    Without ``columns`` the first row says how many there are. ``delimiter`` is one character, or ""
    for any run of blanks. ``dtype`` is int64, or a real type: then an empty field is nan. Empty
    lines and lines that begin with a character of ``comments`` are passed over, and the first
    ``skip`` lines whatever they say.
    """
    kind = np.dtype(dtype)
    marks = np.array(list(comments.encode()), np.uint8)
    sign = ord(delimiter) if delimiter else 0
    before = 0
    for data in whole_lines(stream, path, what):
        while skip and len(data):
            line = int(np.argmax(data == ord("\n"))) + 1
            data, skip, before = data[line:], skip - 1, before + 1
        while len(data):
            if columns is None:
                columns = _count_columns(data, sign, marks)
            most = len(data) // columns + 1
            starts, ends = np.empty((2, most, columns), np.int32)
            lines = np.empty(most, np.int32)
            rows, used, seen, fields = text.split_fields(data, sign, marks, starts, ends, lines)
            if fields >= 0:
                raise SgcnError(
                    f"{path} has {fields} fields in line {before + seen}, expected {columns} in "
                    f"every line of {what}"
                )
            starts, ends = starts[:rows].reshape(-1), ends[:rows].reshape(-1)
            out = np.empty(rows * columns, np.int64 if kind.kind in "iu" else np.float64)
            read = text.whole_numbers if kind.kind in "iu" else text.real_numbers
            bad = read(data, starts, ends, out)
            if bad >= 0:
                field = data[starts[bad] : ends[bad]].tobytes().decode("utf-8", "replace")
                error = NotANumberError(
                    f"{path} has {field[:40]!r} in line {before + lines[bad // columns] + 1}, "
                    f"expected {what}: a {'whole' if kind.kind in 'iu' else 'real'} number in "
                    f"field {bad % columns + 1}"
                )
                error.field = int(bad % columns)
                raise error
            before += seen
            data = data[used:]
            if rows:
                yield out.reshape(rows, columns).astype(kind, copy=False)


def whole_lines(stream: Readable, path: Path, what: str) -> Iterator[Any]:
    """The bytes of ``stream``, cut behind line ends; the last line gets one if it has none."""
    rest = b""
    with progress(f"reading {path.name}", "B") as step:
        while True:
            with unreadable(path, what):
                data = stream.read(max(_TEXT, len(rest)))
            if not data:
                break
            step(len(data))
            data = rest + data
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if len(rest) > _LINE:
                raise SgcnError(
                    f"{path} has a line of more than {_LINE >> 20} MiB, expected {what} in lines"
                )
            if cut:
                yield np.frombuffer(data, np.uint8, cut)
    if rest:
        yield np.frombuffer(rest + b"\n", np.uint8)


def _count_columns(data: Any, delimiter: int, marks: Any) -> int:
    """The number of fields of the first row, or 1 where there is none."""
    none = np.empty((1, 0), np.int32)
    fields = text.split_fields(data, delimiter, marks, none, none, np.empty(1, np.int32))[3]
    return max(1, int(fields))
