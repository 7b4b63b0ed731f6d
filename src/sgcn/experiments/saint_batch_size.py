"""The size of GraphSAINT's subgraphs, with SGCN and with SGCN++."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import case


def cases(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (512, 2048) if plan.quick else (512, 1024, 2048, 4096)
    return [
        _sized(case(plan, data, "saint", kind, setting=f"B={size}", at=size, batch_size=size), size)
        for kind in ("sgcn", "sgcn++")
        for size in sizes
    ]


def _sized(case: Case, size: int) -> Case:
    sampler = case.values["sampler"] | {"size": size}
    return dataclasses.replace(case, values=case.values | {"sampler": sampler})


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import against

    quantities = {"lowest_validation_loss": "lowest validation loss", "test_f1": "test F1 (%)"}
    return against(runs, quantities, "nodes drawn for a subgraph")


EXPERIMENT = Experiment(
    title="Subgraph size of GraphSAINT",
    data=("reddit",),
    cases=cases,
    numbers=("test_f1", "lowest_validation_loss", "training_seconds"),
    draw=draw,
    note="The paper does not state its sizes; 2,048 is its default.",
)
