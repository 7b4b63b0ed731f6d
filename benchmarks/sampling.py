"""Time every sampler against published ways to sample, interleaved in one run.

examples:
  python -m benchmarks sampling                           flickr-like and reddit-like, every sampler
  python -m benchmarks sampling --graph flickr-like --samplers neighbor,ladies
  python -m benchmarks sampling --graph my-graph/ --out bench.json

A round times every implementation once, on the same seeds, so that what else the machine does hits
all of them alike; the median over rounds is reported. One thread, two layers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks import baselines, peers
from benchmarks.options import add_integers, add_out, add_texts, check_positive, listed, target
from benchmarks.report import finish, progress
from sgcn.block import Batch, Int32
from sgcn.data import load
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.options import known_name
from sgcn.rng import Key, Stream
from sgcn.samplers import NodeSet, Sampler, make_sampler
from sgcn.sources import Loader

DEPTH = baselines.DEPTH
_BURST = 0.02  # seconds: fast samplers are timed over several batches in a row
_EPOCHS = 25  # of a seventh of a second, for each number of prefetch threads


@dataclass(frozen=True)
class Case:
    """A sampler at the paper's size, and the published code it is held against."""

    sampler: Sampler
    published: baselines.Draw
    tuned: baselines.Draw | None = None
    #: How many neighbours or nodes a peer draws.
    size: int = 0
    #: Whether the definition makes it read whole rows, not only what it keeps.
    scans: bool = True


CASES = {
    "neighbor": Case(make_sampler("neighbor"), baselines.neighbor(5), size=5, scans=False),
    "vrgcn": Case(make_sampler("vrgcn"), baselines.vrgcn(2), scans=False),
    "ladies": Case(make_sampler("ladies"), baselines.ladies(512)),
    "fastgcn": Case(
        make_sampler("fastgcn"), baselines.fastgcn(4096), baselines.fastgcn(4096, tuned=True)
    ),
    "saint": Case(
        make_sampler("saint"),
        baselines.saint_node(2048),
        baselines.saint_node(2048, tuned=True),
        size=2048,
    ),
    "saint-edge": Case(make_sampler("saint", variant="edge"), baselines.saint_edge(2048)),
    "saint-walk": Case(make_sampler("saint", variant="walk"), baselines.saint_walk(2048, 2)),
    "labor": Case(make_sampler("labor"), baselines.labor(5), size=5),
    "exact": Case(make_sampler("exact"), baselines.exact),
    "cluster": Case(make_sampler("cluster"), baselines.cluster(50, 2)),
}

#: One batch: (seeds, step) -> sampled edges.
Run = Callable[[Int32, int], int]


@dataclass
class Contest:
    """The implementations of one sampler on one graph, and the times they took."""

    graph: str
    sampler: str
    runs: dict[str, Run]
    bound_bytes: float
    seconds: dict[str, list[float]] = field(default_factory=dict)
    edges: dict[str, int] = field(default_factory=dict)

    def ms(self, name: str) -> float:
        return float(np.median(self.seconds[name])) * 1e3


