"""`python -m benchmarks product`: a ratio for every product, thread number and contestant."""

from __future__ import annotations

import pytest

from benchmarks import product
from helpers import power_law
from sgcn import Graph


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(product, "load", lambda name, features: Graph.from_edges(*power_law()))


def test_ratios_have_a_key_for_every_product_and_contestant(capsys):
    ratios = product.measure("small", [1], 1, 8)
    passes = [f"small/1/{way}ward/{who}" for way in ("for", "back") for who in ("torch", "bound")]
    assert ratios.keys() == {*passes, "small/1/bfloat16/sgcn"}
    assert min(ratios.values()) > 0.0
    assert "of the bound" in capsys.readouterr().out
