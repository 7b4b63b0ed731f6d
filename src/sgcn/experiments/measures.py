"""Numbers and curves of a run, by name; F1 in percent, as the paper has it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sgcn.experiments.core import MEMORY, PROBE, TIMES, Run

Float64 = npt.NDArray[np.float64]

#: The paper's five parts of the time.
PARTS = (
    "snapshot_sampling",
    "snapshot_transfer",
    "regular_sampling",
    "regular_transfer",
    "compute",
)


def _test_f1(run: Run) -> float:
    return 100.0 * _summary(run)["test"]["f1_micro"]


def _best_validation_f1(run: Run) -> float:
    return 100.0 * _summary(run)["validation"]["f1_micro"]


def _lowest_validation_loss(run: Run) -> float:
    return float(np.nanmin(curve(run, "validation_loss").value))


def _training_loss(run: Run) -> float:
    return float(curve(run, "training_loss").value[-1])


def _seconds(run: Run) -> float:
    """Of training alone: looks at the validation nodes in between are left out."""
    return float(_clock(run)[-1])


def _snapshots(run: Run) -> float:
    return float(sum(e["snapshot"] for e in _steps(run)))


def _gradient_mse(run: Run) -> float:
    """The geometric mean over the steps that were measured."""
    found = run.results[PROBE]["geometric_relative_mse"]
    return math.nan if found is None else float(found)


def _summary(run: Run) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = next(
        result["summary"] for kind, result in run.results.items() if kind != PROBE
    )
    return found


def _memory(name: str) -> Callable[[Run], float]:
    def number(run: Run) -> float:
        found = run.results[MEMORY]["memory"][name]
        return math.nan if found is None else float(found)

    return number


def _time(name: str) -> Callable[[Run], float]:
    return lambda run: cycle(run)[name]


def cycle(run: Run) -> dict[str, float]:
    """Seconds of one snapshot, if there are any, and ten regular steps, in five parts.

    A snapshot reads no history, and rows of features are read inside the products: its transfer
    is 0, and such reading counts as computing.
    """
    steps = _steps(run)
    regular = [e for e in steps if not e["snapshot"]]
    snapshots = [e for e in steps if e["snapshot"]]
    parts = dict.fromkeys(PARTS, 0.0)
    if regular:
        parts["regular_sampling"] = 10 * _mean([e["sampling"] for e in regular])
        parts["regular_transfer"] = 10 * _mean([e["transfer"] for e in regular])
        parts["compute"] = 10 * _mean([e["compute"] for e in regular])
    if snapshots:
        sampling = run.results[TIMES]["snapshot_sampling"]
        parts["snapshot_sampling"] = sampling
        parts["compute"] += max(_mean([e["compute"] for e in snapshots]) - sampling, 0.0)
    return parts | {"total": sum(parts.values())}


#: A number for each run.
NUMBERS: dict[str, Callable[[Run], float]] = {
    "test_f1": _test_f1,
    "best_validation_f1": _best_validation_f1,
    "lowest_validation_loss": _lowest_validation_loss,
    "final_training_loss": _training_loss,
    "training_seconds": _seconds,
    "snapshots": _snapshots,
    "gradient_mse": _gradient_mse,
    **{name: _memory(name) for name in ("peak_rss_mb", "rss_mb", "tables_mb", "device_mb")},
    **{name: _time(name) for name in (*PARTS, "total")},
}


def number(run: Run, name: str) -> float:
    """NaN if training broke off, or if there is no such thing here (a GPU's memory)."""
    return math.nan if run.failed else NUMBERS[name](run)


def by_case(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each case together, in the order of the cases."""
    groups: dict[int, list[Run]] = {}
    for run in runs:
        groups.setdefault(id(run.case), []).append(run)
    return list(groups.values())


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of the values that exist; NaN where there are too few."""
    known = [value for value in values if math.isfinite(value)]
    mean = statistics.fmean(known) if known else math.nan
    return mean, statistics.stdev(known) if len(known) > 1 else math.nan


# -- curves -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A quantity along a run."""

    step: Float64
    seconds: Float64
    value: Float64


#: Curves by name, and what an axis calls them.
CURVES = {
    "training_loss": "training loss",
    "validation_loss": "validation loss",
    "validation_f1": "validation F1 (%)",
    "gradient_mse": "gradient MSE over |G|²",
}


def curve(run: Run, name: str) -> Curve:
    """The loss of a batch is a mean over the last ten; seconds are those of training alone."""
    clock = _clock(run)
    if name == "gradient_mse":
        found = run.results[PROBE]["steps"]
        points = [(e["step"], e["relative_mse"]) for e in found]
    elif name == "training_loss":
        steps = _steps(run)
        losses = _over_epoch([_value(e["loss"]) for e in steps])
        points = [(e["step"], loss) for e, loss in zip(steps, losses, strict=True)]
    else:
        key, scale = {"validation_loss": ("loss", 1.0), "validation_f1": ("f1_micro", 100.0)}[name]
        scores = [e for e in run.events if e["event"] == "score"]
        points = [(e["step"], _value(e["validation"][key]) * scale) for e in scores]
    at = np.array([step for step, _ in points], float)
    value = np.array([value for _, value in points], float)
    seconds = clock[np.minimum(at.astype(int), len(clock) - 1)]
    return Curve(at, seconds, value)


def _steps(run: Run) -> list[dict[str, float]]:
    return [e for e in run.events if e["event"] == "step"]


def _clock(run: Run) -> Float64:
    """Seconds before each step, and after the last."""
    spent = [e["sampling"] + e["transfer"] + e["compute"] for e in _steps(run)]
    return np.concatenate([[0.0], np.cumsum(spent)])


def _value(value: float | None) -> float:
    return math.nan if value is None else value


def _over_epoch(values: list[float]) -> list[float]:
    """Means of each value and the nine before it, as far as there are so many."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    last = np.arange(1, len(total))
    first = np.maximum(last - 10, 0)
    means: list[float] = ((total[last] - total[first]) / (last - first)).tolist()
    return means


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
