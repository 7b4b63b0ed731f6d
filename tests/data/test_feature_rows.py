"""Standardising rows as they pass: the kernels against their twins, the sums against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from sgcn import SgcnError
from sgcn.data.features import moments, single, standardised
from sgcn.kernels import features

shapes = st.tuples(st.integers(1, 12), st.integers(1, 6), st.sampled_from([np.float32, np.float64]))


def some_rows(shape, seed: int) -> np.ndarray:
    rows, width, dtype = shape
    return np.random.default_rng(seed).normal(2.0, 3.0, (rows, width)).astype(dtype)


@given(shapes, st.integers(0, 99))
def test_add_moments(shape, seed):
    part = some_rows(shape, seed)
    chosen = np.flatnonzero(np.arange(len(part)) % 3)
    origin = np.linspace(0, 1, part.shape[1])
    total, squares = np.zeros((2, part.shape[1]))
    features.add_moments(part, chosen, origin, total, squares)
    wanted = twins.features.add_moments(part, chosen, origin)
    np.testing.assert_allclose((total, squares), wanted, rtol=1e-12, atol=1e-12)


@given(shapes, st.integers(0, 99))
def test_standardise(shape, seed):
    part = some_rows(shape, seed)
    shift, scale = np.linspace(-1, 1, part.shape[1]), np.linspace(0.5, 2, part.shape[1])
    out = np.empty(part.shape, np.float32)
    features.standardise(part, shift, scale, out)
    np.testing.assert_array_equal(out, twins.features.standardise(part, shift, scale))


@given(shapes, st.integers(0, 99), st.integers(1, 5))
def test_parts_have_the_moments_of_the_whole(shape, seed, step):
    rows = some_rows(shape, seed)
    train = np.arange(0, len(rows), 2)
    parts = [rows[k : k + step] for k in range(0, len(rows), step)]
    seen: list[int] = []
    shift, scale = moments(iter(parts), train, "x", seen.append)
    assert sum(seen) == len(rows)
    chosen = rows[train].astype(np.float64)
    np.testing.assert_allclose(shift, chosen.mean(0), rtol=1e-10)
    if len(train) > 1:
        np.testing.assert_allclose(1 / scale, chosen.std(0), rtol=1e-6)
    made = np.concatenate([part.copy() for part in standardised(parts, shift, scale)])
    np.testing.assert_allclose(made, (rows - shift) * scale, rtol=1e-6)


def test_the_row_that_is_not_finite_is_named():
    rows = np.ones((9, 2))
    rows[7, 1] = np.nan
    with pytest.raises(SgcnError, match="x has a value that is not finite in row 7, expected fini"):
        moments([rows[:5], rows[5:]], np.arange(9), "x", lambda step: None)


def test_no_warning_about_what_is_refused():
    """A signalling nan and 1e300 make numpy warn when they are cast."""
    signalling = np.array([0x7FF0000000000001], np.uint64).view(np.float64)
    for value in (signalling, np.array([1e300])):
        rows = np.concatenate([np.ones(3), value]).reshape(2, 2)
        with pytest.raises(SgcnError, match="x has a value that is not finite in row 1, expected"):
            list(single([rows], "x"))
