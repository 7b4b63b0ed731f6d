"""JSON of any length in bounded memory: an object's members, and long lists a piece at a time.

`ijson` is about as fast, but refuses NaN and Infinity, which Python's `json` and so NetworkX write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np
import numpy.typing as npt

from sgcn.chunks import progress
from sgcn.data.readers.files import checked, unreadable
from sgcn.errors import SgcnError
from sgcn.kernels import text

#: Bytes that are read at a time, and what a single item may have.
_STEP, _ITEM = 1 << 18, 1 << 28
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_WORD = re.compile(rb"[-+.0-9A-Za-z]+")
_BLANKS = b" \t\r\n"
_CLOSING = {b"[": b"]", b"{": b"}"}


class JsonText:
    """A cursor in the text. Whoever is given a member's key reads or skips its value.

    The text is cut between items and the pieces go through `json`, which sees every byte that is
    wanted; what is skipped is only searched for its end.
    """

    def __init__(
        self, stream: IO[bytes], path: Path, what: str, step: Callable[[int], object]
    ) -> None:
        self.stream, self.path, self.what, self.step = stream, path, what, step
        self.data, self.at, self.before = b"", 0, 0

    def members(self) -> Iterator[str]:
        """The keys of the object at the cursor, which then stands before the value."""
        self._expect(b"{")
        more = self._peek() != b"}"
        while more:
            key = self._match(_STRING)
            self._expect(b":")
            yield str(self._parsed(key))
            more = self._peek() != b"}"
            if more:
                self._expect(b",")
        self.at += 1

    def value(self) -> Any:
        """The complete value at the cursor."""
        start = self._peek()
        if start not in b"[{":
            return self._parsed(self._match(_STRING if start == b'"' else _WORD))
        pieces, size = [], 0
        for piece in self._pieces():
            pieces.append(piece)
            size += len(piece)
            self._check_item(size)
        return self._parsed(start + b",".join(pieces) + _CLOSING[start])

    def skip(self) -> None:
        """Pass the value at the cursor."""
        if self._peek() in b"[{":
            for _ in self._pieces():
                pass
        else:
            self.value()

    def items(self) -> Iterator[list[Any]]:
        """The items of the list at the cursor, some thousands at a time."""
        return self._some(b"[", "a list")

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries of the object at the cursor, some thousands at a time."""
        return self._some(b"{", "an object")

    def end(self) -> None:
        """Nothing but blanks may follow."""
        if self._peek(required=False):
            self._wrong("the end of the file")

    # -- bytes ----------------------------------------------------------------------------------

    def _some(self, opening: bytes, wanted: str) -> Iterator[Any]:
        if self._peek() != opening:
            self._wrong(wanted)
        return (self._parsed(opening + piece + _CLOSING[opening]) for piece in self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        """The text between the brackets at the cursor, cut at commas between items."""
        closing = _CLOSING[self._peek()]
        self.at += 1
        first, closed = True, False
        while not closed:
            comma, end = text.json_items(np.frombuffer(self.data, np.uint8), self.at)
            closed = end >= 0
            cut = end if closed else comma
            if cut >= 0:
                piece = self.data[self.at : cut]
                self.at = cut
                self._expect(closing if closed else b",")
                if not piece.strip(_BLANKS) and not (first and closed):
                    self._wrong("an item")
                first = False
                yield piece
            elif not self._fill():
                self._wrong(closing.decode())

    def _fill(self) -> bool:
        """Drop what is behind the cursor and read on; whether there was more."""
        rest = self.data[self.at :]
        self._check_item(len(rest))
        self.before += self.at
        with unreadable(self.path, self.what):
            more = self.stream.read(max(_STEP, len(rest)))
        self.step(len(more))
        self.data, self.at = rest + more, 0
        return len(more) > 0

    def _check_item(self, size: int) -> None:
        if size > _ITEM:
            raise SgcnError(
                f"{self.path} has an item of more than {_ITEM >> 20} MiB at byte {self.before}, "
                f"expected {self.what}"
            )

    def _peek(self, *, required: bool = True) -> bytes:
        """The next byte that is not blank; the cursor stands on it."""
        while True:
            while self.at < len(self.data):
                byte = self.data[self.at : self.at + 1]
                if byte not in _BLANKS:
                    return byte
                self.at += 1
            if not self._fill():
                if required:
                    self._wrong("more")
                return b""

    def _expect(self, sign: bytes) -> None:
        if self._peek() != sign:
            self._wrong(sign.decode())
        self.at += 1

    def _match(self, pattern: re.Pattern[bytes]) -> bytes:
        begun = self._peek() == b'"' or pattern is _WORD
        found = pattern.match(self.data, self.at)
        while begun and (found is None or found.end() == len(self.data)) and self._fill():
            found = pattern.match(self.data, self.at)
        if found is None:
            self._wrong("a string" if pattern is _STRING else "a value")
        self.at = found.end()
        return found[0]

    def _parsed(self, piece: bytes) -> Any:
        with unreadable(self.path, self.what):
            return json.loads(piece.decode())

    def _wrong(self, wanted: str) -> NoReturn:
        came = self.data[self.at : self.at + 10].decode("utf-8", "replace")
        raise SgcnError(
            f"{self.path} has {came or 'its end'!r} at byte {self.before + self.at} where "
            f"{wanted!r} should be, expected {self.what}"
        )


def as_array(values: list[Any]) -> npt.NDArray[Any]:
    """A list as an array; lists of several lengths in it make one of objects."""
    try:
        return np.array(values, None if values else np.int64)
    except (ValueError, OverflowError):
        return np.empty(0, np.object_)


def whole_numbers(values: list[Any]) -> npt.NDArray[Any] | None:
    """A list as an array of whole numbers, if it is one."""
    numbers = as_array(values)
    return numbers if numbers.ndim == 1 and numbers.dtype.kind in "iu" else None


@contextmanager
def json_text(path: Path, what: str) -> Iterator[JsonText]:
    """The text of a JSON file, which must end when the block does."""
    size = checked(path, what).stat().st_size
    with path.open("rb") as file, progress(f"reading {path.name}", "B", size) as step:
        text = JsonText(file, path, what, step)
        yield text
        text.end()
