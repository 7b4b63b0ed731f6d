"""Numbers and curves of a run: what its file keeps, and how it is read; F1 in percent."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sgcn.experiments.core import MEMORY, PROBE, TIMES, Run
from sgcn.training.events import Event, ScoreEvent, StepEvent
from sgcn.training.loop import Fitted

Float64 = npt.NDArray[np.float64]

#: The paper's five parts of the time.
PARTS = (
    "snapshot_sampling", "snapshot_transfer", "regular_sampling", "regular_transfer", "compute",
)  # fmt: skip
#: Of the process, the tables and the device.
SIZES = ("peak_rss_mb", "rss_mb", "tables_mb", "device_mb")
_POINTS = 60  # of a curve, at most

# -- what a file keeps --------------------------------------------------------------------------


def of_training(
    fitted: Fitted, events: Sequence[Event], seconds: Sequence[float]
) -> dict[str, Any]:
    """Of a training whose steps took ``seconds``: its numbers, and its curves in few points."""
    steps = [event for event in events if isinstance(event, StepEvent)]
    scores = [event for event in events if isinstance(event, ScoreEvent)]
    clock = np.concatenate([[0.0], np.cumsum(seconds)])
    losses = _over_epoch(np.array([event.loss for event in steps]))
    seen = {
        key: np.array([_number(event.validation.get(key)) for event in scores], float)
        for key in ("loss", "f1_micro")
    }
    at, now = np.array([event.step for event in scores], int), np.arange(len(steps))
    parts = {
        part: statistics.fmean(taken) if taken else None
        for part, taken in {
            "sampling": [event.sampling for event in steps if not event.snapshot],
            "transfer": [event.transfer for event in steps if not event.snapshot],
            "compute": [event.compute for event in steps if not event.snapshot],
            "snapshot": [event.compute for event in steps if event.snapshot],
        }.items()
    }
    return {
        "test": fitted.test,
        "validation": fitted.validation,
        "best_step": fitted.best_step,
        "steps": fitted.steps,
        "snapshots": fitted.snapshots,
        "restarts": fitted.restarts,
        "cpu_seconds": float(clock[-1]),
        "lowest_validation_loss": float(np.nanmin(seen["loss"])) if len(scores) else math.nan,
        "final_training_loss": float(losses[-1]),
        "step_seconds": parts,
        "curves": {
            "training_loss": _thin(now, clock[now], losses),
            "validation_loss": _thin(at, clock[at], seen["loss"]),
            "validation_f1": _thin(at, clock[at], 100.0 * seen["f1_micro"]),
        },
    }


def of_probes(found: Mapping[str, Any]) -> dict[str, Any]:
    """Of what `sgcn variance` found along a run."""
    steps = np.array([e["step"] for e in found["steps"]], float)
    values = np.array([e["relative_mse"] for e in found["steps"]], float)
    curve = _thin(steps, np.full(len(steps), math.nan), values)
    return {"gradient_mse": found["geometric_relative_mse"], "curves": {"gradient_mse": curve}}


def _thin(step: Any, seconds: Float64, value: Float64) -> dict[str, list[float]]:
    """At most `_POINTS` of a curve, the ends among them, in five digits."""
    few = np.linspace(0, len(step) - 1, min(len(step), _POINTS)).astype(int)
    columns = {"step": np.asarray(step, float), "seconds": seconds, "value": value}
    return {key: [float(f"{v:.5g}") for v in all_[few]] for key, all_ in columns.items()}


def _over_epoch(values: Float64) -> Float64:
    """Means of each value and the nine before it, as far as there are so many."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    last = np.arange(1, len(total))
    first = np.maximum(last - 10, 0)
    means: Float64 = (total[last] - total[first]) / (last - first)
    return means


# -- numbers ------------------------------------------------------------------------------------


def _memory(name: str, run: Run) -> float | None:
    found: float | None = run.results[MEMORY]["memory"][name]
    return found


def _time(name: str, run: Run) -> float:
    """Seconds of one snapshot, if there are any, and ten regular steps, in five parts.

    A snapshot reads no history, and rows of features are read inside the products: its transfer
    is 0, and such reading counts as computing.
    """
    found = run.results[TIMES]
    seconds = found["step_seconds"]
    parts = dict.fromkeys(PARTS, 0.0)
    for part, key in zip(PARTS[2:], ("sampling", "transfer", "compute"), strict=True):
        parts[part] = 10 * (seconds[key] or 0.0)
    if seconds["snapshot"] is not None:
        sampling = parts["snapshot_sampling"] = found["snapshot_sampling"]
        parts["compute"] += max(seconds["snapshot"] - sampling, 0.0)
    return sum(parts.values()) if name == "total" else parts[name]


def _number(score: float | None) -> float:
    """A score, or NaN for one that a task or a split does not have."""
    return math.nan if score is None else score


def _kept(name: str, run: Run) -> float | None:
    found: float | None = run.trained[name]
    return found


#: A number for each run.
NUMBERS: dict[str, Callable[[Run], float | None]] = {
    "test_f1": lambda run: 100.0 * _number(run.trained["test"].get("f1_micro")),
    "best_validation_f1": lambda run: 100.0 * _number(run.trained["validation"].get("f1_micro")),
    # The seconds are the processor's, of steps alone.
    **{
        name: partial(_kept, name)
        for name in ("lowest_validation_loss", "final_training_loss", "cpu_seconds", "snapshots",
                     "lr")
    },
    # The geometric mean over the steps that were measured.
    "gradient_mse": lambda run: run.results[PROBE]["gradient_mse"],
    **{name: partial(_memory, name) for name in SIZES},
    **{name: partial(_time, name) for name in (*PARTS, "total")},
}  # fmt: skip


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
    """The loss of a batch is a mean over the last ten; of a run that broke off, nothing."""
    found: dict[str, Any] = {}
    for result in run.results.values():
        found = found or result.get("curves", {}).get(name, {})
    return Curve(*(np.array(found.get(key, []), float) for key in Curve._fields))
