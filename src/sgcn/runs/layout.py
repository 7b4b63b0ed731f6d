"""The files of a run directory. Their names can be read without waiting for torch."""

from __future__ import annotations

from pathlib import Path

CONFIG, SUMMARY, MODEL, METRICS, STATE = (
    "config.toml",
    "summary.json",
    "model.safetensors",
    "metrics.jsonl",
    "state",
)


def is_run(path: Path) -> bool:
    return (path / CONFIG).is_file()
