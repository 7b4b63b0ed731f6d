"""Sinks: what listens to the events of a run. A new one is a file here and a line in `SINKS`."""

from __future__ import annotations

from sgcn.training.sinks.base import Sink, load_states, states
from sgcn.training.sinks.jsonlines import JsonLines
from sgcn.training.sinks.memory import Memory
from sgcn.training.sinks.progress import Progress

SINKS: dict[str, type[Sink]] = {
    "memory": Memory,
    "jsonlines": JsonLines,
    "progress": Progress,
}

__all__ = ["SINKS", "JsonLines", "Memory", "Progress", "Sink", "load_states", "states"]
