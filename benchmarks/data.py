"""Time importing a graph against only reading its files, interleaved in one run.

examples:
  python -m benchmarks data                              reddit-like: 1.2 GB in GraphSAINT's layout
  python -m benchmarks data --graph flickr-like --out bench.json
  python -m benchmarks data --graph my-graph/ --rounds 5

The graph is written in GraphSAINT's layout first. The two take turns, so that what else the machine
does hits both alike; the median over rounds is reported. Memory is traced in a run of its own,
because tracing costs time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.options import add_integers, add_out, add_texts, check_positive, target
from benchmarks.report import finish
from sgcn.chunks import chunks
from sgcn.data import load
from sgcn.data.importers import import_graph
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse

_ROLES = ("tr", "va", "te")


def arguments(parser: argparse.ArgumentParser) -> None:
    names = "a synthetic graph by name, or a directory that Graph.save wrote"
    add_texts(parser, ("--graph", "reddit-like", "NAME", names))
    add_integers(
        parser,
        ("--rounds", 3, "each reads and imports once"),
        ("--seed", 0, "of the synthetic graph"),
    )
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    check_positive(args, "rounds")
    out = target(args.out)
    finish(measure(args.graph, rounds=args.rounds, seed=args.seed), table, out)


def measure(name: str, *, rounds: int, seed: int) -> dict[str, Any]:
    """The figures as a dictionary of plain values, in the layout of the JSON file."""
    with tempfile.TemporaryDirectory(prefix="sgcn-benchmark-") as made:
        source, out = Path(made) / "source", Path(made) / "out"
        source.mkdir()
        write_graphsaint(source, load(name, seed=seed))
        size = sum(path.stat().st_size for path in source.iterdir())

        def brought() -> None:
            shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            import_graph("graphsaint", source, out)
            seconds["import"].append(time.perf_counter() - start)

        def read() -> None:
            start = time.perf_counter()
            read_graphsaint(source)
            seconds["read"].append(time.perf_counter() - start)

        ways: dict[str, Callable[[], None]] = {"read": read, "import": brought}
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        brought()  # kernels are compiled and files are in the cache
        seconds["import"].clear()
        for _ in range(rounds):
            for way in ways.values():
                way()
        medians = {way: float(np.median(seconds[way])) for way in ways}
        peaks = {name: _peak(way) for name, way in ways.items()}
        largest = max(path.stat().st_size for path in out.glob("*.npy"))
    return {
        "graph": Path(name).name,
        "format": "graphsaint",
        "source_bytes": size,
        "largest_array_bytes": largest,
        "results": [
            {
                "way": way,
                "seconds": medians[way],
                "bytes_per_second": size / medians[way],
                "peak_bytes": peaks[way],
            }
            for way in ways
        ],
        "ratio": medians["import"] / medians["read"],
        "peak_over_largest": peaks["import"] / largest,
        "rounds": rounds,
        "seed": seed,
    }


def write_graphsaint(folder: Path, graph: Graph) -> None:
    """``graph`` in GraphSAINT's layout, features as float64, as they were published."""
    if graph.x is None or graph.y is None or graph.split is None or is_sparse(graph.x):
        raise SgcnError("the graph lacks dense features, labels or a split, expected all three")
    ones = np.ones(graph.edges, np.bool_)
    shape = (len(graph), len(graph))
    matrix = sp.csr_matrix((ones, graph.indices, graph.indptr), shape=shape)
    sp.save_npz(folder / "adj_full.npz", matrix)
    features = np.lib.format.open_memmap(
        folder / "feats.npy", "w+", np.float64, (len(graph), graph.x.shape[1])
    )
    for part in chunks(*features.shape):
        features[part] = graph.x[part]
    features.flush()
    labels = {str(node): label for node, label in enumerate(graph.y.tolist())}
    (folder / "class_map.json").write_text(json.dumps(labels))
    roles = {role: np.flatnonzero(graph.split == k).tolist() for k, role in enumerate(_ROLES)}
    (folder / "role.json").write_text(json.dumps(roles))


def read_graphsaint(folder: Path) -> tuple[Any, ...]:
    """The contents of the files, and nothing done with them."""
    return (
        sp.load_npz(folder / "adj_full.npz"),
        np.load(folder / "feats.npy"),
        json.loads((folder / "class_map.json").read_text()),
        json.loads((folder / "role.json").read_text()),
    )


def _peak(way: Callable[[], None]) -> int:
    """The most memory that Python and numpy held at a time, in bytes."""
    tracemalloc.start()
    try:
        way()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [
        f"{report['graph']} in GraphSAINT's layout: {report['source_bytes'] / 1e6:,.0f} MB",
        f"{'':<8}{'seconds':>9}{'MB/s':>8}{'peak MB':>9}",
    ]
    lines += [
        f"{row['way']:<8}{row['seconds']:>9.2f}{row['bytes_per_second'] / 1e6:>8.0f}"
        f"{row['peak_bytes'] / 1e6:>9.0f}"
        for row in report["results"]
    ]
    lines += [
        "",
        f"import takes {report['ratio']:.2f} x the time of reading with numpy, scipy and json",
        f"its peak is {report['peak_over_largest']:.2f} x the largest array that it writes "
        f"({report['largest_array_bytes'] / 1e6:,.0f} MB)",
    ]
    return "\n".join(lines)
