"""Events in a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sgcn.training.events import Event, event_of
from sgcn.training.sinks.base import Sink


@dataclass
class Memory(Sink):
    """Keeps all events, in checkpoints too."""

    events: list[Event] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def state(self) -> dict[str, Any]:
        return {"events": [asdict(event) for event in self.events]}

    def resume(self, state: Mapping[str, Any]) -> None:
        self.events[:] = [event_of(values) for values in state["events"]]
