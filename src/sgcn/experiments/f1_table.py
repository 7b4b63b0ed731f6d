"""The table of F1 scores: every sampler with every estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sgcn.experiments.core import Case, Experiment, Plan, Run, paper
from sgcn.experiments.data import PAPER_DATA, Dataset
from sgcn.experiments.settings import ROWS, case


def cases(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, sampler, estimator)
        for sampler in plan.samplers
        for estimator in ROWS[sampler]
    ]


def reference(dataset: str, case: Case, quantity: str) -> Sequence[float] | None:
    if quantity != "test_f1":
        return None
    found: Sequence[float] = paper()["f1"][case.sampler][case.estimator][dataset]
    return found


def draw(runs: Sequence[Run]) -> Any:
    """A row for each sampler, a dot for each estimator, the paper's number as a diamond."""
    from sgcn.experiments.figures import COLOURS, SAMPLERS, canvas, legend
    from sgcn.experiments.measures import number
    from sgcn.experiments.output import by_case, spread

    titles = list(dict.fromkeys(run.case.data.title for run in runs))
    samplers = list(dict.fromkeys(run.case.sampler for run in runs))
    figure, axes = canvas(1, len(titles), width=4.4, height=0.5 * len(samplers) + 0.8)
    for axis, title in zip(axes[0], titles, strict=True):
        for group in by_case([run for run in runs if run.case.data.title == title]):
            case = group[0].case
            rows = ROWS[case.sampler]
            place = samplers.index(case.sampler)
            at = place + 0.22 * (rows.index(case.estimator) - (len(rows) - 1) / 2)
            mean, deviation = spread([number(run, "test_f1") for run in group])
            colour = COLOURS[case.estimator]
            axis.errorbar(mean, at, xerr=np.nan_to_num(deviation), color=colour, marker="o", ms=5,
                          capsize=2)  # fmt: skip
            known = case.data.paper and reference(case.data.paper, case, "test_f1")
            if known:
                axis.plot(known[0], at, marker="D", ms=5, mfc="none", mec=colour, alpha=0.7)
        axis.set_yticks(range(len(samplers)), [SAMPLERS[name] for name in samplers])
        axis.set_ylim(len(samplers) - 0.5, -0.5)
        data = next(run.case.data for run in runs if run.case.data.title == title)
        words = "test F1 (%)"
        if data.paper:
            words += "; diamonds: the paper's" + ("" if data.same else " (not the same labels)")
        axis.set_xlabel(words)
        axis.set_title(title, loc="left")
    legend(axes[0, 0], runs)
    return figure


EXPERIMENT = Experiment(
    title="F1 of every sampler with every estimator",
    data=PAPER_DATA,
    cases=cases,
    numbers=("test_f1", "best_validation_f1", "snapshots", "training_seconds"),
    draw=draw,
    reference=reference,
)
