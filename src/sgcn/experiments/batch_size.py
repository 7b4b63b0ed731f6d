"""The size B of mini-batches of SGCN++, without restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import case

CURVES = ("training_loss", "validation_loss", "validation_f1")


def cases(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (256, 2048) if plan.quick else (256, 512, 1024, 2048)
    return [
        case(
            plan, data, "ladies", "sgcn++", setting=f"B={size}", at=size, batch_size=size,
            restart="never",
        )
        for size in sizes
    ]  # fmt: skip


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import curves, setting

    return curves(runs, CURVES, series=setting)


EXPERIMENT = Experiment(
    title="Mini-batch size B, SGCN++ with LADIES, without restarts",
    data=("ppi-large",),
    cases=cases,
    numbers=("test_f1", "final_training_loss", "lowest_validation_loss", "training_seconds"),
    draw=draw,
    curves=CURVES,
    note="The paper's snapshots have B' = 80,000 nodes, more than the graph: they are whole here. "
    "The paper does not name the sampler of this figure; LADIES keeps 512 draws in a layer.",
)
