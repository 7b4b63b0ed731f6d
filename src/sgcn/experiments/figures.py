"""The figures, in one style: a colour is an estimator, a band or bar one standard deviation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sgcn.experiments.core import ROWS, TITLES, Case, Experiment, Plan, Reference, Run, by_case
from sgcn.experiments.measures import CURVES, curve, spread
from sgcn.files import replacing

COLOURS = {"sgcn": "#c0632b", "sgcn+": "#3f7fc1", "sgcn++": "#1b6e4a", "full": "#4a4a4a"}
_INK, _QUIET = "#1d1f23", "#5d626b"

T = TypeVar("T")


def write(experiment: Experiment, plan: Plan, runs: Sequence[Run], paths: Sequence[Path]) -> None:
    """The figure of an experiment into ``paths``, whose endings say the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with _style():
        figure = curves(runs, experiment) if experiment.draw is None else experiment.draw(runs)
        _finish(figure, experiment.title, plan, runs)
        for path in paths:
            # Without a date the same runs give the same file.
            metadata = {"Date": None} if path.suffix == ".svg" else None
            with replacing(path) as temporary:
                figure.savefig(temporary, dpi=130, metadata=metadata)
            figure.set_layout_engine("none")  # positions were found for the first, and stay
        plt.close(figure)


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context({
        "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8.5,
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#b5b8be",
        "axes.labelcolor": _INK, "text.color": _INK, "xtick.color": _QUIET, "ytick.color": _QUIET,
        "axes.grid": True, "grid.color": "#e8e8e4", "grid.linewidth": 0.8, "axes.axisbelow": True,
        "legend.frameon": False, "lines.linewidth": 1.6, "svg.hashsalt": "sgcn",
    }):  # fmt: skip
        yield


def _finish(figure: Any, title: str, plan: Plan, runs: Sequence[Run]) -> None:
    """The title, what the graphs are to the paper's, and how much was run."""
    notes = _unique(f"{run.case.data.label}: {run.case.data.note}" for run in runs)
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


def _unique(values: Iterable[T]) -> list[T]:
    """Each value once, in the order in which they come."""
    return list(dict.fromkeys(values))


def _canvas(rows: int, columns: int, width: float = 3.4, height: float = 2.6) -> tuple[Any, Any]:
    """A figure and its array of axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, columns, figsize=(max(width * columns, 8.5), height * rows + 0.9), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    return figure, axes


def _grid(
    runs: Sequence[Run], columns: int, panels: str = "{graph}", **size: float
) -> tuple[Any, list[tuple[Any, list[Run]]]]:
    """A figure with a row of axes for each of ``panels``: the figure, and axes and their runs."""
    rows: dict[str, list[Run]] = {}
    for run in runs:
        rows.setdefault(run.case.label(panels), []).append(run)
    figure, axes = _canvas(len(rows), columns, **size)
    for line, name in zip(axes, rows, strict=True):
        line[0].set_title(name, loc="left")
    return figure, list(zip(axes, rows.values(), strict=True))


def _colours(runs: Sequence[Run], lines: str) -> dict[str, str]:
    """Estimators have their own colour; anything else goes from light to dark in its order."""
    names = _unique(run.case.label(lines) for run in runs)
    if all(name in COLOURS for name in names):
        return {name: COLOURS[name] for name in names}
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    shades = colormaps["viridis_r"](np.linspace(0.15, 0.95, max(len(names), 2)))
    return {name: to_hex(shade) for name, shade in zip(names, shades, strict=False)}


def _legend(figure: Any, runs: Sequence[Run], lines: str = "{estimator}") -> None:
    from matplotlib.lines import Line2D

    shades = _colours(runs, lines).items()
    figure.legend(
        handles=[Line2D([], [], color=colour, label=name) for name, colour in shades],
        loc="outside upper right", ncols=len(shades), handlelength=1.4, columnspacing=1.2,
    )  # fmt: skip


# -- curves -------------------------------------------------------------------------------------


def curves(runs: Sequence[Run], experiment: Experiment) -> Any:
    """A row of axes for each graph, a column for each curve, a line for each estimator, say."""
    x = experiment.x
    figure, rows = _grid(runs, len(experiment.curves), experiment.panels)
    for axes, here in rows:
        for axis, quantity in zip(axes, experiment.curves, strict=True):
            _plot(axis, here, quantity, experiment.lines, x)
            axis.set_xlabel(x if x == "step" else "seconds of training")
            axis.set_ylabel(CURVES[quantity])
    _legend(figure, runs, experiment.lines)
    return figure


def by_sampler(runs: Sequence[Run]) -> Any:
    """The validation loss: a row of axes for each graph, a column for each sampler."""
    samplers = _unique(run.case.sampler for run in runs)
    figure, rows = _grid(runs, len(samplers), width=2.6, height=2.3)
    for axes, here in rows:
        for axis, sampler in zip(axes, samplers, strict=True):
            _plot(axis, [run for run in here if run.case.sampler == sampler], "validation_loss")
            axis.set_title(TITLES[sampler], loc="left")
            axis.set_xlabel("step")
        axes[0].set_ylabel(f"{here[0].case.data.label}\nvalidation loss")
    _legend(figure, runs)
    return figure


def _plot(
    axis: Any, runs: Sequence[Run], quantity: str, lines: str = "{estimator}", x: str = "step"
) -> None:
    """Mean and spread of a quantity along the runs of each of ``lines``."""
    shade = _colours(runs, lines)
    seen: list[float] = []
    for group in by_case(runs):
        at, mean, deviation = _mean_curve(group, quantity, x)
        if not len(at):
            continue
        colour = shade[group[0].case.label(lines)]
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


def dots(runs: Sequence[Run], reference: Reference) -> Any:
    """Test F1: a row for each sampler, a dot for each estimator, the paper's number a diamond."""
    graphs = _unique(run.case.data for run in runs)
    samplers = _unique(run.case.sampler for run in runs)
    figure, axes = _canvas(1, len(graphs), width=4.4, height=0.5 * len(samplers) + 0.8)
    for axis, data in zip(axes[0], graphs, strict=True):
        for group in by_case([run for run in runs if run.case.data == data]):
            case = group[0].case
            rows = ROWS[case.sampler]
            shift = 0.22 * (rows.index(case.estimator) - (len(rows) - 1) / 2)
            at = samplers.index(case.sampler) + shift
            mean, deviation = spread(group, "test_f1")
            colour = COLOURS[case.estimator]
            axis.errorbar(mean, at, xerr=np.nan_to_num(deviation), color=colour, marker="o", ms=5,
                          capsize=2)  # fmt: skip
            known = reference(data.paper, case, "test_f1") if data.paper else ()
            if known:
                axis.plot(known[0], at, marker="D", ms=5, mfc="none", mec=colour, alpha=0.7)
        axis.set_yticks(range(len(samplers)), [TITLES[name] for name in samplers])
        axis.set_ylim(len(samplers) - 0.5, -0.5)
        words = "test F1 (%)"
        if data.paper:
            words += "; diamonds: the paper's" + ("" if data.same else " (not the same labels)")
        axis.set_xlabel(words)
        axis.set_title(data.title, loc="left")
    _legend(figure, runs)
    return figure


