"""Files that appear whole or not at all: written under a temporary name beside, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sgcn.errors import SgcnError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path`` to write to; it becomes ``path`` when the block ends well.

    The name ends like ``path`` (writers go by the ending). Whatever ends the block early leaves no
    file behind, and ``path`` as it was.
    """
    handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.absolute().parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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


def _umask() -> int:
    """The process's mask for new files, which mkstemp does not follow; there is no other way."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
