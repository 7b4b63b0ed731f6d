"""The figures, in one style: a colour is an estimator, a band or bar one standard deviation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sgcn.experiments.core import Plan, Run
from sgcn.experiments.measures import CURVES, curve, number
from sgcn.experiments.output import by_case, spread

#: How the paper names samplers and estimators.
SAMPLERS = {
    "exact": "Exact", "vrgcn": "VRGCN", "neighbor": "GraphSAGE", "fastgcn": "FastGCN",
    "ladies": "LADIES", "saint": "GraphSAINT", "full": "full batch",
}  # fmt: skip
COLOURS = {"sgcn": "#c0632b", "sgcn+": "#3f7fc1", "sgcn++": "#1b6e4a", "full": "#4a4a4a"}
_INK, _QUIET = "#1d1f23", "#5d626b"

Key = Callable[[Run], Any]


@contextmanager
def style() -> Iterator[None]:
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context({
        "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8.5,
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#b5b8be",
        "axes.labelcolor": _INK, "text.color": _INK, "xtick.color": _QUIET, "ytick.color": _QUIET,
        "axes.grid": True, "grid.color": "#e8e8e4", "grid.linewidth": 0.8, "axes.axisbelow": True,
        "legend.frameon": False, "lines.linewidth": 1.6, "svg.hashsalt": "sgcn",
    }):  # fmt: skip
        yield


def finish(figure: Any, title: str, plan: Plan, runs: Sequence[Run]) -> None:
    """The title, what the graphs are to the paper's, and how much was run."""
    notes = dict.fromkeys(f"{run.case.data.label}: {run.case.data.note}" for run in runs)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    failed = sum(run.failed is not None for run in runs)
    broken = f" {_many(failed, 'run')} diverged." if failed else ""
    epochs = sorted({run.epochs for run in runs})
    words = (
        f"{'; '.join(notes)}.\nBudget {plan.budget}: "
        f"{' or '.join(_many(number, 'epoch') for number in epochs)} of 10 batches, "
        f"width {plan.width}, {_many(plan.runs, 'run')}; mean and one standard "
        f"deviation.{broken}"
    )
    figure.supxlabel(words, x=0.01, ha="left", fontsize=7.5, color=_QUIET)


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def canvas(rows: int, columns: int, width: float = 3.4, height: float = 2.6) -> tuple[Any, Any]:
    """A figure and its array of axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(max(width * columns, 8.5), height * rows + 0.9), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    return figure, axes


def estimator(run: Run) -> str:
    return run.case.estimator


def setting(run: Run) -> str:
    return run.case.setting


def graph_and_estimator(run: Run) -> str:
    return f"{run.case.data.title}, {run.case.estimator}"


def colours(names: Sequence[str]) -> dict[str, str]:
    """Estimators have their own colour; anything else goes from light to dark in its order."""
    if all(name in COLOURS for name in names):
        return {name: COLOURS[name] for name in names}
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shades = colormaps["viridis_r"](np.linspace(0.15, 0.95, max(len(names), 2)))
    return {name: to_hex(shade) for name, shade in zip(names, shades, strict=False)}


# -- curves -------------------------------------------------------------------------------------


def curves(
    runs: Sequence[Run], quantities: Sequence[str], *, series: Key = estimator,
    row: Key = lambda run: run.case.data.title, x: str = "step",
) -> Any:  # fmt: skip
    """A row of axes for each graph, a column for each quantity, a line for each of ``series``."""
    names = list(dict.fromkeys(row(run) for run in runs))
    figure, axes = canvas(len(names), len(quantities))
    for line, name in zip(axes, names, strict=True):
        here = [run for run in runs if row(run) == name]
        for axis, quantity in zip(line, quantities, strict=True):
            plot(axis, here, quantity, series=series, x=x)
            axis.set_xlabel(x if x == "step" else "seconds of training")
            axis.set_ylabel(CURVES[quantity])
        line[0].set_title(name, loc="left")
    legend(axes[0, 0], runs, series)
    return figure


def plot(
    axis: Any, runs: Sequence[Run], quantity: str, *, series: Key = estimator, x: str = "step"
) -> None:
    """Mean and spread of a quantity along the runs of each of ``series``."""
    shade = colours(list(dict.fromkeys(series(run) for run in runs)))
    seen: list[float] = []
    for group in by_case(runs):
        at, mean, deviation = mean_curve(group, quantity, x)
        if not len(at):
            continue
        colour = shade[series(group[0])]
        axis.plot(at, mean, color=colour, marker="o" if len(at) < 12 else "", ms=3)
        low = np.maximum(mean - deviation, 0.1 * mean)  # a logarithm has no place for zero
        axis.fill_between(at, low, mean + deviation, color=colour, alpha=0.15, lw=0)
        seen += [float(np.nanmin(mean)), float(np.nanmax(mean))]
    # Where one run blows up, the others must not be pressed to the bottom.
    if quantity == "gradient_mse" or ("loss" in quantity and seen and max(seen) > 8 * min(seen)):
        axis.set_yscale("log")


def mean_curve(runs: Sequence[Run], quantity: str, x: str) -> tuple[Any, Any, Any]:
    """Runs have their scores at different steps: all are read off at the steps of the shortest."""
    found = [curve(run, quantity) for run in runs]
    found = [one for one in found if len(one.value)]
    if not found:
        return np.empty(0), np.empty(0), np.empty(0)
    places = [one.step if x == "step" else one.seconds for one in found]
    shortest = min(places, key=lambda place: place[-1])
    last = min(200, len(shortest))
    at = shortest[np.linspace(0, len(shortest) - 1, last).astype(int)]
    values = np.stack([np.interp(at, p, one.value) for p, one in zip(places, found, strict=True)])
    deviation = values.std(0, ddof=1) if len(values) > 1 else np.zeros(len(at))
    return at, values.mean(0), deviation


def legend(axis: Any, runs: Sequence[Run], series: Key = estimator) -> None:
    from matplotlib.lines import Line2D

    shade = colours(list(dict.fromkeys(series(run) for run in runs)))
    lines = [Line2D([], [], color=colour, label=name) for name, colour in shade.items()]
    axis.figure.legend(
        handles=lines, loc="outside upper right", ncols=len(lines), handlelength=1.4,
        columnspacing=1.2,
    )  # fmt: skip


# -- numbers ------------------------------------------------------------------------------------


def against(runs: Sequence[Run], quantities: dict[str, str], x: str) -> Any:
    """Numbers against the number that is varied, a line for each estimator."""
    names = list(dict.fromkeys(run.case.data.title for run in runs))
    figure, axes = canvas(len(names), len(quantities))
    for line, name in zip(axes, names, strict=True):
        here = [run for run in runs if run.case.data.title == name]
        for axis, (quantity, words) in zip(line, quantities.items(), strict=True):
            for kind in dict.fromkeys(run.case.estimator for run in here):
                groups = by_case([run for run in here if run.case.estimator == kind])
                at = [group[0].case.at for group in groups]
                found = [spread([number(run, quantity) for run in group]) for group in groups]
                axis.errorbar(
                    at, [mean for mean, _ in found], np.nan_to_num([d for _, d in found]),
                    color=COLOURS[kind], marker="o", ms=4, capsize=2,
                )  # fmt: skip
            axis.set_xscale("log", base=2)
            axis.set_xticks(at, [f"{value:g}" for value in at])
            axis.minorticks_off()
            axis.set_xlabel(x)
            axis.set_ylabel(words)
        line[0].set_title(name, loc="left")
    legend(axes[0, 0], runs)
    return figure


def stacks(runs: Sequence[Run], parts: Sequence[str], words: str) -> Any:
    """A bar for each case, made of ``parts``; the paper's shares are in the tables."""
    groups = by_case(runs)
    titles = list(dict.fromkeys(run.case.data.title for run in runs))
    most = max(sum(g[0].case.data.title == title for g in groups) for title in titles)
    figure, axes = canvas(len(titles), 1, width=7.5, height=0.45 * most + 0.7)
    tints = ("#8c5a12", "#d9b36a", "#2f6db3", "#8fb8e3", "#3f8f78")
    for axis, title in zip(axes[:, 0], titles, strict=True):
        here = [group for group in groups if group[0].case.data.title == title]
        left = np.zeros(len(here))
        places = range(len(here))
        for part, tint in zip(parts, tints, strict=True):
            size = np.array([spread([number(run, part) for run in group])[0] for group in here])
            axis.barh(places, size, left=left, color=tint, height=0.6, label=part.replace("_", " "))
            left += np.nan_to_num(size)
        deviation = [spread([number(run, "total") for run in group])[1] for group in here]
        axis.errorbar(left, places, xerr=np.nan_to_num(deviation), fmt="none", ecolor=_INK,
                      elinewidth=1, capsize=2)  # fmt: skip
        axis.set_yticks(places, [group[0].case.estimator for group in here])
        axis.set_ylim(len(here) - 0.5, -0.5)
        axis.grid(axis="y", visible=False)
        axis.set_title(title, loc="left")
    axes[-1, 0].set_xlabel(words)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", ncols=1, handlelength=1)
    return figure


