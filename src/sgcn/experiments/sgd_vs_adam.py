"""SGD against Adam, plain and doubly variance-reduced."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import BATCHES, case

CURVES = ("training_loss", "validation_loss", "validation_f1")
_RATES = {"Adam 0.01": ("adam", 0.01), "SGD 0.1": ("sgd", 0.1)}
_PATIENCE = 200  # steps without a lower validation loss


def cases(plan: Plan, data: Dataset) -> list[Case]:
    return [
        _with(case(plan, data, "ladies", kind, setting=words), name, lr)
        for words, (name, lr) in _RATES.items()
        for kind in ("sgcn", "sgcn++")
    ]


def _with(case: Case, optimizer: str, lr: float) -> Case:
    """SGD needs a hundred times the steps: both stop by patience, not by a number of epochs."""
    values = case.values
    more = 100 if optimizer == "sgd" and values["training"]["epochs"] >= 200 else 1
    changes = {
        "optimizer": {"name": optimizer, "lr": lr},
        "training": values["training"]
        | {
            "epochs": more * values["training"]["epochs"],
            "patience": _PATIENCE // BATCHES,
            "best_by": "loss",
        },
    }
    return dataclasses.replace(case, values=values | changes)


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import curves

    return curves(runs, CURVES, row=lambda run: f"{run.case.data.title}, {run.case.setting}")


EXPERIMENT = Experiment(
    title="SGD and Adam, LADIES",
    data=("ppi",),
    cases=cases,
    numbers=("test_f1", "final_training_loss", "lowest_validation_loss", "training_seconds"),
    draw=draw,
    curves=CURVES,
    note="Training stops when the validation loss has not come down for 200 steps. At the paper's "
    "budget SGD may take 100 times the epochs of Adam, as in the paper.",
)
