"""Long curves are made short without losing what one looks for in them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_run, step

from sgcn.report.page import find_runs
from sgcn.report.thinning import POINTS, thin
from sgcn.runs.curves import SHORT, smooth


def test_short_curves_stay_whole():
    assert thin(np.zeros(POINTS)).tolist() == list(range(POINTS))
    assert thin(np.zeros(0)).tolist() == []


@given(st.integers(0, 2**32 - 1), st.integers(21, 400), st.integers(10, 20))
def test_every_bucket_keeps_its_extremes(seed, n, points):
    values = np.random.default_rng(seed).standard_cauchy(n)
    kept = thin(values, points)
    assert len(kept) <= points
    assert (np.diff(kept) > 0).all()
    assert (kept[0], kept[-1]) == (0, n - 1)
    edges = np.linspace(0, n, points // 2).astype(int)
    for start, stop in pairwise(edges):
        inside = values[kept[(kept >= start) & (kept < stop)]]
        assert inside.min() == values[start:stop].min()
        assert inside.max() == values[start:stop].max()


def test_one_spike_in_a_million_survives():
    values = np.ones(1_000_000)
    values[123_456], values[654_321] = 50.0, -50.0
    values[200_000:300_000] = np.nan
    kept = thin(values)
    assert len(kept) <= POINTS
    assert {123_456, 654_321} <= set(kept.tolist())


def test_smooth_lines_are_means():
    values = np.random.default_rng(0).normal(size=2000)
    assert smooth(np.full(30, 3.0)) == pytest.approx(3.0)
    assert smooth(values).std() < 0.3
    line = np.arange(80.0)
    assert smooth(line) == pytest.approx(line)  # no lag
    holes = line.copy()
    holes[20] = np.nan
    assert np.isfinite(smooth(holes)).all()
    assert np.isnan(smooth(np.full(60, np.nan))).all()
    assert len(smooth(np.zeros(0))) == 0


@pytest.mark.parametrize("n", [SHORT, 51, 400, 3000])
def test_smooth_lines_begin_and_end_where_the_values_do(n):
    values = np.random.default_rng(n).normal(size=n) + np.geomspace(9.0, 1.0, n)
    assert (smooth(values)[0], smooth(values)[-1]) == (values[0], values[-1])
    assert np.abs(np.diff(smooth(values), 2)).mean() < np.abs(np.diff(values, 2)).mean() / 2


def test_short_runs_are_not_smoothed(tmp_path):
    values = np.random.default_rng(0).normal(size=SHORT - 1)
    assert smooth(values).tolist() == values.tolist()
    for count in (SHORT - 1, SHORT):
        (run,) = find_runs([make_run(tmp_path / f"{count}", [step(k) for k in range(count)])])
        run.refresh()
        assert ("smooth" in run.drawn()["curves"]["loss"]) == (count == SHORT)


def test_a_long_run_makes_a_small_page(tmp_path):
    count = 3 * POINTS
    events = [step(k, loss=99.0 if k == 4322 else 1.0 + k % 2) for k in range(count)]
    (run,) = find_runs([make_run(tmp_path / "run", events)])
    assert run.refresh()
    drawn = run.drawn()
    curve = drawn["curves"]["loss"]
    assert len(curve["value"]) == len(curve["step"]) == len(curve["seconds"]) <= POINTS
    assert curve["step"][curve["value"].index(99.0)] == 4322
    assert len(curve["smooth"]["value"]) <= POINTS
    assert drawn["summary"]["steps"] == count
