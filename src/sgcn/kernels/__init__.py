"""The compiled hot loops (numba, GIL released, cached on disk).

`tests/twins` has a plain NumPy twin of each one; the tests hold the two against each other.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from sgcn import compiling

compiling.announce()


def _spare_blas() -> None:
    """numba looks for scipy's BLAS, for kernels with np.dot: a third of a second, and none here.

    Only in a command's own process: a program that imports sgcn may have such kernels.
    """
    modules: dict[str, Any] = sys.modules
    name = "scipy.linalg"
    if compiling.loud and name not in modules:
        modules[name] = None  # makes an import of it fail
        import_module("numba.np.arraymath")  # it looks once, when it is imported
        del modules[name]


_spare_blas()


def _start_threads() -> None:
    """Start numba's threads here, and leave those of torch as the user set them.

    Both count on the same OpenMP, and numba's start would set torch's number to its own.
    """
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else None
    numba.get_num_threads()
    if torch:
        torch.set_num_threads(threads)


_start_threads()


class Propagation(NamedTuple):
    """P = diag(row) (A + I) diag(col) as a kernel sees it; ``+ I`` only with ``loops``.

    ``values`` holds edge weights, or is empty: then every stored edge weighs 1.
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    row: npt.NDArray[np.float32]
    col: npt.NDArray[np.float32]
    loops: bool
