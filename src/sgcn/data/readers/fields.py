"""Fields of text as bytes and where they are in them, and names that are numbered as they come."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.errors import SgcnError
from sgcn.kernels import names as kernels
from sgcn.kernels import text

Bytes = npt.NDArray[np.uint8]


class NotANumberError(Exception):
    """The field of ``column`` (from 0) in the line ``line``, if that is known, is no number."""

    def __init__(self, word: str, line: int | None, column: int, integer: bool) -> None:
        super().__init__(word)
        self.column, self.kind = column, "whole" if integer else "real"
        self.found = f"{word[:40]!r}" + ("" if line is None else f" in line {line}")


class Fields:
    """Rows and columns of text: a field is ``data[starts[r, c]:ends[r, c]]``, UTF-8.

    ``lines`` are the numbers of the rows' lines, if they are known.
    """

    def __init__(
        self, data: Bytes, starts: npt.NDArray[Any], ends: npt.NDArray[Any], lines: Any = None
    ) -> None:
        # One type for most of them: kernels are compiled for each.
        kind = np.int32 if len(data) < 2**31 else np.int64
        self.data = data
        self.data.flags.writeable = False
        self.lines = lines
        self.starts: npt.NDArray[Any] = np.ascontiguousarray(starts, kind)
        self.ends: npt.NDArray[Any] = np.ascontiguousarray(ends, kind)

    def __len__(self) -> int:
        return len(self.starts)

    @staticmethod
    def of(words: list[str], width: int = 1, lines: Any = None) -> Fields:
        """The fields of ``words``, row by row."""
        parts = [word.encode("utf-8", "surrogatepass") for word in words]
        sizes = np.fromiter(map(len, parts), np.int64, len(parts)).reshape(-1, width)
        ends = np.cumsum(sizes).reshape(-1, width)
        return Fields(np.frombuffer(b"".join(parts), np.uint8), ends - sizes, ends, lines)

    def columns(self, chosen: Sequence[int]) -> Fields:
        """Some of the columns."""
        if list(chosen) == list(range(self.starts.shape[1])):
            return self
        return Fields(self.data, self.starts[:, chosen], self.ends[:, chosen], self.lines)

    def numbers(self, *, integer: bool = False) -> npt.NDArray[Any]:
        """All fields as int64, or as float64 (nothing is nan); `NotANumberError` has the first
        that is none."""
        out: npt.NDArray[Any] = np.empty(self.starts.shape, np.int64 if integer else np.float64)
        starts, ends = self.starts.reshape(-1), self.ends.reshape(-1)
        read = text.whole_numbers if integer else text.real_numbers
        bad = int(read(self.data, starts, ends, out.reshape(-1)))
        if bad >= 0:
            row, column = divmod(bad, out.shape[1])
            word = self.data[starts[bad] : ends[bad]].tobytes().decode(errors="replace")
            line = None if self.lines is None else int(self.lines[row])
            raise NotANumberError(word, line, column, integer)
        return out


class Names:
    """Every name once, numbered in the order of appearance."""

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.full(1 << 10, -1, np.int32)
        self._hashes = np.empty(1 << 9, np.uint64)
        self._offsets = np.zeros((1 << 9) + 1, np.int64)
        self._pool = np.empty(1 << 12, np.uint8)

    def __len__(self) -> int:
        return self.count

    def number(self, fields: Fields) -> npt.NDArray[np.int32]:
        """The number of each field, row by row; a new name gets the next."""
        self._make_room(fields.starts.size, int(np.subtract(fields.ends, fields.starts).sum()))
        out = np.empty(fields.starts.shape, np.int32)
        table = (self._slots, self._hashes, self._pool, self._offsets)
        starts, ends = fields.starts.reshape(-1), fields.ends.reshape(-1)
        self.count = kernels.number_names(
            fields.data, starts, ends, table, self.count, out.reshape(-1)
        )
        return out

    def number_ints(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The same for whole numbers: each is a name of eight bytes."""
        data = np.ascontiguousarray(values, np.int64).reshape(-1).view(np.uint8)
        starts = np.arange(0, len(data), 8).reshape(values.shape)
        return self.number(Fields(data, starts, starts + 8))

    def _make_room(self, words: int, size: int) -> None:
        most = self.count + words
        if most > len(self._hashes):
            room = 1 << (most - 1).bit_length()
            self._hashes = np.resize(self._hashes, room)
            self._offsets = np.resize(self._offsets, room + 1)
            self._slots = np.full(2 * room, -1, np.int32)
            kernels.place_names(self._hashes, self.count, self._slots)
        used = int(self._offsets[self.count])
        if used + size > len(self._pool):
            self._pool = np.resize(self._pool, 2 * (used + size))

    def texts(self, where: str) -> list[str]:
        """The names in order."""
        ends = self._offsets[: self.count + 1].tolist()
        data = self._pool[: ends[-1]].tobytes()
        try:
            return [data[a:b].decode() for a, b in pairwise(ends)]
        except UnicodeDecodeError:
            raise SgcnError(f"{where} has names that are not UTF-8, expected text") from None

    def ints(self) -> npt.NDArray[np.int64]:
        """The whole numbers in order."""
        return self._pool[: 8 * self.count].view(np.int64)
