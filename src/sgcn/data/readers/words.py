"""Fields of text as bytes and places in them, and names that are numbered as they come."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.errors import SgcnError
from sgcn.kernels import names as kernels
from sgcn.kernels import text

Bytes = npt.NDArray[np.uint8]


class NotANumberError(SgcnError):
    """Text in the column ``field``, if that is known: who asked may know what to do about it."""

    field: int | None = None


class Words:
    """Field f is ``data[starts[f]:ends[f]]``, UTF-8, of the line ``lines[f]`` if that is known."""

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
    def of(words: list[str], lines: Any = None) -> Words:
        parts = [word.encode("utf-8", "surrogatepass") for word in words]
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        ends = np.cumsum(sizes)
        return Words(np.frombuffer(b"".join(parts), np.uint8), ends - sizes, ends, lines)

    @staticmethod
    def by_row(columns: list[Words]) -> Words:
        """The fields of several columns, row by row."""
        if len(columns) == 1:
            return columns[0]
        if all(words.data is columns[0].data for words in columns):
            data, shifts = columns[0].data, [0] * len(columns)
        else:
            data = np.concatenate([words.data for words in columns])
            shifts = np.cumsum([0, *(len(words.data) for words in columns[:-1])]).tolist()
        pairs = list(zip(columns, shifts, strict=True))
        starts = np.stack([words.starts + shift for words, shift in pairs], 1)
        ends = np.stack([words.ends + shift for words, shift in pairs], 1)
        return Words(data, starts.reshape(-1), ends.reshape(-1))

    def numbers(self, place: str, *, whole: bool = False) -> Any:
        """All fields as int64, or as float64 (nothing is nan); the first that is none is named."""
        out = np.empty(len(self), np.int64 if whole else np.float64)
        read = text.whole_numbers if whole else text.real_numbers
        bad = int(read(self.data, self.starts, self.ends, out))
        if bad >= 0:
            word = self.data[self.starts[bad] : self.ends[bad]].tobytes().decode(errors="replace")
            kind = "whole number" if whole else "number"
            line = "" if self.lines is None else f" in line {self.lines[bad]}"
            raise NotANumberError(f"{place} has {word[:40]!r}{line}, expected a {kind}")
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

    def number(self, words: Words) -> npt.NDArray[np.int32]:
        """The number of each word; a new one gets the next."""
        self._make_room(len(words), int(np.subtract(words.ends, words.starts).sum()))
        out = np.empty(len(words), np.int32)
        self.count = kernels.number_names(
            words.data, words.starts, words.ends, self._slots, self._hashes, self._pool,
            self._offsets, self.count, out,
        )  # fmt: skip
        return out

    def number_ints(self, values: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """The same for whole numbers: each is a name of eight bytes."""
        data = values.astype(np.int64).view(np.uint8)
        starts = np.arange(0, len(data), 8)
        return self.number(Words(data, starts, starts + 8))

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

    def texts(self, place: str) -> list[str]:
        """The names in order."""
        ends = self._offsets[: self.count + 1].tolist()
        data = self._pool[: ends[-1]].tobytes()
        try:
            return [data[a:b].decode() for a, b in pairwise(ends)]
        except UnicodeDecodeError:
            raise SgcnError(f"{place} has names that are not UTF-8, expected text") from None

    def ints(self) -> npt.NDArray[np.int64]:
        """The whole numbers in order."""
        return self._pool[: 8 * self.count].view(np.int64)
