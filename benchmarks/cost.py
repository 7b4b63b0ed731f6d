"""Time regular steps against plain ones, snapshots against full-batch steps; memory.

examples:
  python -m benchmarks cost debian flickr-like --sampler neighbor ladies
  python -m benchmarks cost debian flickr-like --pre
  python -m benchmarks cost flickr-like --memory

Times are medians of CPU milliseconds, one thread, the estimators taking turns on the same batches;
the sample itself, which all share, is not counted. Memory is the peak of a process of its own that
trains 22 steps, beyond what the process had once the graph was open.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.engines import descend, make_engine, next_step, regular, set_threads
from benchmarks.options import add_integers, check_positive
from benchmarks.process import answer, call, peak_mb
from sgcn.data.source import open_data
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.estimators.engine import Engine
from sgcn.graph import Graph
from sgcn.rng import Key
from sgcn.samplers import Sampler, make_sampler
from sgcn.sources import Loader

_RATE = 1e-5
_FOREVER: dict[str, Any] = {"gap": None, "restart": "never"}  # snapshots come when they are asked


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument("--sampler", nargs="+", default=["neighbor"], metavar="NAME")
    add_integers(
        parser,
        ("--width", 128, "of the two graph layers"),
        ("--rounds", 15, "regular steps to take the median of"),
    )
    parser.add_argument("--pre", action="store_true", help="P X is computed once")
    parser.add_argument("--memory", action="store_true", help="peak memory of full and sgcn++")


def run(args: argparse.Namespace) -> None:
    check_positive(args, "width", "rounds")
    set_threads(1)
    for data in args.data:
        if args.memory:
            _print_memory(data, args.width)
            continue
        graph = open_data(data)
        for sampler in args.sampler:
            snapshot, full = snapshot_times(graph, sampler, args.width, args.pre)
            ms = times(graph, sampler, args.width, args.rounds, args.pre)
            print(f"{data}, {sampler}: snapshot {snapshot:.0f} ms, full-batch step "
                  f"{full:.0f} ms, {snapshot / full:.2f}x")  # fmt: skip
            for name, value in ms.items():
                print(f"  {name:<10}{value:8.1f} ms{value / ms['sgcn']:8.2f}x")


def engine_of(
    graph: Graph, sampler: Sampler, estimator: str, width: int, *, pre: bool = False, **options: Any
) -> Engine:
    rule = make_estimator(estimator, **{"warmup": 0} | options)
    return make_engine(graph, sampler, rule, width=width, preaggregate=pre)


def times(graph: Graph, sampler_name: str, width: int, rounds: int, pre: bool) -> dict[str, float]:
    """Of a regular step of every estimator."""
    sampler = make_sampler(sampler_name)
    names = [name for name in ESTIMATORS if name != "full"]
    engines = {name: engine_of(graph, sampler, name, width, pre=pre, **_FOREVER) for name in names}
    loader = Loader(graph, engines["sgcn"].train, sampler)
    seen: dict[str, list[float]] = {name: [] for name in names}
    for step in range(rounds + 1):
        key = Key(0, 0, step)
        batch = engines["sgcn"].draw(loader.seeds(0, step), key)
        exact = engines["vrgcn"].draw(loader.seeds(0, step), key)
        for name, engine in engines.items():
            if engine.due():
                descend(engine, engine.snapshot(), _RATE)
            began = process_time()
            descend(engine, regular(engine, exact if "vrgcn" in name else batch, key), _RATE)
            seen[name].append(process_time() - began)
    return {name: 1e3 * median(values[1:]) for name, values in seen.items()}


def snapshot_times(graph: Graph, sampler_name: str, width: int, pre: bool) -> tuple[float, float]:
    """Of a snapshot between regular steps, and of a full-batch step; no other tables around."""
    sampler = make_sampler(sampler_name)
    ours = engine_of(graph, sampler, "sgcn++", width, pre=pre, **_FOREVER)
    full = engine_of(graph, sampler, "full", width, pre=pre)
    loader = Loader(graph, full.train, sampler)
    seen: tuple[list[float], list[float]] = ([], [])
    descend(ours, ours.snapshot(), _RATE)
    for step in range(7):
        key = Key(0, 0, step)
        descend(ours, regular(ours, ours.draw(loader.seeds(0, step), key), key), _RATE)
        for engine, spent in zip((ours, full), seen, strict=True):
            began = process_time()
            descend(engine, engine.snapshot(), _RATE)
            spent.append(process_time() - began)
    return 1e3 * median(seen[0][1:]), 1e3 * median(seen[1][1:])


def _print_memory(data: str, width: int) -> None:
    found = {}
    with tempfile.TemporaryDirectory(prefix="sgcn-benchmark-") as folder:
        for name in ("full", "sgcn", "sgcn++", "anchored"):
            order = {"data": data, "estimator": name, "width": width}
            found[name] = call("benchmarks.cost", order, Path(folder) / "peak.json", 1)["mib"]
    print(data, {name: f"{mib:.0f} MiB, {mib / found['full']:.2f}x full"
                 for name, mib in found.items()})  # fmt: skip


def peak(order: dict[str, Any]) -> dict[str, Any]:
    """MiB beyond the open graph, in this process."""
    graph = open_data(order["data"])
    engine = engine_of(graph, make_sampler("neighbor"), order["estimator"], order["width"])
    loader = Loader(graph, engine.train, engine.sampler)
    before = peak_mb()
    for step in range(22):
        descend(engine, next_step(engine, loader.seeds(0, step), Key(0, 0, step)), _RATE)
    return {"mib": peak_mb() - before}


if __name__ == "__main__":
    sys.exit(answer(peak))
