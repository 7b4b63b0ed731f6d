"""Numbers and curves of a run, by name; F1 in percent, as the paper has it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sgcn.experiments.core import MEMORY, PROBE, TIMES, Run

Float64 = npt.NDArray[np.float64]

#: The paper's five parts of the time.
PARTS = (
    "snapshot_sampling", "snapshot_transfer", "regular_sampling", "regular_transfer", "compute",
)  # fmt: skip
#: Of the process, the tables and the device.
SIZES = ("peak_rss_mb", "rss_mb", "tables_mb", "device_mb")


def _memory(name: str, run: Run) -> float | None:
    found: float | None = run.results[MEMORY]["memory"][name]
    return found


def _time(name: str, run: Run) -> float:
    """Seconds of one snapshot, if there are any, and ten regular steps, in five parts.

    A snapshot reads no history, and rows of features are read inside the products: its transfer
    is 0, and such reading counts as computing.
    """
    steps = run.events("step")
    regular = [e for e in steps if not e["snapshot"]]
    snapshots = [e["compute"] for e in steps if e["snapshot"]]
    parts = dict.fromkeys(PARTS, 0.0)
    if regular:
        for part, key in zip(PARTS[2:], ("sampling", "transfer", "compute"), strict=True):
            parts[part] = 10 * statistics.fmean(e[key] for e in regular)
    if snapshots:
        sampling = parts["snapshot_sampling"] = run.results[TIMES]["snapshot_sampling"]
        parts["compute"] += max(statistics.fmean(snapshots) - sampling, 0.0)
    return sum(parts.values()) if name == "total" else parts[name]


def _number(score: float | None) -> float:
    """A score, or NaN for one that a task or a split does not have."""
    return math.nan if score is None else score


#: A number for each run.
NUMBERS: dict[str, Callable[[Run], float | None]] = {
    "test_f1": lambda run: 100.0 * _number(run.summary["test"].get("f1_micro")),
    "best_validation_f1": lambda run: 100.0 * _number(run.summary["validation"].get("f1_micro")),
    "lowest_validation_loss": lambda run: float(np.nanmin(curve(run, "validation_loss").value)),
    "final_training_loss": lambda run: float(curve(run, "training_loss").value[-1]),
    # Of training alone: looks at the validation nodes in between are left out.
    "training_seconds": lambda run: float(_clock(run)[-1]),
    "snapshots": lambda run: float(sum(e["snapshot"] for e in run.events("step"))),
    # The geometric mean over the steps that were measured.
    "gradient_mse": lambda run: run.results[PROBE]["geometric_relative_mse"],
    **{name: partial(_memory, name) for name in SIZES},
    **{name: partial(_time, name) for name in (*PARTS, "total")},
}


def number(run: Run, name: str) -> float:
    """NaN if training broke off, or if there is no such thing here (a GPU's memory)."""
    found = None if run.failed else NUMBERS[name](run)
    return math.nan if found is None else float(found)


def spread(runs: Sequence[Run], name: str) -> tuple[float, float]:
    """Mean and standard deviation of a number where it exists; NaN where too few have it."""
    known = [value for run in runs if math.isfinite(value := number(run, name))]
    mean = statistics.fmean(known) if known else math.nan
    return mean, statistics.stdev(known) if len(known) > 1 else math.nan


# -- curves -------------------------------------------------------------------------------------

#: Curves by name, and what an axis calls them.
CURVES = {
    "training_loss": "training loss",
    "validation_loss": "validation loss",
    "validation_f1": "validation F1 (%)",
    "gradient_mse": "gradient MSE over |G|²",
}


class Curve(NamedTuple):
    """A quantity along a run."""

    step: Float64
    seconds: Float64
    value: Float64


def curve(run: Run, name: str) -> Curve:
    """The loss of a batch is a mean over the last ten; seconds are those of training alone."""
    if name == "gradient_mse":
        found = run.results[PROBE]["steps"]
        value = np.array([e["relative_mse"] for e in found], float)
    elif name == "training_loss":
        found = run.events("step")
        value = _over_epoch(np.array([e["loss"] for e in found], float))
    else:
        key, scale = {"validation_loss": ("loss", 1.0), "validation_f1": ("f1_micro", 100.0)}[name]
        found = run.events("score")
        value = scale * np.array([_number(e["validation"].get(key)) for e in found], float)
    at = np.array([e["step"] for e in found], float)
    clock = _clock(run)
    return Curve(at, clock[np.minimum(at.astype(int), len(clock) - 1)], value)


def _clock(run: Run) -> Float64:
    """Seconds before each step, and after the last."""
    spent = [e["sampling"] + e["transfer"] + e["compute"] for e in run.events("step")]
    return np.concatenate([[0.0], np.cumsum(spent)])


def _over_epoch(values: Float64) -> Float64:
    """Means of each value and the nine before it, as far as there are so many."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    last = np.arange(1, len(total))
    first = np.maximum(last - 10, 0)
    means: Float64 = (total[last] - total[first]) / (last - first)
    return means
