"""`curves.png`: loss and validation F1 of one run or several, against steps and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from sgcn.runs.drawing import save, sheet, styled
from sgcn.runs.layout import CURVES, read_events


@styled()
def draw(runs: Sequence[Path], out: Path | None = None) -> Path:
    """Draw ``runs`` into ``out`` (default: ``curves.png`` of the only run)."""
    figure, ((loss, by_step, by_second),) = sheet(1, 3, 12.0, 3.6)
    for run in runs:
        events = read_events(run)
        steps, scores = ([e for e in events if e["event"] == kind] for kind in ("step", "score"))
        smooth = _smoothed([e["loss"] for e in steps])
        (line,) = loss.plot([e["step"] for e in steps], smooth, label=run.name)
        f1 = [e["validation"]["f1_micro"] for e in scores]
        by_step.plot([e["step"] for e in scores], f1, color=line.get_color())
        by_second.plot([e["seconds"] for e in scores], f1, color=line.get_color())
    loss.set(xlabel="step", ylabel="training loss")
    by_step.set(xlabel="step", ylabel="validation F1")
    by_second.set(xlabel="seconds", ylabel="validation F1")
    loss.legend()
    out = out or runs[0] / CURVES
    save(figure, [out])
    return out


def _smoothed(values: list[float], keep: float = 0.9) -> list[float]:
    """Exponential moving average, so that a mini-batch loss can be read."""
    return [*accumulate(values[:1] + values, lambda now, new: keep * now + (1.0 - keep) * new)][1:]
