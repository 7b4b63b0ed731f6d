"""Contracts hold of our dense products too, which small models would not reach by themselves."""

from __future__ import annotations

import pytest

from sgcn.compute import buffers
from sgcn.kernels import dense


@pytest.fixture(autouse=True)
def _products_of_our_own(monkeypatch):
    monkeypatch.setattr(dense, "PREFERRED", True)
    monkeypatch.setattr(buffers, "_NARROW", 1)
