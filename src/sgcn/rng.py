"""Counter-based randomness: the only source of chance in the package.

A random number is a pure function of a key ``(seed, epoch, step, purpose)`` and a counter, so a
batch is the same whichever thread draws it, in whatever order, on any machine.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import NamedTuple

import numpy as np

from sgcn.errors import SgcnError

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


@unique
class Stream(IntEnum):
    """What randomness is for. Two purposes never share a number: each has 2^32 of its own."""

    LAYER = 0  # the blocks of a sample, by layer from 1; a subgraph is layer 0
    SHUFFLE = 1 << 32  # the order of an epoch's seeds, by round
    SYNTHETIC = 2 << 32  # parts of a synthetic graph
    DROPOUT = 3 << 32  # masks, by layer
    BUILT_SPLIT = 4 << 32  # splits of the graphs in the box
    POOL = 5 << 32  # nodes of a large-batch snapshot
    SPLIT = 6 << 32  # random splits
    BENCHMARK = 7 << 32  # seeds of the sampling benchmark
    PROBE = 8 << 32  # draws of a gradient probe
    PROBE_SEEDS = 16 << 32
    BOUND_DRAWS = 32 << 32  # draws behind the bounds of the appendix
    BOUND_WALK = 64 << 32
    PRESAMPLING = 256 << 32  # what GraphSAINT counts before training


def _mix(z: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection that scrambles."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


class Key(NamedTuple):
    """Names one sample; :meth:`stream` names the randomness for one purpose in it."""

    seed: int
    epoch: int = 0
    step: int = 0

    def stream(self, purpose: Stream, index: int = 0) -> np.uint64:
        """A 64-bit stream: hand it to a kernel, which adds the counter."""
        state = 0
        for part in (self.seed, self.epoch, self.step, purpose + index):
            state = _mix(((state ^ int(part)) + _GOLDEN) & _MASK)
        return np.uint64(state)

    def shuffle_stream(self, round: int = 0) -> np.uint64:
        """The stream that orders an epoch's ``round``: it depends on seed and epoch alone."""
        return Key(self.seed, self.epoch).stream(Stream.SHUFFLE, round)


def check_seed(seed: int) -> int:
    """``seed`` itself, if it is a whole number that a stream can be keyed by."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 63:
        raise SgcnError(f"seed is {seed!r}, expected a whole number from 0 to 2**63 - 1")
    return int(seed)
