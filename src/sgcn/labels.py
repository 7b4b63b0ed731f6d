"""What a graph's y is: classes, sets of labels, or numbers; and which nodes have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

CLASSES, SETS, NUMBERS = "classes", "sets of labels", "numbers"


def kind_of(y: npt.NDArray[Any]) -> str:
    """Whole numbers are classes, or with a row a node sets of labels; floats are numbers to
    predict, but rows of nothing but 0 and 1 (and NaN for none) are sets too."""
    if y.dtype.kind != "f":
        return CLASSES if y.ndim == 1 else SETS
    rows = y.ndim == 2 and bool(((y == 0) | (y == 1) | np.isnan(y)).all())
    return SETS if rows and not np.isnan(y).all() else NUMBERS


def labelled(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """The nodes that have a class, a set or all their numbers: -1 and NaN stand for none."""
    if y.dtype.kind == "f":
        known: npt.NDArray[np.bool_] = ~np.isnan(y).reshape(len(y), -1).any(1)
        return known
    return np.ones(len(y), np.bool_) if y.ndim == 2 else y >= 0
