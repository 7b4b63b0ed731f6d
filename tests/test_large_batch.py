"""The suggested size of a large-batch snapshot keeps its promise."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learning import labelled, make_engine, small_model
from sgcn import SgcnError, make_estimator, suggest_large_batch
from sgcn.task import split_nodes

GRAPH = labelled(nodes=400)


def test_a_smaller_error_asks_for_more_nodes_up_to_all():
    model = small_model()
    sizes = [suggest_large_batch(model, GRAPH, error) for error in (50.0, 10.0, 3.0, 0.01)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[1] < len(split_nodes(GRAPH, 0))
    assert sizes[-1] == len(split_nodes(GRAPH, 0))


def test_snapshots_of_that_size_stay_within_the_error():
    """95 % of them may be asked for; the bound is loose, so all 40 must be."""
    model, error = small_model(), 5.0
    size = suggest_large_batch(model, GRAPH, error, confidence=0.95)
    assert size < len(split_nodes(GRAPH, 0)), "the test needs a size below all nodes"

    def gradient(**options):
        outcome = make_engine(GRAPH, model=model, **options).snapshot()
        return torch.cat([g.flatten() for g in outcome.gradient.values()])

    exact = gradient()
    away = [
        (gradient(estimator=make_estimator(snapshot_nodes=size), seed=seed) - exact).norm()
        for seed in range(40)
    ]
    assert max(away) < error * exact.norm()
    assert min(away) > 0.0


@pytest.mark.parametrize(
    "wrong", [{"error": 0.0}, {"error": 1.0, "confidence": 1.0}, {"error": 1.0, "probes": 1}]
)
def test_refusals(wrong):
    with pytest.raises(SgcnError, match="expected") as caught:
        suggest_large_batch(small_model(), GRAPH, **wrong)
    assert "\n" not in str(caught.value)


def test_it_is_the_same_every_time():
    model = small_model()
    assert len({suggest_large_batch(model, GRAPH, 5.0, seed=1) for _ in range(3)}) == 1
    assert np.isfinite(suggest_large_batch(model, GRAPH, 5.0, seed=2))
