"""Features of an ``.npy`` file, standardised on their way: mean 0, variance 1 of training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft, progress
from sgcn.data.files import npy
from sgcn.data.importers.base import finite
from sgcn.data.importers.rows import single
from sgcn.errors import SgcnError
from sgcn.kernels import features as kernels


def write_npy(draft: Draft, path: Path, n: int, train: Any = None) -> None:
    """The features of ``path``, one row for each of ``n`` nodes; standardised by rows ``train``.

    The file is read twice for that and never held.
    """
    what = f"features with {n} rows ({path.name})"
    with npy(path, what) as file:
        shape = file.shape
        if shape[0] != n or shape[1] < 1:
            raise SgcnError(
                f"{path} has shape {shape}, expected {n} rows, one for each node, and at least one "
                "column"
            )
        if train is None:
            draft.stream("x", shape, np.float32, single(file.parts(), str(path)))
            return
        with progress("reading x", " rows", n) as step:
            shift, scale = moments(file.parts(), train, str(path), step)
    with npy(path, what) as file:
        rows = finite(standardised(file.parts(), shift, scale), str(path))
        draft.stream("x", shape, np.float32, rows)


def moments(
    parts: Iterable[Any], train: Any, place: str, step: Callable[[int], object]
) -> tuple[Any, Any]:
    """Mean and 1 / deviation of the training rows; a constant feature is only centred."""
    before = 0
    total = squares = origin = np.empty(0)
    for part in parts:
        part = _plain(part)
        first, last = np.searchsorted(train, (before, before + len(part)))
        chosen = train[first:last] - before
        if len(chosen):
            if origin.size == 0:  # sums of squares around a typical value do not cancel
                origin = part[chosen[0]].astype(np.float64)
                total, squares = np.zeros((2, len(origin)))
            kernels.add_moments(part, chosen, origin, total, squares)
            if not (np.isfinite(total).all() and np.isfinite(squares).all()):
                list(finite((part,), place, before))
                raise SgcnError(
                    f"{place} has numbers whose squares are too large to add, expected features of "
                    "common size: set standardise=false or scale them"
                )
        before += len(part)
        step(len(part))
    mean = total / len(train)
    deviation = np.sqrt(np.maximum(squares / len(train) - mean * mean, 0.0))
    scale = np.divide(1.0, deviation, out=np.ones_like(deviation), where=deviation > 0)
    return origin + mean, scale


def standardised(
    parts: Iterable[Any], shift: Any, scale: Any
) -> Iterator[npt.NDArray[np.float32]]:
    """The rows as they pass; the memory of one part serves all of them."""
    out = np.empty((0, len(shift)), np.float32)
    for part in parts:
        if len(out) < len(part):
            out = np.empty(part.shape, np.float32)
        kernels.standardise(_plain(part), shift, scale, out[: len(part)])
        yield out[: len(part)]


def _plain(part: Any) -> Any:
    """One of two types, so that kernels are compiled for no more."""
    return part if part.dtype in (np.float32, np.float64) else part.astype(np.float64)
