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


class Scratch(NamedTuple):
    """A thread's arrays over all nodes; every kernel leaves them as it found them.

    ``position`` maps a node to its place among the sources and is -1 between calls. ``member`` is a
    zeroed bitmap: at one bit a node it stays in the first-level cache.
    """

    position: npt.NDArray[np.int32]
    member: npt.NDArray[np.uint64]


class ColumnLaw(NamedTuple):
    """A law over all nodes with the alias table that draws from it."""

    law: npt.NDArray[np.float64]
    threshold: npt.NDArray[np.float64]
    alias: npt.NDArray[np.int32]


class LadiesLaw(NamedTuple):
    """How LADIES draws: with the rows kept as sources or not, spread over the rows or not; and what
    `blocks.square_sums` has of every row."""

    keep: bool
    stratified: bool
    sums: npt.NDArray[np.float64]
    peaks: npt.NDArray[np.float64]
