"""The JSON file of a benchmark."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from sgcn.errors import SgcnError


def target(out: str | None) -> Path | None:
    """The file that ``--out`` names, refused early if it cannot be written."""
    if out is None:
        return None
    path = Path(out)
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise SgcnError(f"--out is {out!r}, expected a file in a directory that exists")
    return path


def write(path: Path, report: dict[str, Any]) -> None:
    """Under a temporary name, then renamed: the file is whole or it is not there."""
    handle, temporary = tempfile.mkstemp(suffix=".json", dir=path.absolute().parent)
    with os.fdopen(handle, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
