"""The picture of `python -m benchmarks convergence`: validation F1 against seconds, by graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.report import save_figure


def draw(report: dict[str, Any], runs: dict[str, dict[str, list[Any]]], out: Path) -> None:
    """All seeds of all contestants into ``out``; its name says the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    names = list(
        dict.fromkeys(name for graph in report["results"].values() for name in graph["rows"])
    )
    colors = {name: plt.colormaps["tab10"](number % 10) for number, name in enumerate(names)}
    columns = min(2, len(runs))
    height = -(-len(runs) // columns)
    figure, axes = plt.subplots(
        height, columns, figsize=(6 * columns, 3.6 * height), layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(runs) :]:
        axis.set_visible(False)
    for axis, (label, by_name) in zip(axes.flat, runs.items(), strict=False):
        graph = report["results"][label]
        for name, many in by_name.items():
            for one in many:
                _, seconds, f1 = zip(*one["curve"], strict=True)
                style = "--" if name.startswith("pyg-") else "-"
                axis.plot(seconds, f1, style, color=colors[name], lw=1.2)
        for target in graph["targets"]:
            axis.axhline(target, color="black", lw=0.8, ls=":")
        axis.set_xscale("log")
        axis.set_ylim(graph["targets"][-1] - 0.1, graph["best"] + 0.01)
        axis.set_title(label)
        axis.set_xlabel("CPU seconds of training")
        axis.set_ylabel("validation F1")
        axis.spines[["top", "right"]].set_visible(False)
    handles = [Line2D([], [], color=colors[name], label=name) for name in names]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)
    save_figure(figure, out)
