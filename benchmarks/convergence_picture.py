"""The picture of `python -m benchmarks convergence`: validation F1 against seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.report import save_figure

#: Points with `f1` and the seconds on each clock.
Curve = list[dict[str, float]]


def draw(report: dict[str, Any], curves: dict[str, list[Curve]], out: Path) -> None:
    """All seeds of all contestants into ``out``; its name says the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(10, 5.5), layout="constrained")
    target = report["target"]
    highest = target
    for number, (name, seeds) in enumerate(curves.items()):
        style = _style(name)
        for seed, curve in enumerate(seeds):
            seconds = [point[report["clock"]] for point in curve]
            f1 = [point["f1"] for point in curve]
            highest = max([highest, *f1])
            axis.plot(
                seconds, f1, color=plt.colormaps["tab20"](number % 20),
                label=name if seed == 0 else None, **style,
            )  # fmt: skip
    axis.axhline(target, color="black", lw=0.8, ls=":")
    axis.annotate("target", (1.0, target), xycoords=("axes fraction", "data"), ha="right",
                  va="bottom", fontsize=8)  # fmt: skip
    axis.set_xscale("log")
    axis.set_ylim(max(0.0, target - 0.15), highest + 0.02)
    axis.set_xlabel("seconds of training" + (" (CPU)" if report["clock"] == "cpu" else ""))
    axis.set_ylabel("validation F1")
    axis.set_title(f"{report['graph']}, {report['threads']} thread(s)")
    axis.grid(alpha=0.3, which="both")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    save_figure(figure, out)


def _style(name: str) -> dict[str, Any]:
    """Dashes for PyG, thin lines for plain sampling, thick ones for the rest."""
    if name.startswith("pyg-"):
        return {"ls": "--", "lw": 1.4}
    return {"ls": "-", "lw": 0.8 if name.startswith("sgcn/") else 1.6}
