"""Progress for people who watch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import IO, Any

from sgcn.training.events import Event, ScoreEvent, StepEvent
from sgcn.training.sinks.base import Sink

_LINES = 50  # of a run, where there is no bar


class Progress(Sink):
    """A bar on a terminal or in a notebook, elsewhere a line for a score now and then."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream or sys.stderr
        self._bar: Any = None
        self._steps = 0
        self._state: dict[str, Any] = {"score": "", "loss": 0.0, "line": 0}

    def start(self, steps: int, steps_per_epoch: int) -> None:
        self._steps = steps
        if self._stream.isatty() or "ipykernel" in sys.modules:
            from tqdm import tqdm

            self._bar = tqdm(total=steps, unit="step", file=self._stream, leave=False)

    def emit(self, event: Event) -> None:
        state = self._state
        if isinstance(event, StepEvent):
            state["loss"] = event.loss
            if self._bar is not None:
                self._bar.update(event.step + 1 - self._bar.n)
                self._bar.set_description(f"epoch {event.epoch + 1}", refresh=False)
                self._bar.set_postfix_str(f"loss {event.loss:.4f}{state['score']}", refresh=False)
        elif isinstance(event, ScoreEvent):
            state["score"] = f", validation F1 {event.validation['f1_micro']:.4f}"
            late = event.step >= state["line"] or event.step == self._steps
            if self._bar is None and late:
                state["line"] = event.step + self._steps // _LINES
                print(
                    f"step {event.step} of {self._steps}, epoch {event.epoch + 1}: "
                    f"loss {state['loss']:.4f}{state['score']}, {event.seconds:.1f} s",
                    file=self._stream,
                    flush=True,
                )

    def state(self) -> dict[str, Any]:
        return dict(self._state)

    def resume(self, state: Mapping[str, Any]) -> None:
        self._state = dict(state)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
