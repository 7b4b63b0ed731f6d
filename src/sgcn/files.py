"""Files and directories that appear complete or not at all: written beside, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sgcn.errors import SgcnError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path in a temporary folder beside ``path`` at which to make a file or directory.

    It has the name of ``path`` (writers go by the ending) and takes its place when the block ends
    well. Whatever ends the block early leaves nothing behind, and ``path`` as it was.
    """
    folder = Path(tempfile.mkdtemp(prefix=".", dir=path.absolute().parent))
    temporary = folder / path.name
    try:
        yield temporary
        if temporary.is_file():
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        if path.is_dir():  # which only an empty directory could replace
            os.replace(path, folder / "old")
        os.replace(temporary, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def check_target(option: str, path: Path, endings: Sequence[str]) -> None:
    """Make sure that ``option`` names a file that can be written, before any work is done."""
    folder = path.absolute().parent
    if path.suffix not in endings or path.is_dir() or not folder.is_dir():
        raise SgcnError(
            f"{option} is '{path}', expected a file {' or '.join(endings)} in a directory that "
            "exists"
        )
    if not os.access(folder, os.W_OK):
        raise SgcnError(f"{option} is '{path}', expected a directory where files can be written")


def nearest_folder(path: Path) -> Path:
    """``path`` itself or the first above it that exists: the place where it would be made."""
    return next(place for place in (path, *path.absolute().parents) if place.exists())


def can_be_made(path: Path) -> bool:
    """Whether the directory ``path`` is there, or can be made, and files can be written to it."""
    home = nearest_folder(path)
    return home.is_dir() and os.access(home, os.W_OK)


def check_new(path: Path) -> Path:
    """``path`` itself, if nothing is there yet: said before the work and not after it."""
    if os.path.exists(path):  # a name that is too long is for whoever writes to complain about
        raise SgcnError(f"{path} exists already, expected a new name: choose another one")
    return path


@contextmanager
def appearing(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """`replacing` for a new ``path``, or an old one with ``overwrite``.

    Folders on the way to it are made, and removed again if it did not appear. What cannot be
    written becomes one sentence.
    """
    if not overwrite:
        check_new(path)
    missing = [parent for parent in path.absolute().parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            yield temporary
    except BaseException as error:
        with suppress(OSError):  # someone else may have put something there meanwhile
            for parent in missing:
                parent.rmdir()
        if isinstance(error, OSError):
            raise SgcnError(
                f"{path} cannot be written ({error.strerror or error}), expected a place with room "
                "and permission for it"
            ) from None
        raise
