"""Files of others, read with suspicion: one sentence for each way in which they can be wrong.

Nothing here trusts a declared size, follows a path out of its folder, or runs a pickle.
"""

from __future__ import annotations

import errno
import json
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sgcn.errors import SgcnError

#: What a packed file may unpack to, in bytes, unless the user says otherwise.
LIMIT = 64 << 30


def folder(source: Path, what: str) -> Path:
    """``source`` itself, if it is a folder."""
    if not source.is_dir():
        raise SgcnError(f"{source} is not a folder, expected {what}")
    return source


def existing(source: Path, name: str, what: str) -> Path:
    """The file ``name`` of the folder ``source``: there, inside it, and not a web page."""
    path = folder(source, what) / name
    if not path.resolve().is_relative_to(source.resolve()):
        raise SgcnError(f"{path} leads out of {source}, expected {what} inside it")
    return checked(path, what)


def there(source: Path, name: str) -> bool:
    """Whether ``source`` has the file, or a link that leads nowhere."""
    return (source / name).exists() or (source / name).is_symlink()


def checked(path: Path, what: str) -> Path:
    """``path`` itself, if it is a file with something in it that is not a web page."""
    if path.is_dir():
        raise SgcnError(f"{path} is a folder, expected a file: {what}")
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
        if _is_torn(path):
            raise SgcnError(
                f"{path} cannot be read, expected {what}: it is truncated, fetch it again"
            ) from None
        words = " ".join(str(error).split()) or type(error).__name__
        raise SgcnError(f"{path} cannot be read, expected {what} ({words[:200]})") from None


def _is_torn(path: Path) -> bool:
    """Whether a zip file (``.npz``, ``.pt``) begins and does not end: its end lists what it has."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\3\4" and not zipfile.is_zipfile(path)
    except OSError:
        return False


def check_size(path: Path, unpacked: int, limit: int) -> None:
    """Refuse what would unpack to more than ``limit`` bytes."""
    if unpacked > limit:
        raise SgcnError(
            f"{path} unpacks to {unpacked / 2**30:,.1f} GiB or more, expected at most "
            f"{limit / 2**30:,.1f}: raise limit_gb if you trust it"
        )


def read_json(path: Path, what: str, kind: type) -> Any:
    """A JSON file whose outermost value is a ``kind`` (dict or list)."""
    with unreadable(checked(path, what), what), path.open("rb") as file:
        value = json.load(file)
    if not isinstance(value, kind):
        raise SgcnError(f"{path} holds a {type(value).__name__}, expected {what}")
    return value
