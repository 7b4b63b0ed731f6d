"""Time our products of a graph beside torch's.

examples:
  python -m benchmarks product --graph flickr-like reddit-like --threads 1 2 --out product.json
  python -m benchmarks product --graph flickr-like --threads 1 --rounds 3

256 columns. Backward is the gradient by H through autograd; `bfloat16` is P H of a table in that
type, beside the same in float32. The bound counts every row that an edge reads as coming from
memory, at the bandwidth measured in the same round.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from statistics import median
from time import perf_counter

import torch
from torch import Tensor

from benchmarks.bound import Machine, seconds_of
from benchmarks.contestants import csr_tensor
from benchmarks.engines import set_threads
from benchmarks.options import add_integers, add_out, check_positive, target
from benchmarks.report import write
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
                start = perf_counter()
                out = way()
                forward = perf_counter() - start
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


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graph", nargs="+", default=["flickr-like", "reddit-like"])
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
            found |= measure(name, args.threads, args.rounds, args.width)
    if out is not None:
        write(out, {"ratios": found})
