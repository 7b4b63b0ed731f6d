"""Kernels that run on several threads, without touching the number of torch's threads.

torch and numba share one OpenMP runtime: when numba starts its threads, torch's number becomes
numba's. So they are started here, when the first such kernel is called, and torch's number is set
back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

_running = False


def start() -> None:
    """Start numba's threads unless they run; torch's number stays as the user set it."""
    global _running
    if _running:
        return
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else None
    numba.get_num_threads()  # starts them
    if torch:
        torch.set_num_threads(before)
    _running = True


def kernel_threads() -> int:
    """How many threads a kernel may use."""
    start()
    return int(numba.get_num_threads())


def set_kernel_threads(wanted: int) -> None:
    """Let kernels use ``wanted`` threads, or as many as numba has."""
    start()
    most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # numba sets it late
    numba.set_num_threads(min(wanted, most))


def parallel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel with parallel loops (`prange`). It is called from Python only."""
    kernel = numba.njit(nogil=True, cache=True, parallel=True)(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        start()
        result: R = kernel(*args, **kwargs)
        return result

    vars(call)["py_func"] = function  # as numba's own kernels have it
    return call
