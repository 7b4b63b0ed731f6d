"""What training reports: events, and JSON of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class StepEvent:
    """One optimiser step. Times are seconds; ``seconds`` counts from the start of the run."""

    epoch: int
    step: int
    loss: float
    gradient_norm: float
    norm_growth: float
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
_KINDS: dict[str, type[Event]] = {
    "step": StepEvent,
    "score": ScoreEvent,
    "epoch": EpochEvent,
    "probe": ProbeEvent,
}


def event_of(values: Mapping[str, Any]) -> Event:
    """The event that ``values`` are the fields of."""
    return _KINDS[values["event"]](**values)


def to_json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: a score that does not exist (NaN) is null."""

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: finite(inner) for key, inner in part.items()}
        if isinstance(part, (list, tuple)):
            return [finite(inner) for inner in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    return json.dumps(finite(value), indent=indent, allow_nan=False)
