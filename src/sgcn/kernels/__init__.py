"""The compiled hot loops (numba, GIL released, cached on disk).

`reference.py` has a plain NumPy twin of each one; the tests hold the two against each other.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from sgcn.compiling import announce

announce()


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
