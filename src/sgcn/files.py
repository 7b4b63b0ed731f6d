"""Files that appear whole or not at all: written under a temporary name beside, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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


def _umask() -> int:
    """The process's mask for new files, which mkstemp does not follow; there is no other way."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
