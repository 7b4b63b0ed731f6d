"""Numbers for names: a hash table over bytes, for ids that are words or numbers with gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def number_names(data: Any, starts: Any, ends: Any, table: Any, count: int, out: Any) -> Any:
    """``out[f]``: the number of field ``f`` of ``data``; a new name gets the next. Gives how many.

    ``table`` is (slots, hashes, pool, offsets). Name k is ``pool[offsets[k]:offsets[k + 1]]`` with
    the hash ``hashes[k]``; ``slots`` has a power of two of entries, -1 where it is empty. There
    must be room for all fields being new.
    """
    slots, hashes, pool, offsets = table
    mask = np.uint64(len(slots) - 1)
    for f in range(len(starts)):
        start, size = starts[f], ends[f] - starts[f]
        code = _OFFSET
        for k in range(size):
            code = (code ^ np.uint64(data[start + k])) * _PRIME
        code *= _SPREAD
        slot = (code >> np.uint64(32)) & mask
        while True:
            name = slots[slot]
            if name < 0:
                slots[slot] = name = count
                hashes[count] = code
                at = offsets[count]
                for k in range(size):
                    pool[at + k] = data[start + k]
                count += 1
                offsets[count] = at + size
                break
            first, last = offsets[name], offsets[name + 1]
            if hashes[name] == code and _same(data, start, pool, first, last, size):
                break
            slot = (slot + np.uint64(1)) & mask
        out[f] = name
    return count


@njit(nogil=True, cache=True)
def _same(data: Any, start: int, pool: Any, first: int, last: int, size: int) -> Any:
    if last - first != size:
        return False
    k = 0
    while k < size and data[start + k] == pool[first + k]:
        k += 1
    return k == size


@njit(nogil=True, cache=True)
def place_names(hashes: Any, count: int, slots: Any) -> None:
    """Fill the empty ``slots`` of a larger table."""
    mask = np.uint64(len(slots) - 1)
    for name in range(count):
        slot = (hashes[name] >> np.uint64(32)) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = name
