"""The figures, in one style: a colour is an estimator, a band or bar one standard deviation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from sgcn.experiments.core import Plan, Run
from sgcn.experiments.measures import CURVES, by_case, curve, number, spread

#: How the paper names samplers and estimators.
SAMPLERS = {
    "exact": "Exact", "vrgcn": "VRGCN", "neighbor": "GraphSAGE", "fastgcn": "FastGCN",
    "ladies": "LADIES", "saint": "GraphSAINT", "full": "full batch",
}  # fmt: skip
COLOURS = {"sgcn": "#c0632b", "sgcn+": "#3f7fc1", "sgcn++": "#1b6e4a", "full": "#4a4a4a"}
_INK, _QUIET = "#1d1f23", "#5d626b"

Key = Callable[[Run], Any]
T = TypeVar("T")


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


def unique(values: Iterable[T]) -> list[T]:
    """Each value once, in the order in which they come."""
    return list(dict.fromkeys(values))


def estimator(run: Run) -> str:
    return run.case.estimator


def setting(run: Run) -> str:
    return run.case.setting


def graph(run: Run) -> str:
    return run.case.data.title


def graph_and_estimator(run: Run) -> str:
    return f"{run.case.data.title}, {run.case.estimator}"


def graph_and_sampler(run: Run) -> str:
    return f"{run.case.data.title}, {SAMPLERS[run.case.sampler]}"


def grid(
    runs: Sequence[Run], columns: int, row: Key = graph, width: float = 3.4, height: float = 2.6
) -> tuple[Any, list[tuple[Any, list[Run]]]]:
    """A figure with a row of axes for each value of ``row``: the figure, and axes and runs."""
    names = unique(row(run) for run in runs)
    figure, axes = canvas(len(names), columns, width, height)
    for line, name in zip(axes, names, strict=True):
        line[0].set_title(name, loc="left")
    return figure, [
        (line, [run for run in runs if row(run) == name])
        for line, name in zip(axes, names, strict=True)
    ]


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
    runs: Sequence[Run], quantities: Sequence[str], *, series: Key = estimator, row: Key = graph,
    x: str = "step",
) -> Any:  # fmt: skip
    """A row of axes for each graph, a column for each quantity, a line for each of ``series``."""
    figure, lines = grid(runs, len(quantities), row)
    for axes, here in lines:
        for axis, quantity in zip(axes, quantities, strict=True):
            plot(axis, here, quantity, series=series, x=x)
            axis.set_xlabel(x if x == "step" else "seconds of training")
            axis.set_ylabel(CURVES[quantity])
    legend(figure, runs, series)
    return figure


def plot(
    axis: Any, runs: Sequence[Run], quantity: str, *, series: Key = estimator, x: str = "step"
) -> None:
    """Mean and spread of a quantity along the runs of each of ``series``."""
    shade = colours(unique(series(run) for run in runs))
    seen: list[float] = []
    for group in by_case(runs):
        at, mean, deviation = mean_curve(group, quantity, x)
        if not len(at):
            continue
        colour = shade[series(group[0])]
        axis.plot(at, mean, color=colour, marker="o" if len(at) < 12 else "", ms=3)
        low = np.maximum(mean - deviation, 0.1 * mean)  # a logarithmic axis has no zero
        axis.fill_between(at, low, mean + deviation, color=colour, alpha=0.15, lw=0)
        seen += [float(np.nanmin(mean)), float(np.nanmax(mean))]
    # Where one run blows up, the others must not be pressed to the bottom.
    if quantity == "gradient_mse" or ("loss" in quantity and seen and max(seen) > 8 * min(seen)):
        axis.set_yscale("log")


def mean_curve(runs: Sequence[Run], quantity: str, x: str) -> tuple[Any, Any, Any]:
    """Mean and spread over runs. Their scores are at different steps: all are interpolated at those
    of the run that ended first."""
    found = [curve(run, quantity) for run in runs]
    found = [one for one in found if len(one.value)]
    if not found:
        return np.empty(0), np.empty(0), np.empty(0)
    times = [one.step if x == "step" else one.seconds for one in found]
    shortest = min(times, key=lambda time: time[-1])
    last = min(200, len(shortest))
    at = shortest[np.linspace(0, len(shortest) - 1, last).astype(int)]
    values = np.stack([np.interp(at, t, one.value) for t, one in zip(times, found, strict=True)])
    deviation = values.std(0, ddof=1) if len(values) > 1 else np.zeros(len(at))
    return at, values.mean(0), deviation


def legend(figure: Any, runs: Sequence[Run], series: Key = estimator) -> None:
    from matplotlib.lines import Line2D

    shade = colours(unique(series(run) for run in runs))
    lines = [Line2D([], [], color=colour, label=name) for name, colour in shade.items()]
    figure.legend(
        handles=lines, loc="outside upper right", ncols=len(lines), handlelength=1.4,
        columnspacing=1.2,
    )  # fmt: skip


# -- numbers ------------------------------------------------------------------------------------


def against(runs: Sequence[Run], quantities: dict[str, str], x: str) -> Any:
    """Numbers against the number that is varied, a line for each estimator."""
    figure, lines = grid(runs, len(quantities))
    for axes, here in lines:
        for axis, (quantity, words) in zip(axes, quantities.items(), strict=True):
            for kind in unique(run.case.estimator for run in here):
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
    legend(figure, runs)
    return figure


def stacks(runs: Sequence[Run], parts: Sequence[str], words: str) -> Any:
    """A bar for each case, made of ``parts``; the paper's shares are in the tables."""
    most = max(Counter(group[0].case.data for group in by_case(runs)).values())
    figure, lines = grid(runs, 1, width=7.5, height=0.45 * most + 0.7)
    tints = ("#8c5a12", "#d9b36a", "#2f6db3", "#8fb8e3", "#3f8f78")
    for (axis,), here in lines:
        groups = by_case(here)
        left = np.zeros(len(groups))
        rows = range(len(groups))
        for part, tint in zip(parts, tints, strict=True):
            size = np.array([spread([number(run, part) for run in group])[0] for group in groups])
            axis.barh(rows, size, left=left, color=tint, height=0.6, label=part.replace("_", " "))
            left += np.nan_to_num(size)
        deviation = [spread([number(run, "total") for run in group])[1] for group in groups]
        axis.errorbar(left, rows, xerr=np.nan_to_num(deviation), fmt="none", ecolor=_INK,
                      elinewidth=1, capsize=2)  # fmt: skip
        axis.set_yticks(rows, [group[0].case.estimator for group in groups])
        axis.set_ylim(len(groups) - 0.5, -0.5)
        axis.grid(axis="y", visible=False)
    axis.set_xlabel(words)
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", ncols=1, handlelength=1)
    return figure


def bars(runs: Sequence[Run], quantities: dict[str, str]) -> Any:
    """A column of axes for each quantity, a bar for each estimator beside each other."""
    figure, lines = grid(runs, len(quantities), width=3.0, height=2.2)
    for axes, here in lines:
        samplers = unique(run.case.sampler for run in here)
        kinds = unique(run.case.estimator for run in here)
        for axis, (quantity, words) in zip(axes, quantities.items(), strict=True):
            for group in by_case(here):
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
    legend(figure, runs)
    return figure
