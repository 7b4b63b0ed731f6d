"""Fixtures of all tests, and hypothesis without randomness: a run is the same every time."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from helpers import ZOO, zoo_graph
from sgcn import Graph

settings.register_profile(
    "sgcn",
    derandomize=True,
    deadline=None,  # the first example may wait for a kernel to compile
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("sgcn")

# A shell starts background jobs with Ctrl-C ignored, which the processes of tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=ZOO)
def graph(request: Any) -> Graph:
    """Each graph of the zoo in turn, with the default propagation matrix."""
    return zoo_graph(request.param)
