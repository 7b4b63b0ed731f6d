"""`curves.png`: loss and validation score of one run or several, against steps and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from sgcn.metrics import key_of, label
from sgcn.runs.drawing import save, sheet, styled
from sgcn.runs.layout import CURVES, read_events


@styled()
def draw(runs: Sequence[Path], out: Path | None = None) -> Path:
    """Draw ``runs`` into ``out`` (default: ``curves.png`` of the only run)."""
    figure, ((loss, by_step, by_second),) = sheet(1, 3, 12.0, 3.6)
    key = "loss"
    for run in runs:
        events = read_events(run)
        steps, scores = ([e for e in events if e["event"] == kind] for kind in ("step", "score"))
        smooth = _smoothed([e["loss"] for e in steps])
        (line,) = loss.plot([e["step"] for e in steps], smooth, label=run.name)
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


def _smoothed(values: list[float], keep: float = 0.9) -> list[float]:
    """Exponential moving average, so that a mini-batch loss can be read."""
    return [*accumulate(values[:1] + values, lambda now, new: keep * now + (1.0 - keep) * new)][1:]
