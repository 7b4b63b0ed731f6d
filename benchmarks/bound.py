"""The least time that a step can take: its flops at the measured rate of dense products, plus its
bytes at the measured bandwidth.

What an edge reads counts as coming from memory each time (no reuse in caches), so a kernel can be
faster than its bound on a graph that fits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import torch

from sgcn.compute.buffers import multiply

_FLOAT = 4  # bytes


def clock() -> float:
    """Seconds, of the processor for one thread: what else a machine does counts less."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def seconds_of(run: Callable[..., object], *args: object) -> float:
    """How long a call takes."""
    start = clock()
    run(*args)
    return clock() - start


@dataclass(frozen=True)
class Machine:
    """What this machine reaches with the threads that are set now."""

    flops: float
    bandwidth: float

    @staticmethod
    def measured(megabytes: int = 128, size: int = 1024) -> Machine:
        """By one dense product and one copy, after one of each to warm up."""
        a, b = (torch.full((size, size), 0.5) for _ in range(2))
        source, target = torch.full((2, megabytes << 18), 0.5)
        for _ in range(2):
            product = seconds_of(multiply, a, b)
            copy = seconds_of(lambda: target.copy_(source))
        return Machine(2 * size**3 / product, 2 * _FLOAT * len(source) / copy)

    @staticmethod
    def median(found: Sequence[Machine]) -> Machine:
        return Machine(
            median(machine.flops for machine in found),
            median(machine.bandwidth for machine in found),
        )

    def seconds(self, cost: Cost) -> float:
        return cost.flops / self.flops + cost.bytes / self.bandwidth


@dataclass(frozen=True)
class Cost:
    """Floating-point operations and bytes moved."""

    flops: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.flops * times, self.bytes * times)


@dataclass(frozen=True)
class Shape:
    """A layer's sparse matrix: rows, columns and entries."""

    rows: int
    columns: int
    edges: int


def step_cost(
    shapes: Sequence[Shape], widths: Sequence[int], passes: int = 1, *, known: bool = False
) -> Cost:
    """Forward and backward of ``passes`` runs through layers of ``widths`` (features, hidden
    widths, classes), each layer in its cheaper order. P X is of a constant: summed once for all
    passes, or for all steps if it is ``known``."""
    total = Cost()
    for level, (shape, before, after) in enumerate(
        zip(shapes, widths[:-2], widths[1:-1], strict=True)
    ):
        n_dst, n_src = shape.rows, shape.columns
        if level == 0:
            first = _dense(n_dst, before, after, 2) * passes
            first += Cost() if known else _sparse(shape, before)
            last = (_sparse(shape, after) * 2 + _dense(n_src, before, after, 2)) * passes
        else:
            first = (_sparse(shape, before) * 2 + _dense(n_dst, before, after, 3)) * passes
            last = (_sparse(shape, after) * 2 + _dense(n_src, before, after, 3)) * passes
        total += min(first, last, key=lambda cost: cost.bytes + cost.flops)
        # The activation reads and writes a table, its derivative reads two and writes one.
        total += Cost(bytes=5 * _FLOAT * n_dst * after) * passes
    return total + _dense(shapes[-1].rows, widths[-2], widths[-1], 3) * passes


def _sparse(shape: Shape, width: int) -> Cost:
    read = shape.edges * (width + 1)
    return Cost(2 * shape.edges * width, _FLOAT * (read + shape.rows * width))


def _dense(rows: int, before: int, after: int, products: int) -> Cost:
    moved = _FLOAT * rows * (before + after)
    return Cost(2 * rows * before * after, moved) * products


def table_cost(rows: Sequence[int], width: int) -> Cost:
    """History rows read, and written back."""
    return Cost(bytes=4 * _FLOAT * sum(rows) * width)
