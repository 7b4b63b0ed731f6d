"""The size B' of snapshots, without restarts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import case

CURVES = ("training_loss", "validation_loss", "validation_f1")
_SIZES = (20_000, 40_000, 60_000, 80_000)
_TRAINING_NODES = 153_000  # of Reddit, about: elsewhere B' is the same share of them


def cases(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (_SIZES[0], _SIZES[-1]) if plan.quick else _SIZES
    made = []
    for kind in ("sgcn++", "sgcn+"):
        for size in sizes:
            share = round(size / _TRAINING_NODES, 2)
            counted = data.paper == "reddit" and not plan.quick
            words = f"B'={size // 1000}k" if counted else f"B'={share:.0%}"
            made.append(
                case(
                    plan,
                    data,
                    "ladies",
                    kind,
                    setting=words,
                    at=size if counted else share,
                    restart="never",
                    snapshot_nodes=size if counted else share,
                )
            )
    return made


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import curves, graph_and_estimator, setting

    return curves(runs, CURVES, series=setting, row=graph_and_estimator)


EXPERIMENT = Experiment(
    title="Size B' of large-batch snapshots without restarts, LADIES",
    data=("reddit",),
    cases=cases,
    numbers=("test_f1", "final_training_loss", "lowest_validation_loss", "training_seconds"),
    draw=draw,
    curves=CURVES,
    note="On graphs other than Reddit's, B' is the share of the training nodes that the paper's "
    "sizes are of Reddit's. The paper does not name the sampler of this figure.",
)
