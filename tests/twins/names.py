"""Twins of `kernels/names.py`."""

from __future__ import annotations

from collections.abc import Sequence

from twins.words import Array, Ints, int32


def number_names(
    data: Array, starts: Ints, ends: Ints, known: Sequence[bytes] = ()
) -> tuple[Array, list[bytes]]:
    """The number of each field, and all names in order; those of earlier calls are ``known``."""
    numbers = {name: number for number, name in enumerate(known)}
    fields = [data[a:b].tobytes() for a, b in zip(starts, ends, strict=True)]
    found = int32([numbers.setdefault(field, len(numbers)) for field in fields])
    return found, list(numbers)
