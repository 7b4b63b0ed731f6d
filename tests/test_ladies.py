"""LADIES has two ways to draw: by entries, and by candidates where the first would not end."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import chi_square, propagation_of, sample_moments, z_test, zoo_graph
from sgcn import Graph, Key, make_sampler
from sgcn.kernels import LadiesLaw, blocks

LEVEL = 1e-4  # of error of the first kind; the seeds are fixed


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", ["power-law", "weighted", "directed"])
def test_drawing_entries_draws_columns_by_their_squares(name, keep):
    graph = zoo_graph(name)
    rows, p = np.arange(0, len(graph), 5, dtype=np.int32), graph.propagation
    mass = (propagation_of(graph)[rows] ** 2).sum(axis=0)
    mass[rows if keep else []] = 0.0
    src, counts, _ = blocks.ladies_draws(
        p, rows, 200_000, LadiesLaw(keep, False, *blocks.square_sums(p)), Key(3).stream(1),
        np.full(len(graph), -1, np.int32),
    )  # fmt: skip
    observed, expected = np.zeros(len(graph)), 200_000 * mass / mass.sum()
    observed[src] = counts
    seen = expected > 25
    assert seen.sum() > 10
    observed, expected = observed[seen], expected[seen]
    expected *= observed.sum() / expected.sum()  # given that a draw falls on one of these
    assert chi_square(observed, expected) > LEVEL
    flat = np.full(len(observed), observed.sum() / len(observed))
    assert chi_square(observed, flat) < LEVEL


def test_rows_that_see_little_but_each_other_are_unbiased_too():
    graph = Graph.from_edges([0, 1, 1], [1, 2, 3], [1.0, 0.05, 0.1])
    seeds = np.array([0, 1])
    p, rows = graph.propagation, seeds.astype(np.int32)
    total = blocks.ladies_draws(
        p, rows, 3, LadiesLaw(True, True, *blocks.square_sums(p)), np.uint64(1),
        np.full(4, -1, np.int32),
    )[2]
    assert total == -1.0  # the second way is taken
    sampler = make_sampler("ladies", sizes=3, weighting="unbiased")
    moments = sample_moments(graph, sampler, seeds, 2_000)
    P = propagation_of(graph)[seeds]
    assert z_test(moments.total[seeds], moments.squares[seeds], 2_000, P) > LEVEL
    assert z_test(1.1 * moments.total[seeds], moments.squares[seeds], 2_000, P) < LEVEL


def test_stratified_draws_give_every_row_its_share():
    """Stars that share no neighbour: what falls on a star is what falls on its centre's row."""
    stars, leaves = 6, np.array([1, 2, 4, 8, 16, 32])
    src = np.repeat(np.arange(stars), leaves)
    graph = Graph.from_edges(src, stars + np.arange(len(src)), self_loops=False)
    rows, p, size = np.arange(stars, dtype=np.int32), graph.propagation, 40
    squares = (propagation_of(graph)[rows] ** 2).sum(axis=1)
    share = size * squares / squares.sum()
    star = np.concatenate([np.full(stars, -1), src])

    def counts_of(stratified: bool, seed: int) -> np.ndarray:
        found, counts, _ = blocks.ladies_draws(
            p, rows, size, LadiesLaw(False, stratified, *blocks.square_sums(p)),
            Key(seed).stream(1), np.full(len(graph), -1, np.int32),
        )  # fmt: skip
        return np.bincount(star[found], counts, stars)

    spread = np.array([counts_of(True, seed) for seed in range(50)])
    assert (np.abs(spread - share) < 2).all()  # at most one part is cut at each end
    assert (np.abs(np.array([counts_of(False, seed) for seed in range(50)]) - share) > 2).any()
