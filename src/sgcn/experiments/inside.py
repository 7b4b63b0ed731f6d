"""What a run's files do not say: memory of its tables, and the sampling of its snapshots."""

from __future__ import annotations

from time import perf_counter

import torch

from sgcn.block import Int32
from sgcn.estimators.engine import Engine
from sgcn.machine import peak_memory, resident_memory
from sgcn.runs.config import Config
from sgcn.runs.directory import prepare
from sgcn.samplers.base import exact_block
from sgcn.task import Task, split_nodes, train_nodes

_MEGABYTE = 1 << 20
_REPEATS = 3  # of what is timed


def memory(config: Config) -> dict[str, float | None]:
    """Megabytes of this process and its device, and of the history tables.

    The process must have done nothing but the run of ``config``.
    """
    now = resident_memory() / _MEGABYTE, peak_memory() / _MEGABYTE  # before anything else is made
    device = None
    if torch.cuda.is_available():
        device = torch.cuda.max_memory_allocated() / _MEGABYTE
    engine = _engine(config)
    tables = 0.0
    if engine.estimator.takes_snapshots:
        engine.snapshot()
        tables = engine.table_bytes / _MEGABYTE
    return {"rss_mb": now[0], "peak_rss_mb": now[1], "tables_mb": tables, "device_mb": device}


def snapshot_sampling(config: Config) -> float:
    """Seconds that the blocks of a large-batch snapshot take; 0 if snapshots cover all nodes."""
    engine = _engine(config)
    if engine.estimator.snapshot_nodes is None or not engine.estimator.takes_snapshots:
        return 0.0
    engine.snapshot()  # draws the pool
    assert engine.pool is not None
    began = perf_counter()
    for _ in range(_REPEATS):
        rows: Int32 = engine.pool
        for _ in range(engine.operands.sampled_depth):
            rows = exact_block(engine.graph, rows).src
    return (perf_counter() - began) / _REPEATS


def _engine(config: Config) -> Engine:
    config, graph, model = prepare(config)
    return Engine(
        config.training.estimator, model, graph, Task.of(graph), train_nodes(graph),
        config.training.sampler, seed=config.training.loop.seed, scored=split_nodes(graph, 1),
    )  # fmt: skip
