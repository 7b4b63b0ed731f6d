"""The figures: a colour is an estimator or a setting, a band or bar one standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.experiments.core import Experiment, Plan, Run, by_case, grouped
from sgcn.experiments.measures import CURVES, curve, spread
from sgcn.runs.drawing import QUIET, save, sheet, styled

COLOURS = {
    "sgcn": "#c0632b", "sgcn+": "#3f7fc1", "sgcn++": "#1b6e4a", "full": "#4a4a4a",
    "anchored": "#b04a8a", "anchored++": "#7a3fb0", "default": "#c9a227",
}  # fmt: skip


@styled()
def write(experiment: Experiment, plan: Plan, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """The figure of an experiment into ``paths``: of its curves, or else of its numbers."""
    figure = _curves(experiment, runs) if experiment.curves else _dots(experiment, runs)
    # What the graphs are to the paper's, and how much was run.
    notes = dict.fromkeys(f"{run.case.data.label}: {run.case.data.note}" for run in runs)
    failed = sum(run.failed is not None for run in runs)
    broken = f" {_many(failed, 'run')} diverged." if failed else ""
    epochs = " or ".join(_many(count, "epoch") for count in sorted({run.epochs for run in runs}))
    words = (
        f"{'; '.join(notes)}.\nBudget {plan.budget}: {epochs} of 10 sampled steps, width "
        f"{plan.width}, {_many(plan.runs, 'run')}; mean and one standard deviation.{broken}"
    )
    title = f"{experiment.title}, reading {plan.reading}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure.supxlabel(words, x=0.01, ha="left", fontsize=7.5, color=QUIET)
    save(figure, paths)


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _panels(runs: Sequence[Run], form: str) -> dict[str, list[Run]]:
    """The runs of each label (see `Case.label`)."""
    return grouped(runs, lambda run: run.case.label(form))


def _colours(runs: Sequence[Run], lines: str) -> dict[str, Any]:
    """Estimators have their own colour; anything else goes from light to dark in its order."""
    names = list(_panels(runs, lines))
    if all(name in COLOURS for name in names):
        return {name: COLOURS[name] for name in names}
    from matplotlib import colormaps

    shades = colormaps["viridis_r"](np.linspace(0.15, 0.95, max(len(names), 2)))
    return dict(zip(names, shades, strict=False))


def _legend(figure: Any, colours: dict[str, Any]) -> None:
    from matplotlib.lines import Line2D

    figure.legend(
        handles=[Line2D([], [], color=colour, label=name) for name, colour in colours.items()],
        loc="outside upper right", ncols=len(colours), handlelength=1.4, columnspacing=1.2,
    )  # fmt: skip


# -- curves -------------------------------------------------------------------------------------


def _curves(experiment: Experiment, runs: Sequence[Run]) -> Any:
    """A row of axes for each panel, a column for each curve; a single curve has a row a graph."""
    panels, colours = _panels(runs, experiment.panels), _colours(runs, experiment.lines)
    columns = len(experiment.curves)
    if columns == 1:
        columns = len(panels) // len(_panels(runs, "{graph}"))
    rows = len(panels) * len(experiment.curves) // columns
    figure, axes = sheet(rows, columns, max(3.4 * columns, 8.5), 2.6 * rows + 0.9)
    cells = [(panel, quantity) for panel in panels for quantity in experiment.curves]
    for axis, (panel, quantity) in zip(axes.flat, cells, strict=True):
        _plot(axis, panels[panel], quantity, experiment, colours)
        axis.set_title(panel, loc="left")
        axis.set_ylabel(CURVES[quantity])
        axis.set_xlabel("step" if experiment.x == "step" else "seconds of training")
    _legend(figure, colours)
    return figure


def _plot(
    axis: Any, runs: Sequence[Run], quantity: str, experiment: Experiment, colours: dict[str, Any]
) -> None:
    """Mean and spread of a quantity along the runs of each of the experiment's lines."""
    seen: list[float] = []
    for group in by_case(runs):
        at, mean, deviation = _mean_curve(group, quantity, experiment.x)
        if not len(at):
            continue
        colour = colours[group[0].case.label(experiment.lines)]
        axis.plot(at, mean, color=colour, marker="o" if len(at) < 12 else "", ms=3)
        low = np.maximum(mean - deviation, 0.1 * mean)  # a logarithmic axis has no zero
        axis.fill_between(at, low, mean + deviation, color=colour, alpha=0.15, lw=0)
        seen += [float(np.nanmin(mean)), float(np.nanmax(mean))]
    # Where one run blows up, the others must not be pressed to the bottom.
    if quantity == "gradient_mse" or ("loss" in quantity and seen and max(seen) > 8 * min(seen)):
        axis.set_yscale("log")


def _mean_curve(runs: Sequence[Run], quantity: str, x: str) -> tuple[Any, Any, Any]:
    """Mean and spread over runs. Their scores are at different steps: all are interpolated at those
    of the run that ended first."""
    found = [one for run in runs if len((one := curve(run, quantity)).value)]
    if not found:
        return np.empty(0), np.empty(0), np.empty(0)
    times = [one.step if x == "step" else one.seconds for one in found]
    shortest = min(times, key=lambda time: time[-1])
    last = min(200, len(shortest))
    at = shortest[np.linspace(0, len(shortest) - 1, last).astype(int)]
    values = np.stack([np.interp(at, t, one.value) for t, one in zip(times, found, strict=True)])
    deviation = values.std(0, ddof=1) if len(values) > 1 else np.zeros(len(at))
    return at, values.mean(0), deviation


# -- numbers ------------------------------------------------------------------------------------


def _dots(experiment: Experiment, runs: Sequence[Run]) -> Any:
    """A row of axes for each graph, a column for each number; in it a row for each sampler and
    setting, a dot for each estimator, and the paper's number as a diamond."""
    graphs, rows = _panels(runs, "{graph}"), list(_panels(runs, "{sampler} {setting}"))
    shown = [name for name in experiment.numbers if np.isfinite(spread(runs, name)[0])]
    width, height = max(3.0 * len(shown), 8.5), len(graphs) * (0.5 * len(rows) + 0.9) + 0.9
    figure, axes = sheet(len(graphs), len(shown), width, height, sharey=True)
    for line, (graph, here) in zip(axes, graphs.items(), strict=True):
        line[0].set_title(graph, loc="left")
        line[0].set_yticks(range(len(rows)), rows)
        line[0].set_ylim(len(rows) - 0.5, -0.5)
        for axis, quantity in zip(line, shown, strict=True):
            words = quantity.replace("_", " ")
            for group in by_case(here):
                case = group[0].case
                beside = [run for run in here if run.case.sampler == case.sampler]
                kinds = list(dict.fromkeys(run.case.estimator for run in beside))
                colour = COLOURS[case.estimator]
                middle = (len(kinds) - 1) / 2
                shift = 0.66 / max(len(kinds), 3) * (kinds.index(case.estimator) - middle)
                at = rows.index(case.label("{sampler} {setting}")) + shift
                mean, deviation = spread(group, quantity)
                axis.errorbar(mean, at, xerr=np.nan_to_num(deviation), color=colour, marker="o",
                              ms=5, capsize=2)  # fmt: skip
                known, _ = experiment.paper(case, quantity)
                if known is not None:
                    axis.plot(known, at, marker="D", ms=5, mfc="none", mec=colour, alpha=0.7)
                    words = f"{quantity.replace('_', ' ')}; diamonds: the paper's"
            axis.set_xlabel(words)
    _legend(figure, _colours(runs, "{estimator}"))
    return figure
