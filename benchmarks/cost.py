"""What a step costs: regular ones against plain ones, snapshots against full-batch steps, memory.

    python benchmarks/cost.py debian flickr-like --sampler neighbor ladies
    python benchmarks/cost.py debian flickr-like --pre
    python benchmarks/cost.py flickr-like --memory

Times are medians of CPU milliseconds, one thread, the estimators taking turns on the same batches;
the sample itself, which all share, is not counted. Memory is the peak of a process of its own that
trains 22 steps, beyond what the process had once the graph was open.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
from time import process_time

import numba
import torch

from sgcn.data.source import open_data
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.estimators.engine import Engine
from sgcn.nn import make_model
from sgcn.rng import Key
from sgcn.samplers import make_sampler
from sgcn.sources import Loader
from sgcn.task import Task, split_nodes


def engine_of(graph, sampler, estimator: str, width: int, *, pre=False, **options) -> Engine:
    task = Task.of(graph)
    model = make_model(graph.x.shape[1], task.classes, widths=width)
    rule = make_estimator(estimator, **{"warmup": 0} | options)
    train = split_nodes(graph, 0)
    return Engine(rule, model, graph, task, train, sampler, preaggregate=pre)


def finish(engine: Engine, outcome) -> None:
    """A step of plain gradient descent, too small to matter."""
    engine.remember()
    with torch.no_grad():
        for name, parameter in engine.model.named_parameters():
            parameter -= 1e-5 * outcome.gradient[name]
    engine.commit()


def times(graph, sampler_name: str, width: int, rounds: int, pre: bool) -> dict[str, float]:
    sampler = make_sampler(sampler_name)
    names = [name for name in ESTIMATORS if name != "full"]
    engines = {name: engine_of(graph, sampler, name, width, pre=pre, gap=10**9, restart="never")
               for name in names}  # fmt: skip
    loader = Loader(graph, engines["sgcn"].train, sampler)
    seen: dict[str, list[float]] = {name: [] for name in names}
    for step in range(rounds + 1):
        key = Key(0, 0, step)
        batch = engines["sgcn"].draw(loader.seeds(0, step), key)
        exact = engines["vrgcn"].draw(loader.seeds(0, step), key)
        for name, engine in engines.items():
            if engine.due():
                finish(engine, engine.snapshot())
            began = process_time()
            finish(engine, engine.regular(exact if "vrgcn" in name else batch, key))
            seen[name].append(process_time() - began)
    return {name: 1e3 * statistics.median(values[1:]) for name, values in seen.items()}


def snapshot_times(graph, sampler_name: str, width: int, pre: bool) -> tuple[float, float]:
    """Of a snapshot between regular steps, and of a full-batch step; no other tables around."""
    sampler = make_sampler(sampler_name)
    ours = engine_of(graph, sampler, "sgcn++", width, pre=pre, gap=10**9, restart="never")
    full = engine_of(graph, sampler, "full", width, pre=pre)
    loader = Loader(graph, full.train, sampler)
    seen: list[list[float]] = [[], []]
    finish(ours, ours.snapshot())
    for step in range(7):
        key = Key(0, 0, step)
        finish(ours, ours.regular(ours.draw(loader.seeds(0, step), key), key))
        for k, engine in enumerate((ours, full)):
            began = process_time()
            finish(engine, engine.snapshot())
            seen[k].append(process_time() - began)
    return tuple(1e3 * statistics.median(values[1:]) for values in seen)


def peak(data: str, estimator: str, width: int) -> float:
    """MiB beyond the open graph, in this process."""
    graph = open_data(data)
    engine = engine_of(graph, make_sampler("neighbor"), estimator, width)
    loader = Loader(graph, engine.train, engine.sampler)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for step in range(22):
        key, outcome = Key(0, 0, step), None
        if not engine.due():
            outcome = engine.regular(engine.draw(loader.seeds(0, step), key), key)
        finish(engine, outcome or engine.snapshot())
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--sampler", nargs="+", default=["neighbor"])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--pre", action="store_true", help="P X is computed once")
    parser.add_argument("--memory", action="store_true", help="peak memory of full and sgcn++")
    parser.add_argument("--peak", metavar="ESTIMATOR", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        print(peak(args.data[0], args.peak, args.width))
        return
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    for data in args.data:
        if args.memory:
            command = [sys.executable, __file__, data, "--width", str(args.width), "--peak"]
            found = {
                name: float(subprocess.check_output([*command, name]))
                for name in ("full", "sgcn", "sgcn++", "anchored")
            }
            print(data, {name: f"{mib:.0f} MiB, {mib / found['full']:.2f}x full"
                         for name, mib in found.items()})  # fmt: skip
            continue
        graph = open_data(data)
        for sampler in args.sampler:
            snapshot, full = snapshot_times(graph, sampler, args.width, args.pre)
            ms = times(graph, sampler, args.width, args.rounds, args.pre)
            plain = ms["sgcn"]
            print(f"{data}, {sampler}: snapshot {snapshot:.0f} ms, full-batch step "
                  f"{full:.0f} ms, {snapshot / full:.2f}x")  # fmt: skip
            for name in ESTIMATORS:
                if name != "full":
                    print(f"  {name:<10}{ms[name]:8.1f} ms{ms[name] / plain:8.2f}x")


if __name__ == "__main__":
    main()