def against(
    runs: Sequence[Run], quantities: dict[str, str], at: Callable[[Case], float], x: str
) -> Any:
    """Numbers against the number ``at`` that is varied, a line for each estimator."""
    figure, rows = _grid(runs, len(quantities))
    for axes, here in rows:
        for axis, (quantity, words) in zip(axes, quantities.items(), strict=True):
            for kind in _unique(run.case.estimator for run in here):
                groups = by_case([run for run in here if run.case.estimator == kind])
                where = [at(group[0].case) for group in groups]
                found = [spread(group, quantity) for group in groups]
                axis.errorbar(
                    where, [mean for mean, _ in found], np.nan_to_num([d for _, d in found]),
                    color=COLOURS[kind], marker="o", ms=4, capsize=2,
                )  # fmt: skip
            axis.set_xscale("log", base=2)
            axis.set_xticks(where, [f"{value:g}" for value in where])
            axis.minorticks_off()
            axis.set_xlabel(x)
            axis.set_ylabel(words)
    _legend(figure, runs)
    return figure


def stacks(runs: Sequence[Run], parts: Sequence[str], words: str) -> Any:
    """A bar for each case, made of ``parts``; the paper's shares are in the tables."""
    most = max(Counter(group[0].case.data for group in by_case(runs)).values())
    figure, lines = _grid(runs, 1, width=7.5, height=0.45 * most + 0.7)
    tints = ("#8c5a12", "#d9b36a", "#2f6db3", "#8fb8e3", "#3f8f78")
    for (axis,), here in lines:
        groups = by_case(here)
        left = np.zeros(len(groups))
        rows = range(len(groups))
        for part, tint in zip(parts, tints, strict=True):
            size = np.array([spread(group, part)[0] for group in groups])
            axis.barh(rows, size, left=left, color=tint, height=0.6, label=part.replace("_", " "))
            left += np.nan_to_num(size)
        deviation = [spread(group, "total")[1] for group in groups]
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
    figure, lines = _grid(runs, len(quantities), width=3.0, height=2.2)
    for axes, here in lines:
        samplers = _unique(run.case.sampler for run in here)
        kinds = _unique(run.case.estimator for run in here)
        for axis, (quantity, words) in zip(axes, quantities.items(), strict=True):
            for group in by_case(here):
                case = group[0].case
                mean, deviation = spread(group, quantity)
                shift = 0.36 * (kinds.index(case.estimator) - (len(kinds) - 1) / 2)
                axis.bar(samplers.index(case.sampler) + shift, mean, 0.32,
                         yerr=np.nan_to_num(deviation), capsize=2, color=COLOURS[case.estimator],
                         error_kw={"elinewidth": 1})  # fmt: skip
            axis.set_xticks(range(len(samplers)), [TITLES[name] for name in samplers])
            axis.set_xlim(-0.6, len(samplers) - 0.4)
            axis.grid(axis="x", visible=False)
            axis.set_ylabel(words)
    _legend(figure, runs)
    return figure
