"""Validation loss of SGCN against SGCN++ for every sampler on every graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import PAPER_DATA, Dataset
from sgcn.experiments.settings import ROWS, case


def cases(plan: Plan, data: Dataset) -> list[Case]:
    """The first and the last row of each sampler: for VRGCN, SGCN+ is the plain one."""
    return [
        case(plan, data, sampler, estimator)
        for sampler in plan.samplers
        if sampler != "full"
        for estimator in (ROWS[sampler][0], ROWS[sampler][-1])
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import SAMPLERS, canvas, legend, plot

    titles = list(dict.fromkeys(run.case.data.title for run in runs))
    samplers = list(dict.fromkeys(run.case.sampler for run in runs))
    figure, axes = canvas(len(titles), len(samplers), width=2.6, height=2.3)
    for line, title in zip(axes, titles, strict=True):
        for axis, sampler in zip(line, samplers, strict=True):
            here = [r for r in runs if r.case.data.title == title and r.case.sampler == sampler]
            plot(axis, here, "validation_loss")
            axis.set_title(SAMPLERS[sampler], loc="left")
            axis.set_xlabel("step")
        data = next(run.case.data for run in runs if run.case.data.title == title)
        line[0].set_ylabel(f"{data.label}\nvalidation loss")
    legend(axes[0, 0], runs)
    return figure


EXPERIMENT = Experiment(
    title="Validation loss of SGCN and SGCN++",
    data=PAPER_DATA,
    cases=cases,
    numbers=("lowest_validation_loss", "best_validation_f1"),
    draw=draw,
    curves=("validation_loss",),
)
