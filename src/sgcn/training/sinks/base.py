"""What a sink is, and its part of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgcn.training.events import Event


class Sink:
    """Hears every event of a run. Subclasses take what they need; no sink changes the training.

    The order of calls: ``resume`` if there is a checkpoint with a state, ``start``, then ``emit``
    and ``state`` in turns, and ``close``, however the run ends.
    """

    def start(self, steps: int, steps_per_epoch: int) -> None:
        """Training begins, or goes on; ``steps`` at the most."""

    def emit(self, event: Event) -> None: ...

    def state(self) -> dict[str, Any] | None:
        """What a checkpoint keeps, as JSON has it, so that another sink can go on from here."""
        return None

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave at the checkpoint; events after it come again."""

    def close(self) -> None: ...


def states(sinks: Sequence[Sink]) -> dict[str, dict[str, Any]]:
    """The states of those that have one, by name."""
    found = ((name, sink.state()) for name, sink in _named(sinks))
    return {name: state for name, state in found if state is not None}


def load_states(sinks: Sequence[Sink], saved: Mapping[str, Mapping[str, Any]]) -> None:
    """Give each sink the state that one of its name had; others start anew."""
    for name, sink in _named(sinks):
        if name in saved:
            sink.resume(saved[name])


def _named(sinks: Sequence[Sink]) -> Iterator[tuple[str, Sink]]:
    """Each sink with a name: its class, and its number among those of this class."""
    seen: dict[str, int] = {}
    for sink in sinks:
        kind = type(sink).__qualname__
        seen[kind] = seen.get(kind, 0) + 1
        yield f"{kind} {seen[kind]}", sink
