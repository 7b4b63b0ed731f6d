"""What training tells, and the sinks that listen."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True)
class StepEvent:
    """One optimiser step. Times are seconds; ``seconds`` counts from the start of the run."""

    epoch: int
    step: int
    loss: float
    gradient_norm: float
    drift: float
    snapshot: bool
    restart: bool
    seconds: float
    sampling: float
    transfer: float
    compute: float
    event: str = "step"


@dataclass(frozen=True)
class ScoreEvent:
    """A look at the validation nodes, of the weights before step ``step``.

    ``evaluation`` is the time of a pass made for it; a snapshot's own pass costs nothing more.
    """

    epoch: int
    step: int
    validation: dict[str, float]
    best: bool
    seconds: float
    evaluation: float
    event: str = "score"


@dataclass(frozen=True)
class EpochEvent:
    """The end of an epoch."""

    epoch: int
    step: int
    loss: float
    validation: dict[str, float] | None
    seconds: float
    event: str = "epoch"


@dataclass(frozen=True)
class ProbeEvent:
    """What a `GradientProbe` found before step ``step``: relative errors of the gradient."""

    step: int
    relative_mse: float
    relative_bias2: float
    relative_variance: float
    event: str = "probe"


Event = StepEvent | ScoreEvent | EpochEvent | ProbeEvent


def to_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: a score that does not exist (NaN) is null."""

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: finite(inner) for key, inner in part.items()}
        if isinstance(part, (list, tuple)):
            return [finite(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(finite(value), indent=indent, allow_nan=False)


class Sink:
    """Hears every event of a run. Subclasses take what they need; no sink changes the training."""

    def start(self, epochs: int, steps: int) -> None: ...

    def emit(self, event: Event) -> None: ...

    def close(self) -> None: ...


@dataclass
class Memory(Sink):
    """Keeps all events in a list."""

    events: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.events.append(event)


class JsonLines(Sink):
    """One JSON object a line. ``keep`` bytes of an earlier run stay; what follows is dropped."""

    def __init__(self, path: Path, keep: int = 0) -> None:
        # A line at a time: whoever follows a run sees its steps as they come.
        self._file: IO[str] = path.open("a", buffering=1)
        self._file.truncate(keep)
        self._file.seek(0, os.SEEK_END)

    @property
    def size(self) -> int:
        """Bytes written so far, all of them on their way to the disk."""
        self._file.flush()
        return self._file.tell()

    def emit(self, event: Event) -> None:
        self._file.write(to_json(asdict(event)) + "\n")

    def close(self) -> None:
        self._file.close()


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
            self._score = f", validation F1 {event.validation['f1_micro']:.4f}"
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

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
