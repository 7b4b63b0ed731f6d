"""Feature rows as they pass: finite, in float32, of mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.errors import SgcnError
from sgcn.kernels import features as kernels

_ROUNDING = 1e-12  # a deviation this small beside the mean is none


def finite(parts: Iterable[Any], where: str, before: int = 0) -> Iterator[Any]:
    """Rows of features as they pass, ``before`` of them earlier; the first not finite is named."""
    for part in parts:
        # A sum is finite unless an entry is not (or it overflows): one cheap look a part.
        with np.errstate(all="ignore"):
            suspect = part.dtype.kind == "f" and not np.isfinite(part.sum())
        if suspect:
            bad = ~np.isfinite(part).reshape(len(part), -1).all(1)
            if bad.any():
                raise SgcnError(
                    f"{where} has a value that is not finite in row {before + int(bad.argmax())}, "
                    "expected finite features"
                )
        before += len(part)
        yield part


def single(parts: Iterable[Any], where: str) -> Iterator[npt.NDArray[np.float32]]:
    """Features as float32; a value that is not finite, or is too large for it, is named."""

    return finite(map(to_float32, parts), where)


def to_float32(part: Any) -> npt.NDArray[np.float32]:
    """What float32 cannot hold becomes infinite, without a warning: `finite` refuses it."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast: npt.NDArray[np.float32] = part.astype(np.float32, copy=False)
    return cast


def moments(
    parts: Iterable[Any], train: Any, where: str, step: Callable[[int], object]
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
                list(finite((part,), where, before))
                raise SgcnError(
                    f"{where} has numbers whose squares are too large to add, expected features of "
                    "common size: set standardise=false or scale them"
                )
        before += len(part)
        step(len(part))
    mean = total / len(train)
    deviation = np.sqrt(np.maximum(squares / len(train) - mean * mean, 0.0))
    varies = deviation > _ROUNDING * np.abs(origin + mean)
    scale = np.divide(1.0, deviation, out=np.ones_like(deviation), where=varies)
    return origin + mean, scale


def standardised(parts: Iterable[Any], shift: Any, scale: Any) -> Iterator[npt.NDArray[np.float32]]:
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