def bars(runs: Sequence[Run], quantities: dict[str, str]) -> Any:
    """A column of axes for each quantity, a bar for each estimator beside each other."""
    titles = list(dict.fromkeys(run.case.data.title for run in runs))
    figure, axes = canvas(len(titles), len(quantities), width=3.0, height=2.2)
    for line, title in zip(axes, titles, strict=True):
        groups = by_case([run for run in runs if run.case.data.title == title])
        samplers = list(dict.fromkeys(group[0].case.sampler for group in groups))
        kinds = list(dict.fromkeys(group[0].case.estimator for group in groups))
        for axis, (quantity, words) in zip(line, quantities.items(), strict=True):
            for group in groups:
                case = group[0].case
                mean, deviation = spread([number(run, quantity) for run in group])
                at = samplers.index(case.sampler) + 0.36 * (
                    kinds.index(case.estimator) - (len(kinds) - 1) / 2
                )
                axis.bar(at, mean, 0.32, yerr=np.nan_to_num(deviation), capsize=2,
                         color=COLOURS[case.estimator], error_kw={"elinewidth": 1})  # fmt: skip
            axis.set_xticks(range(len(samplers)), [SAMPLERS[name] for name in samplers])
            axis.set_xlim(-0.6, len(samplers) - 0.4)
            axis.grid(axis="x", visible=False)
            axis.set_ylabel(words)
        line[0].set_title(title, loc="left")
    legend(axes[0, 0], runs)
    return figure
