"""The opening figure: losses and gradient error of SGCN, SGCN+ and SGCN++ with LADIES."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import PROBE, TRAIN, Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import ROWS, case

CURVES = ("training_loss", "validation_loss", "gradient_mse")


def cases(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, "ladies", estimator, kinds=(TRAIN, PROBE)) for estimator in ROWS["ladies"]
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import curves

    return curves(runs, CURVES)


EXPERIMENT = Experiment(
    title="Doubly variance reduction, LADIES",
    data=("flickr",),
    cases=cases,
    numbers=("final_training_loss", "lowest_validation_loss", "gradient_mse"),
    draw=draw,
    curves=CURVES,
    note="The error of the gradient is relative to the exact one, |g - G|² / |G|², and a number "
    "for a run is the geometric mean over its steps; the paper's is absolute.",
)
