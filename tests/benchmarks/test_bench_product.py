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


def test_dense_ratios_have_a_key_for_every_product_and_contestant(monkeypatch, capsys):
    monkeypatch.setattr(product, "DENSE", ((70, 30, 20),))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    ratios = product.measure_dense([1], 2)
    assert ratios.keys() == {
        f"dense/1/{what} 70x30x20/{who}"
        for what in ("A W", "G W^T", "A^T G")
        for who in ("torch", "numpy")
    }
    assert min(ratios.values()) > 0.0
    assert "dense/1: numpy takes" in capsys.readouterr().out
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")  # NumPy's threads could be any number
    assert not any("numpy" in key for key in product.measure_dense([1], 1))
