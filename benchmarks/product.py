"""Time our products beside those of torch and NumPy: of a graph, and dense ones.

examples:
  python -m benchmarks product --graph flickr-like reddit-like --threads 1 2 --out product.json
  OPENBLAS_NUM_THREADS=1 python -m benchmarks product --graph dense --threads 1 --rounds 9

256 columns. Backward is the gradient by H through autograd; `bfloat16` is P H of a table in that
type, beside the same in float32. The bound counts every row that an edge reads as coming from
memory, at the bandwidth measured in the same round.

`dense` in place of a graph: the three products of a layer (A W, G W^T, A^T G), the time of
`torch.mm` and of NumPy over ours, CPU seconds for one thread, in turns into memory that was used
before. NumPy takes part where OPENBLAS_NUM_THREADS is the number of threads.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from statistics import geometric_mean, median

import numpy as np
import torch
from torch import Tensor

from benchmarks.bound import Machine, clock, seconds_of
from benchmarks.contestants import csr_tensor
from benchmarks.engines import set_threads
from benchmarks.options import add_integers, add_out, check_positive, target
from benchmarks.report import write
from sgcn.compute import dense
from sgcn.compute.operators import GraphOperator
from sgcn.data import load


def measure(name: str, threads: list[int], rounds: int, width: int) -> dict[str, float]:
    graph = load(name, features=False)
    operator, matrix = GraphOperator(graph), csr_tensor(graph.matrix())
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(len(graph), width, generator=generator).requires_grad_()
    g = torch.randn(len(graph), width, generator=generator)
    narrow = h.detach().bfloat16()
    moved = 4.0 * ((graph.edges + len(graph)) * (width + 1) + len(graph) * width)
    ways: dict[str, Callable[[], Tensor]] = {
        "sgcn": lambda: operator.aggregate(h),
        "torch": lambda: matrix @ h,
    }
    ratios: dict[str, float] = {}
    for number in threads:
        set_threads(number)
        taken: dict[tuple[str, str], list[float]] = {
            (who, what): [] for who in ways for what in ("forward", "backward")
        }
        bounds, halves = [], []
        for step in range(rounds + 1):
            bound = moved / Machine.measured().bandwidth
            for who, way in ways.items():
                start = clock()
                out = way()
                forward = clock() - start
                backward = seconds_of(torch.autograd.grad, out, h, g)
                if step:  # the first round warms up
                    taken[who, "forward"].append(forward)
                    taken[who, "backward"].append(backward)
            half = seconds_of(operator.aggregate, narrow)
            if step:
                bounds.append(bound)
                halves.append(half)
        for what in ("forward", "backward"):
            ours, theirs = (median(taken[who, what]) for who in ("sgcn", "torch"))
            key = f"{name}/{number}/{what}"
            ratios |= {f"{key}/torch": theirs / ours, f"{key}/bound": ours / median(bounds)}
            print(f"{key:<28}{ours:>9.3f} s{theirs / ours:>8.2f}x torch"
                  f"{ours / median(bounds):>8.2f} of the bound", flush=True)  # fmt: skip
        gain = median(taken["sgcn", "forward"]) / median(halves)
        ratios[f"{name}/{number}/bfloat16/sgcn"] = gain
        print(
            f"{name}/{number}/bfloat16".ljust(28) + f"{median(halves):>9.3f} s{gain:>8.2f}x float32"
        )
    return ratios


#: Rows, inputs and outputs of a layer: batches, larger ones, a whole graph.
DENSE = (
    (500, 256, 256), (1000, 500, 256), (2600, 50, 128), (5000, 1000, 512), (20_000, 50, 32),
    (20_000, 256, 128), (90_000, 500, 256),
)  # fmt: skip


def measure_dense(threads: list[int], rounds: int) -> dict[str, float]:
    ratios: dict[str, float] = {}
    for number in threads:
        set_threads(number)
        found: dict[str, list[float]] = {}
        for rows, width, outputs in DENSE:
            a, w, g = (torch.rand(s) for s in ((rows, width), (width, outputs), (rows, outputs)))
            for what, left, right in (("A W", a, w), ("G W^T", g, w.T), ("A^T G", a.T, g)):
                taken = _seconds(left, right, number, rounds)
                key = f"dense/{number}/{what} {rows}x{width}x{outputs}"
                rates = (
                    f"{who} {2e-9 * rows * width * outputs / t:.0f}" for who, t in taken.items()
                )
                print(key.ljust(36), ", ".join(rates), "Gflop/s", flush=True)
                ours = taken.pop("sgcn")
                for who, theirs in taken.items():
                    ratios[f"{key}/{who}"] = theirs / ours
                    found.setdefault(who, []).append(theirs / ours)
        for who, values in found.items():
            print(f"dense/{number}: {who} takes {geometric_mean(values):.2f} of our time")
    return ratios


def _seconds(a: Tensor, b: Tensor, threads: int, rounds: int) -> dict[str, float]:
    out = torch.empty(a.shape[0], b.shape[1])
    arrays = a.numpy(), b.numpy(), out.numpy()
    ways: dict[str, Callable[[], object]] = {
        "sgcn": lambda: dense.multiply(a, b, out),
        "torch": lambda: torch.mm(a, b, out=out),
    }
    if os.environ.get("OPENBLAS_NUM_THREADS") == str(threads):
        ways["numpy"] = lambda: np.matmul(*arrays)
    taken: dict[str, list[float]] = {who: [] for who in ways}
    for _ in range(rounds):
        for who, way in ways.items():
            way()
            taken[who].append(seconds_of(way))
    return {who: median(times) for who, times in taken.items()}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graph", nargs="+", default=["dense", "flickr-like", "reddit-like"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    add_integers(
        parser, ("--rounds", 5, "each times everyone once"), ("--width", 256, "columns of H and G")
    )
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    check_positive(args, "rounds", "width")
    out = target(args.out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its CSR tensors a beta
        found: dict[str, float] = {}
        for name in args.graph:
            if name == "dense":
                found |= measure_dense(args.threads, args.rounds)
            else:
                found |= measure(name, args.threads, args.rounds, args.width)
    if out is not None:
        write(out, {"ratios": found})
