"""Twins of `kernels/random.py`."""

from __future__ import annotations

import numpy as np

from twins.words import Array, int32

MASK = (1 << 64) - 1


def mix(z: int) -> int:
    """The finaliser of SplitMix64 on a 64-bit word."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def bits(stream: int, counter: int) -> int:
    """Number ``counter`` of ``stream``, which enters before and after the first scramble."""
    stream = int(stream)
    return mix((mix((counter * 0x9E3779B97F4A7C15 + stream) & MASK) + stream) & MASK)


def uniform(stream: int, counter: int) -> float:
    """The upper 53 bits as a fraction."""
    return (bits(stream, counter) >> 11) / 2**53


def uniforms(n: int, stream: int) -> Array:
    return np.array([uniform(stream, k) for k in range(n)])


def below(stream: int, counter: int, n: int) -> int:
    """A whole number from 0 to n - 1."""
    return int(uniform(stream, counter) * n)


def permutation(n: int, stream: int) -> Array:
    order = list(range(n))
    for k in reversed(range(1, n)):
        other = below(stream, k, k + 1)
        order[k], order[other] = order[other], order[k]
    return int32(order)
