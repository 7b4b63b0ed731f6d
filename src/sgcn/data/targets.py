"""Places for what a command makes: new ones, where it appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sgcn.errors import SgcnError


def check_new(path: Path) -> Path:
    """``path`` itself, if nothing is there yet: said before the work and not after it."""
    if path.exists():
        raise SgcnError(f"{path} exists already, expected a new name: choose another one")
    return path


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """A temporary place to make ``path`` in; it gets its name at the end, if nothing went wrong.

    Folders on the way to it are made, and taken away again where it did not appear.
    """
    check_new(path)
    missing = [parent for parent in path.absolute().parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield room / path.name
            os.replace(room / path.name, path)
        finally:
            shutil.rmtree(room, ignore_errors=True)
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
