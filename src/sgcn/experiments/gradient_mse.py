"""Gradient error and training loss in the first steps: the paper shows 200."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import PROBE, TRAIN, Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import ROWS, case

CURVES = ("gradient_mse", "training_loss")


def cases(plan: Plan, data: Dataset) -> list[Case]:
    samplers = ("neighbor",) if plan.quick else ("neighbor", "fastgcn", "ladies", "saint")
    return [
        case(plan, data, sampler, estimator, kinds=(TRAIN, PROBE), epochs=min(plan.epochs, 20))
        for sampler in samplers
        for estimator in ROWS[sampler]
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import SAMPLERS, curves

    return curves(
        runs, CURVES, row=lambda run: f"{run.case.data.title}, {SAMPLERS[run.case.sampler]}"
    )


EXPERIMENT = Experiment(
    title="Error of the stochastic gradient in the first steps",
    data=("reddit",),
    cases=cases,
    numbers=("gradient_mse", "final_training_loss"),
    draw=draw,
    curves=CURVES,
    note="The error is relative to the exact gradient, |g - G|² / |G|², and a number for a run is "
    "the geometric mean over its steps; the paper's is absolute.",
)
