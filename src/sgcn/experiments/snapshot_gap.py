"""The snapshot gap K, without restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import case

CURVES = ("training_loss", "validation_loss", "validation_f1")


def cases(plan: Plan, data: Dataset) -> list[Case]:
    gaps = (5, 20) if plan.quick else (5, 10, 15, 20)
    return [
        case(plan, data, "ladies", kind, setting=f"K={gap}", at=gap, gap=gap, restart="never")
        for kind in ("sgcn++", "sgcn+")
        for gap in gaps
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import curves, graph_and_estimator, setting

    return curves(runs, CURVES, series=setting, row=graph_and_estimator)


EXPERIMENT = Experiment(
    title="Snapshot gap K without restarts, LADIES",
    data=("reddit",),
    cases=cases,
    numbers=("test_f1", "final_training_loss", "lowest_validation_loss", "training_seconds"),
    draw=draw,
    curves=CURVES,
    note="The paper does not name the sampler of this figure; LADIES is that of its others.",
)
