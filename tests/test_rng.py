"""The counter-based generator: fixed values, sound statistics, keys that do not meet."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from helpers import LEVEL, chi_square
from sgcn import Key, SgcnError
from sgcn.kernels.random import permutation, uniforms
from sgcn.rng import check_seed


def test_values_are_fixed_for_ever():
    """A batch named by a key is the same in every release: these numbers must never change."""
    assert int(Key(0).stream(1)) == 0x2A4F111B3BE57715
    assert int(Key(7, 3, 2).stream(1)) == 0xA5801E47E244E70D
    np.testing.assert_array_equal(
        uniforms(3, Key(0).stream(1)), [0.6564934208502722, 0.2100251954450103, 0.8431958058684927]
    )


def test_a_part_of_a_key_may_be_a_numpy_number():
    assert Key(np.int64(7), np.int32(3), np.uint8(2)).stream(np.int64(1)) == Key(7, 3, 2).stream(1)


def test_every_part_of_a_key_matters():
    """No two of 20,000 neighbouring keys share a stream (chance 1e-11 for random words)."""
    parts = itertools.product(range(10), range(10), range(20), range(10))
    names = [Key(seed, epoch, step).stream(layer) for seed, epoch, step, layer in parts]
    orders = [
        Key(seed, epoch).shuffle_stream(r)
        for seed in range(10)
        for epoch in range(10)
        for r in range(3)
    ]
    assert len(set(names + orders)) == len(names) + len(orders)


def test_a_shuffle_does_not_depend_on_the_step():
    assert Key(3, 4, 5).shuffle_stream() == Key(3, 4, 6).shuffle_stream()
    assert Key(3, 4).shuffle_stream() != Key(3, 5).shuffle_stream()


@pytest.mark.parametrize("along", ["counters", "streams"])
def test_numbers_are_uniform(along):
    """Kolmogorov-Smirnov on 20,000 numbers of one stream, and on the first of 20,000 streams."""
    if along == "counters":
        numbers = uniforms(20_000, Key(1).stream(1))
    else:
        numbers = np.array([uniforms(1, Key(1, 0, step).stream(1))[0] for step in range(20_000)])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers, "uniform").pvalue > LEVEL
    assert stats.kstest(numbers**1.1, "uniform").pvalue < LEVEL


def test_neighbouring_numbers_and_streams_are_independent():
    """Chi-square on a 10 x 10 grid: pairs along a stream, and across two streams."""
    here, there = uniforms(40_000, Key(1).stream(1)), uniforms(40_000, Key(1).stream(2))
    for first, second in ((here[::2], here[1::2]), (here, there)):
        cells = np.histogram2d(first, second, bins=10, range=[[0, 1], [0, 1]])[0].ravel()
        assert chi_square(cells, np.full(100, len(first) / 100)) > LEVEL


def test_permutations_are_equally_likely():
    orders = [tuple(permutation(4, Key(0, e).shuffle_stream())) for e in range(12_000)]
    counts = [orders.count(order) for order in itertools.permutations(range(4))]
    assert sum(counts) == 12_000
    assert chi_square(counts, np.full(24, 500.0)) > LEVEL


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1.5, "1", None, True])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(SgcnError, match=r"^seed is .*, expected a whole number from 0 to 2\*\*63"):
        check_seed(seed)


def test_a_good_seed_comes_back_as_int():
    assert check_seed(np.int64(5)) == 5
    assert type(check_seed(np.int64(5))) is int
    assert check_seed((1 << 63) - 1) == (1 << 63) - 1
