"""Time our products beside those of torch and NumPy: of a graph, and dense ones.

examples:
  python -m benchmarks product --graph flickr-like reddit-like --threads 1 2 --out product.json
  python -m benchmarks product --graph flickr-like --threads 1 --rounds 3

256 columns. Backward is the gradient by H through autograd; `bfloat16` is P H of a table in that
type, beside the same in float32. The bound counts every row that an edge reads as coming from
memory, at the bandwidth measured in the same round.

Dense: the three products of a layer (A W, G W^T and A^T G) with the rows of a batch and of a graph,
and X[i] W with rows i of a table, which others gather first; the time of torch (MKL) and of NumPy
(OpenBLAS, with as many threads) over ours, all into memory that was used before. A round times
everyone once; medians over rounds, of CPU seconds for one thread.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from functools import partial
from statistics import mean, median
from time import perf_counter, process_time, sleep

import numpy as np
import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from benchmarks.bound import Machine, seconds_of
from benchmarks.contestants import csr_tensor
from benchmarks.engines import set_threads
from benchmarks.options import add_integers, add_out, check_positive, target
from benchmarks.report import write
from sgcn.compute.buffers import _kernel, _stored
from sgcn.compute.operators import GraphOperator
from sgcn.data import load

Ways = dict[str, Callable[[], object]]


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


#: Rows, inputs and outputs of a layer: batches, larger ones, whole graphs.
DENSE = (
    (1000, 256, 256), (2600, 50, 128), (2600, 500, 256), (10_000, 512, 512),
    (90_000, 50, 128), (90_000, 500, 256),
)  # fmt: skip
_TABLE = 90_000  # rows that are gathered from


def measure_dense(threads: list[int], rounds: int) -> dict[str, float]:
    ratios: dict[str, float] = {}
    openblas = ThreadpoolController().select(internal_api="openblas")
    for number in threads:
        set_threads(number)
        with openblas.limit(limits=number):
            for shape in DENSE:
                for what, ways in _products(*shape).items():
                    key = f"dense/{number}/{what} {'x'.join(map(str, shape))}"
                    # A processor that does other work does not count in the time of one thread.
                    clock = process_time if number == 1 else perf_counter
                    taken = _in_turns(ways, rounds, clock)
                    ours = taken.pop("sgcn")
                    ratios |= {f"{key}/{who}": seconds / ours for who, seconds in taken.items()}
                    others = "".join(f"{t / ours:>8.2f}x {who}" for who, t in taken.items())
                    rate = 2e-9 * math.prod(shape) / ours
                    print(f"{key:<40}{ours * 1e3:>9.3f} ms{others}{rate:>8.0f} Gflop/s", flush=True)
        for who in ("torch", "numpy"):
            logs = [
                math.log(r) for k, r in ratios.items() if k.split("/")[1::2] == [str(number), who]
            ]
            print(f"dense/{number}: {who} takes {math.exp(mean(logs)):.2f} of our time")
    return ratios


def _products(rows: int, width: int, outputs: int) -> dict[str, Ways]:
    generator = torch.Generator().manual_seed(0)
    a, w, g = (
        torch.randn(shape, generator=generator)
        for shape in ((rows, width), (width, outputs), (rows, outputs))
    )
    made = {"A W": _ways(a, w), "G W^T": _ways(g, w.T), "A^T G": _ways(a.T, g)}
    if rows < _TABLE:
        table = torch.randn(_TABLE, width, generator=generator)
        ids = torch.randint(_TABLE, (rows,), generator=generator, dtype=torch.int32)
        made["X[i] W"] = _gathered(table, ids, w)
        made["X[i] W, bfloat16"] = _gathered(table.bfloat16(), ids, w)
    return made


def _ways(left: Tensor, right: Tensor) -> Ways:
    into = torch.empty(left.shape[0], right.shape[1])
    arrays = left.numpy(), right.numpy(), into.numpy()
    return {
        "sgcn": partial(_kernel, _stored(left), _stored(right)),
        "torch": lambda: torch.mm(left, right, out=into),
        "numpy": lambda: np.matmul(*arrays),
    }


def _gathered(table: Tensor, ids: Tensor, w: Tensor) -> Ways:
    """The others have to write the rows down first, and as float32."""
    rows = torch.empty(len(ids), table.shape[1])
    read = rows if table.dtype == rows.dtype else torch.empty(rows.shape, dtype=table.dtype)
    ways = _ways(rows, w)

    def after_rows(multiply: Callable[[], object]) -> object:
        torch.index_select(table, 0, ids, out=read)
        if read is not rows:
            rows.copy_(read)
        return multiply()

    theirs: Ways = {who: partial(after_rows, ways[who]) for who in ("torch", "numpy")}
    return {"sgcn": partial(_kernel, (table, False), _stored(w), ids), **theirs}


def _in_turns(ways: Ways, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Median seconds. Each is given a pause, until the threads of the one before sleep (OpenBLAS's
    look for work for some 30 ms and take a core meanwhile), and a call that wakes its own."""
    taken: dict[str, list[float]] = {who: [] for who in ways}
    for _ in range(rounds):
        for who, way in ways.items():
            sleep(0.05)
            way()
            start = clock()
            way()
            taken[who].append(clock() - start)
    return {who: median(times) for who, times in taken.items()}


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
        found = measure_dense(args.threads, 4 * args.rounds + 1)
        for name in args.graph:
            found |= measure(name, args.threads, args.rounds, args.width)
    if out is not None:
        write(out, {"ratios": found})
