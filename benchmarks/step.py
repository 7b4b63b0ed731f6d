"""Time training steps against torch, PyG, the published procedure and a lower bound.

examples:
  python -m benchmarks step                                       flickr-like, 1 and 2 threads
  python -m benchmarks step --graph reddit-like --threads 1 --out step.json
  python -m benchmarks step --sampler neighbor --estimator anchored

A round times everyone once, so that what else the machine does hits all alike; the median over
rounds is reported, of CPU seconds for one thread. Three kinds of step: ``full`` (the whole graph),
``minibatch`` (neighbor 5,5, with sampling and gather) and ``snapshot+10`` (a snapshot and ten
regular steps).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch

from benchmarks import peers, sampling
from benchmarks.bound import Cost, Machine, Shape, clock, step_cost, table_cost
from benchmarks.contestants import DEPTH, PEERS, WIDTH, Ours, Published, Seeds, missing
from benchmarks.engines import set_threads
from benchmarks.options import add_integers, add_out, add_texts, check_positive, listed, target
from benchmarks.report import finish, progress
from sgcn.block import Batch
from sgcn.data import load
from sgcn.errors import SgcnError
from sgcn.estimators import Estimator, make_estimator
from sgcn.graph import Graph
from sgcn.machine import physical_memory
from sgcn.rng import Key
from sgcn.samplers import NodeSet, Sampler, make_sampler
from sgcn.task import Task, train_nodes

REGULAR = 10
_BURST = 5  # mini-batch steps in a row


def arguments(parser: argparse.ArgumentParser) -> None:
    add_texts(
        parser,
        ("--graph", "flickr-like", "NAME[,..]", "names of `sgcn data list` or saved graphs"),
        ("--sampler", "ladies", "NAME", "of the ten regular steps"),
        ("--estimator", "sgcn++", "NAME", "of the snapshot and the ten regular steps"),
    )
    add_integers(
        parser,
        ("--rounds", 5, "each times everyone once"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--seed", 0, "of graphs, weights and samples"),
    )
    parser.add_argument(
        "--threads", metavar="N[,..]", help="numbers of threads to measure with; default: 1,2"
    )
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    check_positive(args, "rounds", "batch_size")
    threads = _threads(args.threads)
    sampler = make_sampler(args.sampler)
    if sampler.draws_nodes:
        raise SgcnError(
            f"--sampler is {args.sampler!r}, which draws its own nodes, expected one that takes "
            "seeds, as ladies does"
        )
    estimator = make_estimator(args.estimator, restart="never", gap=REGULAR + 1)
    out = target(args.out)
    report = measure(
        listed("--graph", args.graph), sampler, estimator,
        threads=threads, rounds=args.rounds, batch_size=args.batch_size, seed=args.seed,
    )  # fmt: skip
    finish(report, table, out)


def _threads(text: str | None) -> list[int]:
    """The numbers in ``text``; without it 1 and 2, where the machine has as many."""
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # numba sets it late
    if text is None:
        return [number for number in (1, 2) if number <= most]
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 0 < int(word) <= most for word in words):
        raise SgcnError(
            f"--threads is {text!r}, expected whole numbers from 1 to {most} with a comma between "
            "them"
        )
    return [int(word) for word in words]


def measure(
    graphs: list[str],
    sampler: Sampler,
    estimator: Estimator,
    *,
    threads: list[int],
    rounds: int,
    batch_size: int,
    seed: int,
) -> dict[str, Any]:
    """The figures as a dictionary of plain values, in the layout of the JSON file."""
    report: dict[str, Any] = {"results": [], "ratios": {}, "categories": {}, "skipped": {}}
    report["machine"] = {}
    before = torch.get_num_threads(), numba.get_num_threads()
    try:
        for name in graphs:
            graph = load(name, seed=seed)
            if graph.x is None or Task.of(graph).multi_label:
                raise SgcnError(f"{name} has no features or several labels a node, expected a "
                                "graph with features and one label")  # fmt: skip
            contest = _Contest(Path(name).name, graph, sampler, estimator, batch_size, seed)
            for number in threads:
                set_threads(number)
                contest.hold(number, rounds, report)
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])
    return report | {
        "model": {"layers": DEPTH, "width": WIDTH, "head": True},
        "sampler": sampler.name,
        "rounds": rounds,
        "batch_size": batch_size,
        "threads": threads,
        "seed": seed,
        "versions": peers.versions(),
    }


class _Contest:
    """Everyone on one graph."""

    def __init__(
        self,
        label: str,
        graph: Graph,
        sampler: Sampler,
        estimator: Estimator,
        batch_size: int,
        seed: int,
    ) -> None:
        self.label, self.graph, self.sampler, self.estimator = label, graph, sampler, estimator
        self.size, self.seed = batch_size, seed
        self.pool = NodeSet(train_nodes(graph), len(graph))
        self.ours = Ours(graph, sampler, estimator, seed)
        self.skipped: dict[str, str] = {}
        self.peers = {}
        for name, make in PEERS.items():
            why = missing(name, graph, physical_memory())
            if why is None:
                self.peers[name] = make(graph, seed)
            else:
                self.skipped[name] = why
        self.published = Published(graph, seed)

    def hold(self, threads: int, rounds: int, report: dict[str, Any]) -> None:
        everyone = {"sgcn": self.ours, **self.peers}
        entries: dict[tuple[str, str], Callable[[Seeds], Any]] = {}
        for name, contestant in everyone.items():
            entries["full", name] = partial(_once, contestant.full)
            entries["minibatch", name] = partial(_several, contestant.minibatch)
        entries["snapshot+10", "sgcn"] = self.ours.cycle
        entries["snapshot+10", "published"] = self.published.cycle

        seconds: dict[tuple[str, str], list[float]] = {entry: [] for entry in entries}
        machines: list[Machine] = []
        parts: dict[str, list[dict[str, float]]] = {"sgcn": [], "published": []}
        for entry in entries:  # kernels are compiled, pages are there
            entries[entry](self._steps(0, _count(entry[0])))
        for step in progress(range(1, rounds + 1), f"{self.label}, {threads} thread(s)"):
            machines.append(Machine.measured())
            for entry, run in entries.items():
                steps = self._steps(step, _count(entry[0]))
                start = clock()
                found = run(steps)
                spent = clock() - start
                seconds[entry].append(spent / (len(steps) if entry[0] == "minibatch" else 1))
                if entry[0] == "snapshot+10":
                    parts[entry[1]].append(found)

        machine = Machine.median(machines)
        median = {entry: float(np.median(times)) for entry, times in seconds.items()}
        prefix = f"{self.label}/{threads}"
        for (what, who), value in median.items():
            report["results"].append(self._row(threads, what, who, value))
            if who != "sgcn":
                report["ratios"][f"{prefix}/{what}/{who}"] = value / median[what, "sgcn"]
        for what, cost in self._costs().items():
            least = machine.seconds(cost)
            report["results"].append(self._row(threads, what, "bound", least))
            report["ratios"][f"{prefix}/{what}/bound"] = median[what, "sgcn"] / least
        for who, found in parts.items():
            report["categories"][f"{prefix}/{who}"] = {
                name: float(np.median([one[name] for one in found])) for name in found[0]
            }
        report["machine"][prefix] = {
            "flops_per_second": machine.flops,
            "bytes_per_second": machine.bandwidth,
        }
        report["skipped"] |= {f"{self.label}/{who}": why for who, why in self.skipped.items()}

    def _row(self, threads: int, what: str, who: str, seconds: float) -> dict[str, Any]:
        return {
            "graph": self.label, "threads": threads, "what": what, "who": who, "seconds": seconds,
        }  # fmt: skip

    def _steps(self, step: int, count: int) -> Seeds:
        numbers = [100 * step + k for k in range(count)]
        size = min(self.size, len(self.pool.ids))
        return [
            (sampling.drawn_seeds(self.pool, size, self.seed, n), Key(self.seed, 0, n))
            for n in numbers
        ]

    def _costs(self) -> dict[str, Cost]:
        """The least work of each kind of step; sampled ones by the sizes of one batch."""
        graph = self.graph
        assert graph.x is not None
        widths = [graph.x.shape[1], *[WIDTH] * DEPTH, Task.of(graph).outputs]
        n = len(graph)
        train = self.pool.ids
        whole = Shape(n, n, graph.edges + n * graph.self_loops)
        last = Shape(
            len(train), n, int(graph.degrees[train].sum()) + len(train) * graph.self_loops
        )  # only these rows have a loss
        full = step_cost([whole] * (DEPTH - 1) + [last], widths, known=True)
        seeds, key = self._steps(0, 1)[0]
        plain = make_sampler("neighbor").sample(graph, seeds, key, DEPTH)
        reduced = self.sampler.sample(graph, seeds, key, DEPTH)
        passes = 2 if self.estimator.gradient.needs_snapshot else 1
        tables = [len(block.dst) for block in reduced.blocks]
        regular = self._drawn(reduced, self.sampler) + step_cost(_shapes(reduced), widths, passes)
        if self.estimator.takes_snapshots:
            regular += table_cost(tables, WIDTH)
        cycle = regular * REGULAR
        return {
            "full": full,
            "minibatch": self._drawn(plain, make_sampler("neighbor"))
            + step_cost(_shapes(plain), widths),
            "snapshot+10": cycle + full if self.estimator.takes_snapshots else cycle,
        }

    def _drawn(self, batch: Batch, sampler: Sampler) -> Cost:
        case = sampling.CASES.get(sampler.name)
        if case is None:
            return Cost()
        return Cost(bytes=sampling.bytes_touched(self.graph, batch, case))


def _count(what: str) -> int:
    return {"full": 0, "minibatch": _BURST, "snapshot+10": REGULAR}[what]


def _once(step: Callable[[], float], steps: Seeds) -> None:
    step()


def _several(step: Callable[..., float], steps: Seeds) -> None:
    for seeds, key in steps:
        step(seeds, key)


def _shapes(batch: Batch) -> list[Shape]:
    return [Shape(len(b.dst), len(b.src), b.edges) for b in batch.blocks]


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'graph':<14}{'threads':>8}  {'step':<13}{'who':<11}{'ms':>11}{'ratio':>8}"]
    for row in report["results"]:
        key = f"{row['graph']}/{row['threads']}/{row['what']}/{row['who']}"
        ratio = report["ratios"].get(key, 1.0)
        lines.append(
            f"{row['graph']:<14}{row['threads']:>8}  {row['what']:<13}{row['who']:<11}"
            f"{row['seconds'] * 1e3:>11.2f}{ratio:>8.2f}"
        )
    lines += [
        "",
        "ms: median over rounds; ratio: ms over ours, and for the bound ours over it",
        "",
        "snapshot + 10 regular steps, ms:",
    ]
    for key, found in report["categories"].items():
        parts = ", ".join(f"{name} {value * 1e3:.1f}" for name, value in found.items())
        lines.append(f"  {key}: {parts}")
    lines += [f"  {key}: skipped, {why}" for key, why in report["skipped"].items()]
    return "\n".join(lines)
