"""What a run directory holds, by name, and what reads it without waiting for torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONFIG, METRICS, MODEL = "config.toml", "metrics.jsonl", "model.safetensors"
SUMMARY, CURVES, STATE = "summary.json", "curves.png", "state"
SCALING = "scaling.safetensors"  # of the features, where training nodes decided it


def is_run(path: Path) -> bool:
    """Whether `sgcn train` wrote ``path``, finished or not."""
    return (path / CONFIG).is_file()


def read_events(run: Path) -> list[dict[str, Any]]:
    """The events of ``run``; a last line cut short by a kill is left out."""
    events = []
    for line in (run / METRICS).read_text().splitlines():
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events
