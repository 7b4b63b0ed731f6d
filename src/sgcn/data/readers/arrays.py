"""Arrays of others: ``.npy`` and ``.npz`` files, some rows at a time."""

from __future__ import annotations

import math
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from sgcn.chunks import chunks, progress
from sgcn.data.checks import check_form
from sgcn.data.readers.files import LIMIT, check_size, checked, unreadable
from sgcn.errors import SgcnError


class Npy:
    """An array of the ``.npy`` format in a stream: its header now, its rows when asked for.

    ``kinds`` are numpy's letters for the types that will do ("iu" whole numbers, "f" reals),
    ``dims`` the numbers of dimensions; ``size`` is how many bytes the stream has.
    """

    def __init__(
        self, file: IO[bytes], path: Path, what: str, kinds: str, dims: tuple[int, ...], size: int
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
        check_form(self, str(path), what, kinds, *dims)
        # Before anything is allocated for what the header says.
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
        """The rows, some at a time."""
        if self.fortran and len(self.shape) > 1:
            raise SgcnError(
                f"{self.path} holds columns one after the other, expected {self.what} row by row: "
                "save it again with numpy.ascontiguousarray"
            )
        width = math.prod(self.shape[1:])
        with progress(f"reading {self.path.name}", " rows", self.shape[0]) as step:
            for part in chunks(self.shape[0], width):
                rows = part.stop - part.start
                wanted = rows * width * self.dtype.itemsize
                with unreadable(self.path, self.what):
                    data = self.file.read(wanted)
                if len(data) != wanted:
                    self._truncated(part.start + len(data) // max(1, wanted // rows))
                yield np.frombuffer(data, self.dtype).reshape(rows, *self.shape[1:])
                step(rows)

    def all(self, dtype: Any = None) -> Any:
        """All rows as one array of ``dtype``."""
        array, start = np.empty(0, dtype or self.dtype), 0
        for part in self.parts():
            if start == 0:  # not before the first rows are there: the header may say anything
                with unreadable(self.path, self.what):
                    array = np.empty(self.shape, dtype or self.dtype)
            array[start : start + len(part)] = part
            start += len(part)
        return array.reshape(self.shape)


@contextmanager
def npy(path: Path, what: str, kinds: str = "iuf", *dims: int) -> Iterator[Npy]:
    """The array of a ``.npy`` file, which has one of ``dims`` dimensions (2 if none is said)."""
    with checked(path, what).open("rb") as file:
        yield Npy(file, path, what, kinds, dims or (2,), os.fstat(file.fileno()).st_size)


class Npz(ExitStack):
    """The arrays of an ``.npz`` file, streamed out of it until it is closed."""

    def __init__(self, path: Path, what: str, limit: int = LIMIT) -> None:
        super().__init__()
        self.path, self.what = path, what
        with unreadable(checked(path, what), what):
            self.zip = self.enter_context(zipfile.ZipFile(path))
        self.sizes = {info.filename: info.file_size for info in self.zip.infolist()}
        check_size(path, sum(self.sizes.values()), limit)

    def __contains__(self, key: str) -> bool:
        return f"{key}.npy" in self.sizes

    def npy(self, key: str, kinds: str = "iu", ndim: int = 1) -> Npy:
        if key not in self:
            raise SgcnError(f"{self.path} has no array {key!r}, expected {self.what}")
        with unreadable(self.path, self.what):
            file = self.enter_context(self.zip.open(f"{key}.npy"))
        size = self.sizes[f"{key}.npy"]
        return Npy(file, self.path, f"{key} of {self.what}", kinds, (ndim,), size)

    def pairs(self, key: str) -> tuple[int, Iterator[tuple[Any, Any]]]:
        """How many columns a 2 x E array has, and its two rows side by side, some at a time."""
        first, second = (self.npy(key, "iu", 2) for _ in range(2))
        rows, columns = first.shape
        if rows != 2:
            raise SgcnError(f"{self.path} has {key} of shape {first.shape}, expected (2, E)")
        if first.fortran:  # the pairs lie side by side in the file, too
            first.shape, first.fortran = (columns, rows), False
            return columns, ((part[:, 0], part[:, 1]) for part in first.parts())
        first.shape = second.shape = (columns,)
        for _ in second.parts():  # a zip file's own seek takes steps of 16 MiB
            pass
        return columns, zip(first.parts(), second.parts(), strict=True)

    def all(self, key: str, kinds: str = "iu", ndim: int = 1, dtype: Any = None) -> Any:
        return self.npy(key, kinds, ndim).all(dtype)
