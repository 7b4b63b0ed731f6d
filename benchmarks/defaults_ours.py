"""`sgcn train` without options, in a process of its own, for `python -m benchmarks defaults`."""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

from benchmarks.process import answer
from sgcn.cli import main
from sgcn.runs import directory
from sgcn.runs.layout import CONFIG, SUMMARY
from sgcn.training.loop import fit


def run(order: dict[str, Any]) -> dict[str, Any]:
    """Scores of the run, seconds of CPU in `fit` and in all, and the options that it came to."""
    spent = 0.0

    def timed(*args: Any, **kwargs: Any) -> Any:
        nonlocal spent
        began = process_time()
        try:
            return fit(*args, **kwargs)
        finally:
            spent += process_time() - began

    with tempfile.TemporaryDirectory() as folder, patch.object(directory, fit.__name__, timed):
        out = Path(folder) / "run"
        seed = str(order["seed"])
        if code := main(["train", order["data"], "--seed", seed, "--out", str(out), "--quiet"]):
            sys.exit(code)  # it has said why
        summary = json.loads((out / SUMMARY).read_text())
        config = tomllib.loads((out / CONFIG).read_text())
    return {
        "validation": summary["validation"]["f1_micro"], "test": summary["test"]["f1_micro"],
        "seconds": spent, "process_seconds": process_time(), "steps": summary["steps"],
        "config": {key: value for key, value in config.items() if key != "data"},
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(answer(run))
