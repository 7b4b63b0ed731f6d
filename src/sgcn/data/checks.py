"""What others' arrays must be: of a shape, of a kind, in a range. One sentence for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from sgcn.errors import SgcnError

_WORDS = {"i": "whole numbers", "f": "real numbers", "b": "true or false", "U": "text"}


def first_bad(
    bad: Any, values: Any, where: str, expected: str, place: str = "in entry", at: Any = None,
    *, noun: str = "node",
) -> None:  # fmt: skip
    """Name the first of ``values`` that is ``bad``, and its row or what ``at`` has for it."""
    if bad.any():
        found = np.unravel_index(int(bad.argmax()), bad.shape)
        row = found[0] if at is None else at[found[0]]
        raise SgcnError(f"{where} has {noun} {values[found]} {place} {row}, expected {expected}")


def check_form(values: Any, where: str, what: str, kinds: str, *dims: int) -> None:
    """An array of ``dims`` dimensions whose type is one of numpy's letters ``kinds``."""
    shape, dtype = tuple(values.shape), values.dtype
    fits = len(shape) in dims and min(shape, default=0) >= 0
    if dtype.hasobject or dtype.kind not in kinds or not fits:
        words = " or ".join(_WORDS[kind] for kind in kinds if kind in _WORDS)
        raise SgcnError(
            f"{where} holds {dtype} of shape {shape}, expected {what}: "
            f"{dims[0]} dimension{'s' * (dims[0] > 1)} of {words}"
        )


def check_ids(
    ids: Any, n: int | None, where: str, place: str = "in entry", at: Any = None,
    *, noun: str = "node",
) -> None:  # fmt: skip
    """Whole numbers below ``n``; None for as many as int32 has."""
    check_form(ids, where, f"{noun} ids", "iu", 1)
    limit = np.iinfo(np.int32).max if n is None else n
    if ids.size and (ids.min() < 0 or ids.max() >= limit):
        bad = (ids < 0) | (ids >= limit)
        first_bad(bad, ids, where, f"ids from 0 to {limit - 1}", place, at, noun=noun)


def check_rows(rows: int, n: int, where: str) -> None:
    """One row for each node."""
    if rows != n:
        raise SgcnError(f"{where} has {rows} rows, expected {n}, one for each node")
