"""Memory of SGCN and SGCN++: the process, the history tables, and the device if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgcn.experiments.core import MEMORY, Case, Experiment, Plan, Run
from sgcn.experiments.data import Dataset
from sgcn.experiments.settings import case


def cases(plan: Plan, data: Dataset) -> list[Case]:
    epochs = min(plan.epochs, 3)  # memory is that of its largest step
    samplers = ("ladies",) if plan.quick else ("neighbor", "ladies", "saint")
    return [
        case(plan, data, sampler, estimator, kinds=(MEMORY,), epochs=epochs)
        for sampler in samplers
        for estimator in ("sgcn", "sgcn++")
    ]


def draw(runs: Sequence[Run]) -> Any:
    from sgcn.experiments.figures import bars

    return bars(
        runs,
        {
            "peak_rss_mb": "peak RSS (MB)",
            "rss_mb": "RSS at the end (MB)",
            "tables_mb": "tables (MB)",
        },
    )


EXPERIMENT = Experiment(
    title="Memory of SGCN and SGCN++",
    data=("flickr", "ppi"),
    cases=cases,
    numbers=("peak_rss_mb", "rss_mb", "tables_mb", "device_mb"),
    draw=draw,
    note="Every run has a process of its own. RSS counts the program and the graph too; the tables "
    "are the history of SGCN++. The paper's figure has the memory of a GPU: `device mb` is empty "
    "where there is none.",
)
