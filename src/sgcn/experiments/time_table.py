"""The table of seconds: LADIES with SGCN++ and with SGCN, in the paper's five parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import TIMES, Case, Experiment, Plan, Run, paper
from sgcn.experiments.data import PAPER_DATA, Dataset
from sgcn.experiments.measures import PARTS
from sgcn.experiments.settings import case


def cases(plan: Plan, data: Dataset) -> list[Case]:
    # A time for each step is the same after 20 epochs as after 200.
    epochs = min(plan.epochs, 20)
    return [
        case(plan, data, "ladies", estimator, kinds=(TIMES,), epochs=epochs)
        for estimator in ("sgcn", "sgcn++")
    ]


def reference(dataset: str, case: Case, quantity: str) -> Sequence[float] | None:
    found = paper()["seconds"][case.estimator].get(quantity)
    return None if found is None else [found[dataset]]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import stacks

    return stacks(runs, PARTS, "seconds of ten regular steps, and one snapshot for sgcn++")


EXPERIMENT = Experiment(
    title="Seconds of LADIES in five parts",
    data=PAPER_DATA,
    cases=cases,
    numbers=(*PARTS, "total"),
    draw=draw,
    reference=reference,
    note="Ten regular steps, and for SGCN++ one snapshot before them. Transfer is the reading of "
    "history rows: no device is involved, and rows of features are read inside the products, which "
    "is computing. A snapshot of the whole graph samples nothing. The paper's times are of an "
    "Intel i9-10850K with an RTX 3090: compare the shares, not the seconds.",
)
