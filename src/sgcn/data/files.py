"""Files of others, read with suspicion: one sentence for each way in which they can be wrong.

Nothing here trusts a declared size, follows a path out of its folder, or runs a pickle.
"""

from __future__ import annotations

import errno
import gzip
import json
import lzma
import math
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol

import numpy as np

from sgcn.data.draft import CHUNK
from sgcn.errors import SgcnError
from sgcn.kernels import text

#: What a packed file may unpack to, in bytes, unless the user says otherwise.
LIMIT = 64 << 30

#: Bytes of text that are read at a time, and what a single line may have.
_TEXT, _LINE = 1 << 20, 1 << 28


class Readable(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes: ...


def existing(folder: Path, name: str, what: str) -> Path:
    """The file ``name`` of ``folder``: there, inside the folder, and not a web page."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise SgcnError(f"{path} leads out of {folder}, expected {what} inside it")
    return checked(path, what)


def checked(path: Path, what: str) -> Path:
    """``path`` itself, if it is a file with something in it that is not a web page."""
    if not path.is_file():
        raise SgcnError(f"{path} does not exist, expected {what}")
    try:
        with path.open("rb") as file:
            start = file.read(256).lstrip().lower()
    except OSError as error:
        raise SgcnError(f"{path} cannot be read ({error.strerror}), expected {what}") from None
    if not start:
        raise SgcnError(f"{path} is empty, expected {what}")
    if start.startswith((b"<!doctype html", b"<html")):
        raise SgcnError(
            f"{path} is an HTML page, expected {what}: the download did not give the file, "
            "fetch it again"
        )
    return path


@contextmanager
def unreadable(path: Path, what: str) -> Iterator[None]:
    """Whatever a reader says about broken bytes becomes one sentence about the file."""
    try:
        yield
    except SgcnError:
        raise
    except (
        OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, SyntaxError,
        RuntimeError, OverflowError, MemoryError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
        struct.error, tokenize.TokenError,
    ) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise  # about what is written meanwhile
        words = " ".join(str(error).split()) or type(error).__name__
        raise SgcnError(f"{path} cannot be read, expected {what} ({words[:200]})") from None


class Npy:
    """An array of the ``.npy`` format in a stream: its header now, its rows when asked for.

    ``kinds`` are numpy's letters for the types that will do ("iu" whole numbers, "f" reals);
    ``size`` is how many bytes the stream has, where that is known.
    """

    def __init__(
        self,
        file: IO[bytes],
        path: Path,
        what: str,
        kinds: str,
        ndim: int,
        size: int | None = None,
    ) -> None:
        self.file, self.path, self.what = file, path, what
        with unreadable(path, what), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers that Python 2 wrote are fine
            version = np.lib.format.read_magic(file)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, self.fortran, self.dtype = read(file)
        fits = len(self.shape) == ndim and min(self.shape, default=0) >= 0
        if self.dtype.hasobject or self.dtype.kind not in kinds or not fits:
            raise SgcnError(
                f"{path} holds {self.dtype} of shape {self.shape}, expected {what}: "
                f"{ndim} dimension{'s' * (ndim > 1)} of {_words(kinds)}"
            )
        if size is not None:  # before anything is allocated for what the header promises
            with unreadable(path, what):
                start = file.tell()
            row = self.dtype.itemsize * math.prod(self.shape[1:])
            if start + row * self.shape[0] > size:
                self._truncated((size - start) // max(row, 1))

    def _truncated(self, row: int) -> NoReturn:
        raise SgcnError(
            f"{self.path} ends in row {row} of {self.shape[0]}, expected {self.what}: it is "
            "truncated, fetch it again"
        )

    def parts(self) -> Iterator[Any]:
        """The rows, some millions of entries at a time."""
        if self.fortran and len(self.shape) > 1:
            raise SgcnError(
                f"{self.path} holds columns one after the other, expected {self.what} row by row: "
                "save it again with numpy.ascontiguousarray"
            )
        width = math.prod(self.shape[1:])
        step = max(1, CHUNK // max(width, 1))
        for start in range(0, self.shape[0], step):
            rows = min(step, self.shape[0] - start)
            wanted = rows * width * self.dtype.itemsize
            with unreadable(self.path, self.what):
                data = self.file.read(wanted)
            if len(data) != wanted:
                self._truncated(start + len(data) // max(1, wanted // rows))
            yield np.frombuffer(data, self.dtype).reshape(rows, *self.shape[1:])

    def all(self, dtype: Any = None) -> Any:
        """The whole array, as ``dtype``."""
        array = np.empty(0, dtype or self.dtype)
        for start, part in self.numbered():
            if start == 0:  # not before the first rows are there: the header may promise anything
                with unreadable(self.path, self.what):
                    array = np.empty(self.shape, dtype or self.dtype)
            array[start : start + len(part)] = part
        return array.reshape(self.shape)

    def numbered(self) -> Iterator[tuple[int, Any]]:
        """`parts`, each with the number of its first row."""
        start = 0
        for part in self.parts():
            yield start, part
            start += len(part)


def _words(kinds: str) -> str:
    words = {"i": "whole numbers", "f": "real numbers", "b": "true or false", "U": "text"}
    return " or ".join(words[kind] for kind in kinds if kind in words)


@contextmanager
def npy(path: Path, what: str, kinds: str = "iuf", ndim: int = 2) -> Iterator[Npy]:
    """The array of a ``.npy`` file."""
    with checked(path, what).open("rb") as file:
        yield Npy(file, path, what, kinds, ndim, os.fstat(file.fileno()).st_size)


class Npz:
    """The arrays of an ``.npz`` file, streamed out of it one by one."""

    def __init__(self, path: Path, what: str, limit: int = LIMIT) -> None:
        self.path, self.what = path, what
        with unreadable(checked(path, what), what):
            self.zip = zipfile.ZipFile(path)
        self.sizes = {info.filename: info.file_size for info in self.zip.infolist()}
        check_size(path, sum(self.sizes.values()), limit)

    def __contains__(self, key: str) -> bool:
        return f"{key}.npy" in self.sizes

    @contextmanager
    def npy(self, key: str, kinds: str = "iu", ndim: int = 1) -> Iterator[Npy]:
        if key not in self:
            raise SgcnError(f"{self.path} has no array {key!r}, expected {self.what}")
        with unreadable(self.path, self.what):
            member = self.zip.open(f"{key}.npy")
        with member as file:
            size = self.sizes[f"{key}.npy"]
            yield Npy(file, self.path, f"{key} of {self.what}", kinds, ndim, size)

    def pairs(self, key: str) -> Iterator[tuple[Any, Any]]:
        """The two rows of a 2 x E array side by side, some entries at a time."""
        with self.npy(key, "iu", 2) as first, self.npy(key, "iu", 2) as second:
            rows, columns = first.shape
            if rows != 2:
                raise SgcnError(f"{self.path} has {key} of shape {first.shape}, expected (2, E)")
            if first.fortran:  # the pairs lie side by side in the file, too
                first.shape, first.fortran = (columns, rows), False
                yield from ((part[:, 0], part[:, 1]) for part in first.parts())
                return
            first.shape = second.shape = (columns,)
            with unreadable(self.path, self.what):
                second.file.seek(columns * second.dtype.itemsize, os.SEEK_CUR)
            yield from zip(first.parts(), second.parts(), strict=True)

    def all(self, key: str, kinds: str = "iu", ndim: int = 1, dtype: Any = None) -> Any:
        with self.npy(key, kinds, ndim) as array:
            return array.all(dtype)

    def __enter__(self) -> Npz:
        return self

    def __exit__(self, *error: object) -> None:
        self.zip.close()


def check_size(path: Path, unpacked: int, limit: int) -> None:
    """Refuse what would unpack to more than ``limit`` bytes."""
    if unpacked > limit:
        raise SgcnError(
            f"{path} unpacks to {unpacked / 2**30:,.1f} GiB or more, expected at most "
            f"{limit / 2**30:,.1f}: raise limit_gb if you trust it"
        )


@contextmanager
def gunzipped(path: Path, what: str, limit: int = LIMIT) -> Iterator[Readable]:
    """The bytes of a ``.gz`` file (or of a plain one of the same name), at most ``limit``."""
    if checked(path, what).suffix != ".gz":
        with path.open("rb") as plain:
            yield plain
        return
    with gzip.open(path, "rb") as file:
        yield _Limited(file, path, what, limit)


class _Limited:
    """A stream that refuses to give more than it should."""

    def __init__(self, file: Readable, path: Path, what: str, limit: int) -> None:
        self.file, self.path, self.what = file, path, what
        self.left = self.limit = limit

    def read(self, size: int = -1, /) -> bytes:
        with unreadable(self.path, self.what):
            data = self.file.read(size if size >= 0 else self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            check_size(self.path, self.limit - self.left, self.limit)
        return data


def read_json(path: Path, what: str, kind: type) -> Any:
    """A JSON file whose top is a ``kind`` (dict or list)."""
    with unreadable(checked(path, what), what), path.open("rb") as file:
        value = json.load(file)
    if not isinstance(value, kind):
        raise SgcnError(f"{path} holds a {type(value).__name__}, expected {what}")
    return value


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
    for data in _whole_lines(stream, path, what):
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
                raise SgcnError(
                    f"{path} has {field[:40]!r} in line {before + lines[bad // columns] + 1}, "
                    f"expected {what}: a {'whole' if kind.kind in 'iu' else 'real'} number in "
                    f"field {bad % columns + 1}"
                )
            before += seen
            data = data[used:]
            if rows:
                yield out.reshape(rows, columns).astype(kind, copy=False)


def _whole_lines(stream: Readable, path: Path, what: str) -> Iterator[Any]:
    """The bytes of ``stream``, cut behind line ends; the last line gets one if it has none."""
    rest = b""
    while True:
        with unreadable(path, what):
            data = stream.read(max(_TEXT, len(rest)))
        if not data:
            break
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
