"""`python -m benchmarks product`: everyone makes the same product."""

from __future__ import annotations

import pytest
import torch

from benchmarks import product


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(product, "_TABLE", 60)
    monkeypatch.setattr(product, "DENSE", ((40, 30, 20),))


def test_contestants_make_the_same_numbers():
    for what, ways in product._products(40, 30, 20).items():
        ours = ways["sgcn"]()
        for who in ("torch", "numpy"):
            theirs = torch.as_tensor(ways[who]())
            torch.testing.assert_close(ours, theirs, msg=f"{what}, {who}")


def test_ratios_have_a_key_for_every_product_and_contestant(capsys):
    ratios = product.measure_dense([1], 2)
    assert ratios.keys() == {
        f"dense/1/{what} 40x30x20/{who}"
        for what in ("A W", "G W^T", "A^T G", "X[i] W", "X[i] W, bfloat16")
        for who in ("torch", "numpy")
    }
    assert min(ratios.values()) > 0.0
    assert "dense/1: numpy takes" in capsys.readouterr().out
