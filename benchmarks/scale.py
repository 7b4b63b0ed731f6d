"""Time regular steps and snapshots on graphs of growing size, and measure memory.

examples:
  python -m benchmarks scale                                  1e5 to 3e7 edges; needs about 14 GB
  python -m benchmarks scale --edges 1e5,1e6 --rounds 2       half a minute
  python -m benchmarks scale --out scale.json --picture scale.png

Synthetic graphs of one mean degree and one width. A regular step reads a batch and its neighbours,
whatever the number of nodes; a snapshot reads every edge. Each size is a process of its own.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import torch

from benchmarks import peers
from benchmarks.engines import descend, make_engine, regular
from benchmarks.options import add_integers, add_out, add_texts, check_positive, target
from benchmarks.process import answer, call, forget_peak, peak_mb
from benchmarks.report import finish, progress, save_figure
from sgcn.data.synthetic import Synthetic, synthetic
from sgcn.errors import SgcnError
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.machine import available_memory as available
from sgcn.options import known_name
from sgcn.rng import Key
from sgcn.runs.drawing import FORMATS
from sgcn.samplers import SAMPLERS, make_sampler
from sgcn.sources import Loader

DEGREE, FEATURES, CLASSES = 20.0, 32, 8
#: What is measured, and how it grows with the edges by theory.
THEORY = {"regular": 0.0, "snapshot": 1.0}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_texts(
        parser,
        ("--edges", "1e5,3e5,1e6,3e6,1e7,3e7", "N[,..]", "undirected edges of the graphs"),
        ("--sampler", "neighbor", "NAME", "of the regular steps"),
        ("--estimator", "anchored++", "NAME", "of the steps"),
    )
    add_integers(
        parser,
        ("--width", 64, "of the two graph layers"),
        ("--rounds", 5, "each is a snapshot and five regular steps"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--threads", 1, "threads to measure with"),
        ("--seed", 0, "of graphs, weights and samples"),
    )
    add_out(parser)
    parser.add_argument("--picture", metavar="FILE", help="draw them: .png, .svg or .pdf")


def run(args: argparse.Namespace) -> None:
    sizes = edge_counts(args.edges)
    known_name("sampler", args.sampler, SAMPLERS)
    known_name("estimator", args.estimator, ESTIMATORS)
    check_positive(args, "width", "rounds", "batch_size", "threads")
    out, picture = target(args.out), target(args.picture, "--picture")
    if picture is not None and picture.suffix not in FORMATS:
        raise SgcnError(f"--picture is {args.picture!r}, expected a name that ends with one of "
                        f"{', '.join(FORMATS)}")  # fmt: skip
    report = measure(
        sizes, sampler=args.sampler, estimator=args.estimator, width=args.width,
        batch_size=args.batch_size, rounds=args.rounds, threads=args.threads, seed=args.seed,
    )  # fmt: skip
    finish(report, table, out)
    if picture is not None:
        draw(report, picture)


def edge_counts(text: str) -> list[int]:
    """Numbers of undirected edges; 3e7 is one way to write one."""
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        found = [0.0]
    if not all(10_000 <= number <= 2e9 and number == int(number) for number in found):
        raise SgcnError(f"--edges is {text!r}, expected whole numbers from 1e4 to 2e9 with a "
                        "comma between them, as in 1e5,1e6")  # fmt: skip
    return sorted({int(number) for number in found})


def measure(edges: list[int], *, threads: int, **options: Any) -> dict[str, Any]:
    """The figures as a dictionary of plain values, in the layout of the JSON file."""
    rows, skipped = [], {}
    with tempfile.TemporaryDirectory(prefix="sgcn-benchmark-") as folder:
        for number in progress(edges, "sizes"):
            needed = memory_needed(number, options["width"])
            if needed > available():
                skipped[f"{number:.0e}"] = f"needs about {needed / 2**30:.0f} GB of memory"
                continue
            order = {"edges": number, "threads": threads, **options}
            rows.append(call("benchmarks.scale", order, Path(folder) / "row.json", threads))
    return {
        "results": rows,
        "exponents": {what: slope(rows, what) for what in THEORY},
        "skipped": skipped,
        "degree": DEGREE,
        "features": FEATURES,
        "threads": threads,
        **options,
        "versions": peers.versions(),
    }


def nodes_of(edges: int) -> int:
    return round(2 * edges / DEGREE)


def memory_needed(edges: int, width: int) -> int:
    """Of one size, in bytes, roughly: tables, a pass and its gradient, features, edges."""
    return 4 * nodes_of(edges) * (12 * width + 2 * FEATURES) + 32 * edges


def slope(rows: list[dict[str, Any]], what: str) -> float | None:
    """The exponent b in seconds ~ edges^b, by least squares over the logarithms."""
    if len(rows) < 2:
        return None
    x = [math.log(row["edges"]) for row in rows]
    y = [math.log(row[f"{what}_seconds"]) for row in rows]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    rise = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return rise / sum((a - mean_x) ** 2 for a in x)


def one_size(order: dict[str, Any]) -> dict[str, Any]:
    """The row of one size, in this process."""
    torch.set_num_threads(order["threads"])
    began = perf_counter()
    spec = Synthetic(nodes=nodes_of(order["edges"]), degree=DEGREE, features=FEATURES,
                     classes=CLASSES, communities=CLASSES)  # fmt: skip
    graph = synthetic(spec, order["seed"])
    made = perf_counter() - began
    forget_peak()
    sampler = make_sampler(order["sampler"])
    # No plan and no movement asks for a snapshot: they come when they are measured.
    estimator = make_estimator(order["estimator"], gap=None, restart="never")
    engine = make_engine(graph, sampler, estimator, width=order["width"], seed=order["seed"])
    size = min(order["batch_size"], len(engine.train))
    loader = Loader(graph, engine.train, sampler, batch_size=size, seed=order["seed"])

    def one(what: str, step: int) -> None:
        outcome = None
        if what == "regular":
            key = Key(order["seed"], 0, step)
            outcome = regular(engine, engine.draw(loader.seeds(0, step % len(loader)), key), key)
        descend(engine, outcome or engine.snapshot(), 1e-4)

    seconds: dict[str, list[tuple[float, float]]] = {"snapshot": [], "regular": []}
    for turn in range(order["rounds"] + 1):  # the first turn loads kernels and fills pools
        for what, count in (("snapshot", 1), ("regular", 5)):
            for step in range(count):
                start = perf_counter(), process_time()
                one(what, 5 * turn + step)
                spent = perf_counter() - start[0], process_time() - start[1]
                seconds[what] += [spent] * (turn > 0)
    return {
        "edges": graph.edges // 2,
        "nodes": len(graph),
        **{f"{what}_seconds": median(wall for wall, _ in seconds[what]) for what in seconds},
        **{f"{what}_cpu_seconds": median(cpu for _, cpu in seconds[what]) for what in seconds},
        "peak_mb": peak_mb(),
        "table_mb": engine.table_bytes / 2**20,
        "made_seconds": made,
    }


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{'edges':>12}{'nodes':>11}{'regular ms':>12}{'snapshot s':>12}"
             f"{'ns an edge':>12}{'peak MB':>10}"]  # fmt: skip
    for row in report["results"]:
        lines.append(  # noqa: PERF401 - a row of five cells reads better here
            f"{row['edges']:>12,}{row['nodes']:>11,}{row['regular_seconds'] * 1e3:>12.2f}"
            f"{row['snapshot_seconds']:>12.3f}"
            f"{row['snapshot_seconds'] / row['edges'] * 1e9:>12.0f}{row['peak_mb']:>10.0f}"
        )
    lines += ["", f"{report['estimator']}, {report['sampler']}, batch {report['batch_size']}, "
              f"width {report['width']}, {report['threads']} thread(s), mean degree "
              f"{report['degree']:g}; medians"]  # fmt: skip
    for what, theory in THEORY.items():
        found = report["exponents"][what]
        if found is not None:
            lines.append(f"{what}: time ~ edges^{found:.2f}; theory: {theory:g}")
    lines += [f"{size} edges: skipped, {why}" for size, why in report["skipped"].items()]
    return "\n".join(lines)


def draw(report: dict[str, Any], out: Path) -> None:
    """Times and memory against edges, with what theory says from the first point on."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = report["results"]
    edges = [row["edges"] for row in rows]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, (what, power) in zip(axes, THEORY.items(), strict=False):
        seconds = [row[f"{what}_seconds"] for row in rows]
        axis.plot(edges, seconds, marker="o", lw=1.5, label="measured")
        # Through the geometric mean: no single size decides where the line of theory lies.
        level = math.exp(sum(math.log(s) - power * math.log(e)
                             for s, e in zip(seconds, edges, strict=True)) / len(rows))  # fmt: skip
        line = [level * number**power for number in edges]
        words = "independent of N" if power == 0 else "linear in edges"
        axis.plot(edges, line, color="black", ls=":", lw=1, label=words)
        axis.set_ylabel(f"seconds of a {what}" + (" step" if what == "regular" else ""))
        axis.legend(frameon=False)
    axes[0].set_ylim(min(seconds_of(rows)) / 10, max(seconds_of(rows)) * 10)
    axes[2].plot(edges, [row["peak_mb"] for row in rows], marker="o", lw=1.5, label="peak")
    axes[2].plot(edges, [max(row["table_mb"], 0.1) for row in rows], ls=":", color="black", lw=1,
                 label="history tables")  # fmt: skip
    axes[2].set_ylabel("MB")
    axes[2].legend(frameon=False)
    for axis in axes:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("edges")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    save_figure(figure, out)


def seconds_of(rows: list[dict[str, Any]]) -> list[float]:
    return [float(row["regular_seconds"]) for row in rows]


if __name__ == "__main__":
    sys.exit(answer(one_size))
