"""Real runs of a small graph, trained once for all tests of the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from learning import labelled
from sgcn.cli import main


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """What `sgcn compare` leaves behind: three runs. No test changes it."""
    place = tmp_path_factory.mktemp("report")
    graph = labelled(nodes=80)
    np.savez(place / "small.npz", indptr=graph.indptr, indices=graph.indices, x=graph.x,
             y=graph.y, split=graph.split)  # fmt: skip
    code = main(
        ["compare", str(place / "small.npz"), "--vary", "estimator=sgcn,sgcn++,anchored",
         "--epochs", "4", "--seed", "3", "--out", str(place / "runs"), "--quiet",
         "--set", "model.widths=8", "--set", "training.batch_size=16"]
    )  # fmt: skip
    assert code == 0
    return place / "runs"
