"""The tables and figures of the paper.

    plan and data -> cases -> runs (cached) -> numbers and curves -> CSV, JSON, Markdown, figure

A new experiment is an `Experiment` in `tables.py`, `losses.py` or `ablations.py`, or in a file of
its own, and a line in `EXPERIMENTS`.
"""

from __future__ import annotations

from sgcn.experiments import ablations, losses, tables
from sgcn.experiments.core import Experiment

#: By their names on the command line.
EXPERIMENTS: dict[str, Experiment] = {
    "f1-table": tables.F1,
    "time-table": tables.TIMES,
    "decomposition": losses.DECOMPOSITION,
    "convergence": losses.CONVERGENCE,
    "gradient-mse": losses.GRADIENT_MSE,
    "memory": tables.MEMORY,
    "wall-clock": losses.WALL_CLOCK,
    "snapshot-gap": ablations.SNAPSHOT_GAP,
    "large-batch": ablations.LARGE_BATCH,
    "growing-gap": ablations.GROWING_GAP,
    "batch-size": ablations.BATCH_SIZE,
    "saint-batch-size": ablations.SAINT_BATCH_SIZE,
    "sgd-vs-adam": ablations.SGD_VS_ADAM,
}
