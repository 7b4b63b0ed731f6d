"""Contracts hold with oneDNN's products too, which small models would not reach by themselves."""

from __future__ import annotations

import pytest

from sgcn.compute import dense


@pytest.fixture(autouse=True)
def _small_products_too(monkeypatch):
    monkeypatch.setattr(dense, "preferred", dense.exact)
    monkeypatch.setattr(dense, "_LEAST", 0)
    monkeypatch.setattr(dense, "_STEP", 16)
