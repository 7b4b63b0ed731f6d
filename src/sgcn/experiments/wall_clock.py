"""Training and validation loss against seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import ROWS, case

CURVES = ("training_loss", "validation_loss")


def cases(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, sampler, estimator)
        for sampler in plan.samplers
        if sampler != "full"
        for estimator in ROWS[sampler]
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import SAMPLERS, curves

    return curves(
        runs, CURVES, x="seconds",
        row=lambda run: f"{run.case.data.title}, {SAMPLERS[run.case.sampler]}",
    )  # fmt: skip


EXPERIMENT = Experiment(
    title="Losses against seconds of training",
    data=("reddit", "ppi-large"),
    cases=cases,
    numbers=("training_seconds", "final_training_loss", "lowest_validation_loss"),
    draw=draw,
    curves=CURVES,
    note="Seconds are those of sampling, reading rows and computing, snapshots included; looks at "
    "the validation nodes between snapshots are left out. Several --jobs share the machine's "
    "memory: take one for seconds that count.",
)
