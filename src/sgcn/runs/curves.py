"""`curves.png`: loss and validation score of one run or several, against steps and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import relpath
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sgcn.metrics import key_of, label
from sgcn.runs.drawing import save, sheet, styled
from sgcn.runs.layout import CURVES, read_events

#: Curves of fewer points are shown as they are.
SHORT = 50

Floats = npt.NDArray[np.float64]


@styled()
def draw(runs: Sequence[Path], out: Path | None = None) -> Path:
    """Draw ``runs`` into ``out`` (default: ``curves.png`` of the only run)."""
    figure, ((loss, by_step, by_second),) = sheet(1, 3, 12.0, 3.6)
    key = "loss"
    for run in runs:
        events = read_events(run)
        steps, scores = ([e for e in events if e["event"] == kind] for kind in ("step", "score"))
        losses = smooth(np.array([e["loss"] for e in steps], float))  # null (no number) is NaN
        name = relpath(run, (out or run).parent)  # of several seeds, the last part is not enough
        (line,) = loss.plot([e["step"] for e in steps], losses, label=name)
        key = key_of(scores[0]["validation"]) if scores else key
        values = [e["validation"].get(key) for e in scores]
        by_step.plot([e["step"] for e in scores], values, color=line.get_color())
        by_second.plot([e["seconds"] for e in scores], values, color=line.get_color())
    loss.set(xlabel="step", ylabel="training loss")
    by_step.set(xlabel="step", ylabel=f"validation {label(key)}")
    by_second.set(xlabel="seconds", ylabel=f"validation {label(key)}")
    loss.legend()
    out = out or runs[0] / CURVES
    save(figure, [out])
    return out


def smooth(values: Floats) -> Floats:
    """A line through the middle of ``values``: means over nine neighbours, or over a fiftieth of
    a long run, taken twice so that a spike becomes a hill and not a box. Both ends stay."""
    half = max(4, len(values) // 100)
    return values if len(values) < SHORT else _means(_means(values, half), half)


def _means(values: Floats, half: int) -> Floats:
    """The mean of what is known at most ``half`` steps away from each value, less at the ends."""
    index = np.arange(len(values))
    reach = np.minimum(half, np.minimum(index, index[::-1]))
    first, last = index - reach, index + reach + 1
    known = ~np.isnan(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    of = counts[last] - counts[first]
    made: Floats = np.full(len(values), np.nan)
    np.divide(sums[last] - sums[first], of, out=made, where=of > 0)
    made[:1], made[-1:] = values[:1], values[-1:]  # differences of sums are not exact
    return made
