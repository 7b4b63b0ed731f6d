"""The compiled hot loops (numba, GIL released, cached on disk).

`tests/twins` has a plain NumPy twin of each one; the tests hold the two against each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


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
