"""`curves.png`: loss and validation F1 of one run or several, against steps and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sgcn.files import replacing
from sgcn.runs.layout import CURVES, read_events


def draw(runs: Sequence[Path], out: Path | None = None) -> Path:
    """Draw ``runs`` into ``out`` (default: ``curves.png`` of the only run)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out = out or runs[0] / CURVES
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for run in runs:
        events = read_events(run)
        steps = [e for e in events if e["event"] == "step"]
        scores = [e for e in events if e["event"] == "score"]
        smooth = _smoothed([e["loss"] for e in steps])
        (line,) = axes[0].plot([e["step"] for e in steps], smooth, label=run.name, lw=1.5)
        f1 = [e["validation"]["f1_micro"] for e in scores]
        axes[1].plot([e["step"] for e in scores], f1, color=line.get_color(), lw=1.5)
        axes[2].plot([e["seconds"] for e in scores], f1, color=line.get_color(), lw=1.5)
    for axis, x, y in zip(
        axes, ("step", "step", "seconds"), ("training loss", "validation F1", "validation F1"),
        strict=True,
    ):  # fmt: skip
        axis.set_xlabel(x)
        axis.set_ylabel(y)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    with replacing(out) as temporary:
        figure.savefig(temporary, dpi=120, format="png")
    plt.close(figure)
    return out


def _smoothed(values: list[float], keep: float = 0.9) -> list[float]:
    """Exponential moving average, so that a mini-batch loss can be read."""
    smooth, now = [], values[0] if values else 0.0
    for value in values:
        now = keep * now + (1.0 - keep) * value
        smooth.append(now)
    return smooth
