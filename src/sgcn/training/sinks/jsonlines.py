"""Events as lines of JSON in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from sgcn.training.events import Event, to_json
from sgcn.training.sinks.base import Sink


class JsonLines(Sink):
    """One JSON object a line. A run that goes on keeps the lines up to its checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept = 0  # bytes of the file that stay
        self._file: IO[str] | None = None

    def start(self, steps: int, steps_per_epoch: int) -> None:
        # A line at a time: whoever follows a run sees its steps as they come.
        self._file = self.path.open("a", buffering=1)
        self._file.truncate(self._kept)
        self._file.seek(0, os.SEEK_END)

    def emit(self, event: Event) -> None:
        assert self._file is not None, "start comes first"
        self._file.write(to_json(asdict(event)) + "\n")

    def state(self) -> dict[str, Any]:
        """The bytes written so far, all of them on their way to the disk."""
        assert self._file is not None, "start comes first"
        self._file.flush()
        return {"bytes": self._file.tell()}

    def resume(self, state: Mapping[str, Any]) -> None:
        self._kept = state["bytes"]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