def arguments(parser: argparse.ArgumentParser) -> None:
    names = "synthetic graphs by name, or directories that Graph.save wrote"
    add_texts(parser, ("--graph", "flickr-like,reddit-like", "NAME[,..]", names))
    parser.add_argument("--samplers", metavar="NAME[,..]", help="only these; default: all")
    add_integers(
        parser,
        ("--batches", 7, "rounds; each times every implementation once, on the same seeds"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--seed", 0, "of graphs, seeds and samples"),
    )
    numbers = "numbers of prefetch threads to compare, the first being the unit"
    add_texts(parser, ("--threads", "1,2", "N[,..]", numbers))
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    names = listed("--samplers", args.samplers) if args.samplers else list(CASES)
    for name in names:
        known_name("sampler", name, CASES)
    check_positive(args, "batches", "batch_size")
    threads = listed("--threads", args.threads)
    if not all(number.isdecimal() and int(number) > 0 for number in threads):
        raise SgcnError(f"--threads is {args.threads!r}, expected whole numbers >= 1, as in 1,2")
    out = target(args.out)
    report = measure(
        listed("--graph", args.graph),
        names,
        batches=args.batches,
        batch_size=args.batch_size,
        threads=[int(number) for number in threads],
        seed=args.seed,
    )
    finish(report, table, out)


def measure(
    graphs: list[str],
    samplers: list[str],
    *,
    batches: int,
    batch_size: int,
    threads: list[int],
    seed: int,
) -> dict[str, Any]:
    """The figures as a dictionary of plain values, in the layout of the JSON file."""
    contests: list[Contest] = []
    prefetch: dict[str, float] = {}
    for name in graphs:
        graph = load(name, seed=seed, features=False)
        pool = NodeSet(_training_nodes(graph), len(graph))
        label = Path(name).name
        made = [_contest(label, s, graph, pool, batch_size, seed) for s in samplers]
        for step in progress(range(batches), f"{label}: rounds"):
            seeds = [drawn_seeds(pool, batch_size, seed, 100 * step + k) for k in range(20)]
            for contest in made:
                for kind in contest.runs:
                    _time(contest, kind, seeds, 100 * step)
        timed: dict[str, _Timed] = {
            name: _loading(graph, pool, CASES[name].sampler, batch_size, seed) for name in samplers
        }
        scaling = _scaling(timed | {"(machine)": _reading(graph)}, threads, f"{label}: prefetching")
        prefetch |= {f"{label}/{key}": x for key, x in scaling.items()}
        contests += made
    bandwidth = memory_bandwidth()
    return {
        "results": [
            {
                "graph": c.graph,
                "sampler": c.sampler,
                "implementation": kind,
                "ms": c.ms(kind),
                "edges": c.edges[kind],
            }
            for c in contests
            for kind in c.runs
        ],
        "ratios": {
            f"{c.graph}/{c.sampler}/{kind}": c.ms(kind) / c.ms("sgcn")
            for c in contests
            for kind in c.runs
            if kind != "sgcn"
        },
        "prefetch": prefetch,
        "bounds_ms": {f"{c.graph}/{c.sampler}": c.bound_bytes / bandwidth * 1e3 for c in contests},
        "memory_bytes_per_second": bandwidth,
        "batches": batches,
        "batch_size": batch_size,
        "layers": DEPTH,
        "threads": threads,
        "seed": seed,
        "versions": peers.versions(),
    }


def _training_nodes(graph: Graph) -> npt.NDArray[np.int64]:
    nodes = np.arange(len(graph))
    training = nodes if graph.split is None else np.flatnonzero(graph.split == 0)
    return training if len(training) else nodes


def drawn_seeds(pool: NodeSet, batch_size: int, seed: int, step: int) -> Int32:
    order = permutation(len(pool.ids), Key(seed, 0, step).stream(Stream.BENCHMARK))
    seeds: Int32 = pool.ids[order[:batch_size]]
    return seeds


def _contest(
    graph_name: str, name: str, graph: Graph, pool: NodeSet, batch_size: int, seed: int
) -> Contest:
    """Every implementation of ``name``, prepared and run once: tables made, kernels compiled."""
    case = CASES[name]
    data = graph.memo("published", lambda: baselines.Published(graph))
    rng = np.random.default_rng(seed)

    def ours(seeds: Int32, step: int) -> int:
        nodes = pool if case.sampler.draws_nodes else seeds
        return _edges(case.sampler.sample(graph, nodes, Key(seed, 0, step), DEPTH), case.sampler)

    def theirs(draw: baselines.Draw) -> Run:
        return lambda seeds, step: sum(block.nnz for block in draw(data, seeds, rng))

    def peer(draw: peers.Draw) -> Run:
        return lambda seeds, step: draw(seeds)

    runs: dict[str, Run] = {"sgcn": ours, "numpy": theirs(case.published)}
    if case.tuned is not None:
        runs["numpy-tuned"] = theirs(case.tuned)
    for kind, make in peers.available(name):
        runs[kind] = peer(make(graph, case.size))
    seeds = drawn_seeds(pool, batch_size, seed, 0)
    for run in runs.values():
        run(seeds, 0)
    nodes = pool if case.sampler.draws_nodes else seeds
    batch = case.sampler.sample(graph, nodes, Key(seed), DEPTH)
    return Contest(graph_name, name, runs, bytes_touched(graph, batch, case))


def _edges(batch: Batch, sampler: Sampler) -> int:
    if sampler.draws_nodes:  # one subgraph serves all layers
        return batch.blocks[0].edges
    return batch.edges + sum(block.edges for block in batch.exact)


def bytes_touched(graph: Graph, batch: Batch, case: Case) -> float:
    """The bytes that any implementation of the sampler's definition reads or writes for ``batch``.

    Read: a row's two pointers and scale, its column ids (all where the definition asks for them,
    otherwise the kept ones), the scale of every source. Write: the block. No scratch memory.
    """
    drawn = batch.blocks[:1] if case.sampler.draws_nodes else batch.blocks
    total = 0
    for block in (*drawn, *batch.exact):
        rows = len(block.dst)
        read = int(graph.degrees[block.dst].sum()) if case.scans else block.edges
        total += rows * (16 + 4) + 4 * read + 4 * len(block.src)
        total += 8 * (rows + 1) + 8 * block.edges + 4 * len(block.src) + 4 * rows
    return total


def _time(contest: Contest, kind: str, seeds: list[Int32], step: int) -> None:
    """Time one burst of batches; add its seconds per batch."""
    run = contest.runs[kind]
    edges = []
    start = time.perf_counter()
    for k, chosen in enumerate(seeds):
        edges.append(run(chosen, step + k))
        spent = time.perf_counter() - start
        if spent > _BURST:
            break
    contest.seconds.setdefault(kind, []).append(spent / len(edges))
    contest.edges[kind] = round(float(np.mean(edges)))


#: Seconds that so many threads need for a unit of work, in a given epoch.
_Timed = Callable[[int, int], float]


def _loading(graph: Graph, pool: NodeSet, sampler: Sampler, batch_size: int, seed: int) -> _Timed:
    """Times batches through a `Loader`."""

    def seconds(threads: int, epoch: int, steps: int) -> float:
        loader = Loader(
            graph,
            pool.ids,
            sampler,
            batch_size=batch_size,
            depth=DEPTH,
            seed=seed,
            threads=threads,
            batches_per_epoch=steps,
        )
        start = time.perf_counter()
        for _ in loader.epoch(epoch):
            pass
        return time.perf_counter() - start

    seconds(1, 0, 8)  # to warm up
    steps = int(np.clip(0.15 * 8 / seconds(1, 0, 8), 6, 400))
    return partial(seconds, steps=steps)


@njit(nogil=True, cache=True)
def _read(table: Any, turns: int) -> Any:
    """The sum of ``turns`` entries of ``table``, here and there, no read waiting for another."""
    state, total = np.uint64(turns), 0
    for _ in range(turns):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        total += table[state % np.uint64(len(table))]
    return total


def _reading(graph: Graph) -> _Timed:
    """Times loops that read the graph's edges here and there: what the machine has to give."""

    def seconds(threads: int, epoch: int) -> float:
        with ThreadPoolExecutor(threads) as pool:
            start = time.perf_counter()
            list(pool.map(partial(_read, graph.indices), [2_000_000] * 2 * threads))
            return (time.perf_counter() - start) / threads

    seconds(1, 0)
    return seconds


def _scaling(timed: dict[str, _Timed], threads: list[int], what: str) -> dict[str, float]:
    """How many times as fast each is as with the first number of threads.

    Interleaved, and in turns the one and the other first: a core that is taken away for a while
    meets every one of them.
    """
    taken: dict[str, list[list[float]]] = {name: [] for name in timed}
    for epoch in progress(range(_EPOCHS), what):
        for name, seconds in timed.items():
            turn = threads[:: 1 if epoch % 2 else -1]
            spent = {number: seconds(number, epoch) for number in turn}
            taken[name].append([spent[number] for number in threads])
    ratios = {name: np.array(rounds) for name, rounds in taken.items()}
    return {
        f"{name}/threads{number}": float(np.median(ratios[name][:, 0] / ratios[name][:, k]))
        for name in timed
        for k, number in enumerate(threads)
        if k > 0
    }


def memory_bandwidth(megabytes: int = 256) -> float:
    """Bytes per second that one thread reads and writes when it copies a large array; best of 5."""
    # Written, not zeros: pages nobody wrote are all one page of the kernel, and read from cache.
    source = np.full(megabytes << 17, 1.5)
    target = np.ones_like(source)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return float(2 * source.nbytes / best)


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    head = (
        f"{'graph':<14}{'sampler':<12}{'implementation':<15}{'ms':>10}{'edges/s':>10}{'ratio':>8}"
    )
    lines = [head + f"{'bound ms':>10}"]
    for row in report["results"]:
        key = f"{row['graph']}/{row['sampler']}"
        ours = row["implementation"] == "sgcn"
        ratio = 1.0 if ours else report["ratios"][f"{key}/{row['implementation']}"]
        speed = row["edges"] / row["ms"] * 1e3
        lines.append(
            f"{row['graph']:<14}{row['sampler']:<12}{row['implementation']:<15}"
            f"{row['ms']:>10.3f}{speed / 1e6:>9.2f}M{ratio:>8.1f}"
            + (f"{report['bounds_ms'][key]:>10.3f}" if ours else "")
        )
    lines += [
        "",
        "ms: median over rounds, one thread; ratio: ms over ours; bound: bytes that the definition "
        "must touch,",
        f"over {report['memory_bytes_per_second'] / 1e9:.1f} GB/s measured in this run",
    ]
    if report["prefetch"]:
        unit = report["threads"][0]
        lines += ["", f"batches per second through a Loader, over {unit} thread(s):"]
        lines += [f"  {key:<40}{x:>6.2f}" for key, x in report["prefetch"].items()]
        lines += [
            "(machine): compiled loops that only read the graph here and there, in the same rounds"
        ]
    return "\n".join(lines)
