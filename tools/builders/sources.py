"""Source files of a builder: plain or compressed, read whole, with a checksum."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sgcn.errors import SgcnError

_OPENERS = {"": None, ".gz": gzip.decompress, ".xz": lzma.decompress, ".bz2": bz2.decompress}


@dataclass(frozen=True)
class Source:
    """A text file: its path for messages, and its bytes without compression."""

    path: Path
    content: bytes

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line with its number, from 1 on, without its end."""
        text = io.TextIOWrapper(io.BytesIO(self.content), "utf-8", errors="replace", newline="\n")
        for number, line in enumerate(text, 1):
            yield number, line.rstrip("\r\n")

    def error(self, number: int, line: str, expected: str) -> SgcnError:
        """What to raise about line ``number``."""
        shown = line if len(line) <= 40 else f"{line[:40]}.."
        return SgcnError(f"{self.path}, line {number}, is {shown!r}, expected {expected}")


def read_source(folder: Path, name: str) -> Source:
    """The file ``name`` in ``folder``, or its ``.gz``, ``.xz`` or ``.bz2``."""
    if not folder.is_dir():
        raise SgcnError(f"{folder} is not a folder, expected one that holds {name}")
    for suffix, decompress in _OPENERS.items():
        path = folder / f"{name}{suffix}"
        if not path.is_file():
            continue
        try:
            content = path.read_bytes()
            return Source(path, decompress(content) if decompress else content)
        except (OSError, ValueError, EOFError, lzma.LZMAError, zlib.error) as error:
            raise SgcnError(
                f"{path} cannot be read, expected a whole file: fetch it again ({error})"
            ) from None
    raise SgcnError(f"{folder} has no {name}, expected this file, plain or as .gz, .xz or .bz2")
