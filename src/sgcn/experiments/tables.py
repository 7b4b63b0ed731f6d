"""The tables: F1 scores, seconds, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from sgcn.experiments.core import MEMORY as MEMORY_RUN
from sgcn.experiments.core import TIMES as TIMES_RUN
from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import PAPER_DATA, Dataset, paper
from sgcn.experiments.figures import COLOURS, SAMPLERS, bars, canvas, legend, stacks, unique
from sgcn.experiments.measures import PARTS, by_case, number, spread
from sgcn.experiments.settings import ROWS, case

# -- F1 ---------------------------------------------------------------------------------------


def _every_row(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, sampler, estimator)
        for sampler in plan.samplers
        for estimator in ROWS[sampler]
    ]


def _paper_f1(dataset: str, case: Case, quantity: str) -> Sequence[float] | None:
    if quantity != "test_f1":
        return None
    found: Sequence[float] = paper()["f1"][case.sampler][case.estimator][dataset]
    return found


def _draw_f1(runs: Sequence[Run]) -> Any:
    """A row for each sampler, a dot for each estimator, the paper's number as a diamond."""
    graphs = unique(run.case.data for run in runs)
    samplers = unique(run.case.sampler for run in runs)
    figure, axes = canvas(1, len(graphs), width=4.4, height=0.5 * len(samplers) + 0.8)
    for axis, data in zip(axes[0], graphs, strict=True):
        for group in by_case([run for run in runs if run.case.data == data]):
            case = group[0].case
            rows = ROWS[case.sampler]
            shift = 0.22 * (rows.index(case.estimator) - (len(rows) - 1) / 2)
            at = samplers.index(case.sampler) + shift
            mean, deviation = spread([number(run, "test_f1") for run in group])
            colour = COLOURS[case.estimator]
            axis.errorbar(mean, at, xerr=np.nan_to_num(deviation), color=colour, marker="o", ms=5,
                          capsize=2)  # fmt: skip
            known = data.paper and _paper_f1(data.paper, case, "test_f1")
            if known:
                axis.plot(known[0], at, marker="D", ms=5, mfc="none", mec=colour, alpha=0.7)
        axis.set_yticks(range(len(samplers)), [SAMPLERS[name] for name in samplers])
        axis.set_ylim(len(samplers) - 0.5, -0.5)
        words = "test F1 (%)"
        if data.paper:
            words += "; diamonds: the paper's" + ("" if data.same else " (not the same labels)")
        axis.set_xlabel(words)
        axis.set_title(data.title, loc="left")
    legend(figure, runs)
    return figure


F1 = Experiment(
    title="F1 of every sampler with every estimator",
    data=PAPER_DATA,
    cases=_every_row,
    numbers=("test_f1", "best_validation_f1", "snapshots", "training_seconds"),
    draw=_draw_f1,
    reference=_paper_f1,
)

# -- seconds ----------------------------------------------------------------------------------


def _timed(plan: Plan, data: Dataset) -> list[Case]:
    # A time for each step is the same after 20 epochs as after 200.
    epochs = min(plan.epochs, 20)
    return [
        case(plan, data, "ladies", estimator, kinds=(TIMES_RUN,), epochs=epochs)
        for estimator in ("sgcn", "sgcn++")
    ]


def _paper_seconds(dataset: str, case: Case, quantity: str) -> Sequence[float] | None:
    found = paper()["seconds"][case.estimator].get(quantity)
    return None if found is None else [found[dataset]]


TIMES = Experiment(
    title="Seconds of LADIES in five parts",
    data=PAPER_DATA,
    cases=_timed,
    numbers=(*PARTS, "total"),
    draw=partial(
        stacks,
        parts=PARTS,
        words="seconds of ten regular steps, and one snapshot for sgcn++",
    ),
    reference=_paper_seconds,
    note="Ten regular steps, and for SGCN++ one snapshot before them. Transfer is the reading of "
    "history rows: no device is involved, and rows of features are read inside the products, which "
    "is computing. A snapshot of the whole graph samples nothing. The paper's times are of an "
    "Intel i9-10850K with an RTX 3090: compare the shares, not the seconds.",
)

# -- memory -----------------------------------------------------------------------------------


def _weighed(plan: Plan, data: Dataset) -> list[Case]:
    epochs = min(plan.epochs, 3)  # memory is that of its largest step
    samplers = ("ladies",) if plan.quick else ("neighbor", "ladies", "saint")
    return [
        case(plan, data, sampler, estimator, kinds=(MEMORY_RUN,), epochs=epochs)
        for sampler in samplers
        for estimator in ("sgcn", "sgcn++")
    ]


MEMORY = Experiment(
    title="Memory of SGCN and SGCN++",
    data=("flickr", "ppi"),
    cases=_weighed,
    numbers=("peak_rss_mb", "rss_mb", "tables_mb", "device_mb"),
    draw=partial(
        bars,
        quantities={
            "peak_rss_mb": "peak RSS (MB)",
            "rss_mb": "RSS at the end (MB)",
            "tables_mb": "tables (MB)",
        },
    ),
    note="Every run has a process of its own. RSS counts the program and the graph too; the tables "
    "are the history of SGCN++. The paper's figure has the memory of a GPU: `device mb` is empty "
    "where there is none.",
)
