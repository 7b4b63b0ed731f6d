"""The tables and figures of the paper, one small file each.

    plan and data -> cases -> runs (cached) -> numbers and curves -> CSV, JSON, Markdown, figure

A new experiment is a file with an `EXPERIMENT`, and a line in `EXPERIMENTS`.
"""

from __future__ import annotations

from importlib import import_module

from sgcn.experiments.core import Experiment

#: Names on the command line, and the modules behind them.
EXPERIMENTS = {
    "f1-table": "f1_table",
    "time-table": "time_table",
    "decomposition": "decomposition",
    "convergence": "convergence",
    "gradient-mse": "gradient_mse",
    "memory": "memory",
    "wall-clock": "wall_clock",
    "snapshot-gap": "snapshot_gap",
    "large-batch": "large_batch",
    "growing-gap": "growing_gap",
    "batch-size": "batch_size",
    "saint-batch-size": "saint_batch_size",
    "sgd-vs-adam": "sgd_vs_adam",
}


def get(name: str) -> Experiment:
    """The experiment called ``name``."""
    from sgcn.options import known_name

    known_name("experiment", name, EXPERIMENTS)
    found: Experiment = import_module(f"sgcn.experiments.{EXPERIMENTS[name]}").EXPERIMENT
    return found
