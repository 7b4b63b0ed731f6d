"""What a run does not tell by itself: memory of its tables, the sampling of its snapshots."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import torch

from sgcn.block import Int32
from sgcn.estimators.engine import Engine
from sgcn.runs.config import Config
from sgcn.runs.directory import prepare
from sgcn.samplers.base import exact_block
from sgcn.task import Task, split_nodes, train_nodes

_MEGABYTE = 1 << 20


def memory(config: Config) -> dict[str, float | None]:
    """Megabytes of this process and its device, and of the history tables.

    The process must have done nothing but the run of ``config``.
    """
    now = _rss("VmRSS"), _rss("VmHWM")  # before anything else is made
    device = None
    if torch.cuda.is_available():
        device = torch.cuda.max_memory_allocated() / _MEGABYTE
    engine = _engine(config)
    tables = 0.0
    if engine.estimator.takes_snapshots:
        engine.snapshot()
        tables = engine.table_bytes / _MEGABYTE
    return {"rss_mb": now[0], "peak_rss_mb": now[1], "tables_mb": tables, "device_mb": device}


def _rss(name: str) -> float | None:
    """A line of /proc/self/status in MB. (getrusage counts the parent process before exec.)"""
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[name].split()[0]) / 1024.0


def snapshot_sampling(config: Config, repeats: int = 3) -> float:
    """Seconds that the blocks of a large-batch snapshot take; 0 for the whole graph."""
    engine = _engine(config)
    if engine.estimator.snapshot_nodes is None or not engine.estimator.takes_snapshots:
        return 0.0
    engine.snapshot()  # draws the pool
    assert engine.pool is not None
    began = perf_counter()
    for _ in range(repeats):
        rows: Int32 = engine.pool
        for _ in range(engine.sampled_depth):
            rows = exact_block(engine.graph, rows).src
    return (perf_counter() - began) / repeats


def _engine(config: Config) -> Engine:
    config, graph, model = prepare(config)
    return Engine(
        config.training.estimator, model, graph, Task.of(graph), train_nodes(graph),
        config.training.sampler, seed=config.training.loop.seed, scored=split_nodes(graph, 1),
    )  # fmt: skip
