"""A snapshot gap that grows against a fixed one, without restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import case

CURVES = ("validation_loss", "validation_f1")


def cases(plan: Plan, data: Dataset) -> list[Case]:
    gap, growth = (5, 0.5) if plan.quick else (10, 0.1)  # ten snapshots come late in a quick run
    return [
        case(plan, data, "ladies", "sgcn++", setting=words, gap=gap, growth=g, restart="never")
        for words, g in ((f"K={gap}", 0.0), (f"K={gap}+{growth}s", growth))
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import curves, setting

    return curves(runs, CURVES, series=setting, x="seconds")


EXPERIMENT = Experiment(
    title="Growing snapshot gap, SGCN++ with LADIES, without restarts",
    data=("ppi",),
    cases=cases,
    numbers=("test_f1", "lowest_validation_loss", "snapshots", "training_seconds"),
    draw=draw,
    curves=CURVES,
    note="The paper does not name the sampler of this figure. The gap is the whole part of "
    "K + 0.1 s, so the two differ only after ten snapshots.",
)
