"""Progress for people who watch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO, Any

from sgcn.metrics import key_of, label, shown
from sgcn.training.events import EpochEvent, Event, ScoreEvent, StepEvent
from sgcn.training.sinks.base import Sink


class Progress(Sink):
    """A bar on a terminal, one line an epoch elsewhere."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._bar: Any = None
        self._score = ""

    def start(self, epochs: int, steps: int) -> None:
        if self._stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=epochs * steps, unit="step", file=self._stream, leave=False)

    def emit(self, event: Event) -> None:
        if isinstance(event, ScoreEvent):
            key = key_of(event.validation)
            self._score = f", validation {label(key)} {shown(event.validation[key])}"
        elif isinstance(event, StepEvent) and self._bar is not None:
            self._bar.update(event.step + 1 - self._bar.n)
            self._bar.set_postfix_str(f"loss {event.loss:.4f}{self._score}", refresh=False)
        elif isinstance(event, EpochEvent) and self._bar is None:
            print(
                f"epoch {event.epoch + 1}: loss {event.loss:.4f}{self._score}, "
                f"{event.seconds:.1f} s",
                file=self._stream,
                flush=True,
            )

    def state(self) -> dict[str, Any]:
        return {"score": self._score}

    def resume(self, state: Mapping[str, Any]) -> None:
        self._score = state["score"]

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
