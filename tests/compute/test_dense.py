"""Dense products are of float32 whichever library makes them, and settings stay the user's."""

from __future__ import annotations

from threading import Barrier, Thread

import llvmlite.binding
import pytest
import torch

from sgcn.compute import dense

SETTING = torch.backends.mkldnn.matmul
ULP = 2.0**-23


@pytest.fixture(params=[False, True], ids=["mkl", "onednn"])
def library(request, monkeypatch):
    if request.param and not dense.exact():
        pytest.skip("oneDNN rounds to 16 bits on this processor")
    monkeypatch.setattr(dense, "preferred", lambda: request.param)
    monkeypatch.setattr(dense, "_LEAST", 0)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 700])
@pytest.mark.parametrize("terms", [1, 50, 300])
@pytest.mark.parametrize("columns", [1, 7, 130])
def test_products_are_right_to_the_rounding_of_a_sum(rows, terms, columns, library):
    generator = torch.Generator().manual_seed(0)
    a, b, g = (
        torch.randn(shape, generator=generator)
        for shape in ((rows, terms), (terms, columns), (rows, columns))
    )
    for left, right in ((a, b), (a, b.T.contiguous().T), (g, b.T), (a.T, g), (a[::2], b[:, ::2])):
        out = torch.full((left.shape[0], right.shape[1]), torch.nan)
        assert dense.multiply(left, right, out) is out
        wanted, size = left.double() @ right.double(), left.double().abs() @ right.double().abs()
        assert ((out - wanted).abs() <= (left.shape[1] + 2) * ULP / 2 * size).all()


def test_no_rows_and_no_terms(library):
    for shape in ((0, 70, 5), (70, 0, 5), (70, 5, 0)):
        a, b = torch.ones(shape[:2]), torch.ones(shape[1:])
        for left in (a, a.T.contiguous().T):
            out = dense.multiply(left, b, torch.full((shape[0], shape[2]), torch.nan))
            assert torch.equal(out, a @ b)


def test_a_library_that_rounds_is_not_preferred(monkeypatch):
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_name", lambda: "znver5")
    monkeypatch.setattr(dense, "exact", lambda: True)
    assert dense.preferred.__wrapped__()
    monkeypatch.undo()
    monkeypatch.setattr(torch, "mm", lambda a, b: a.bfloat16().float() @ b)
    assert not dense.exact.__wrapped__()
    monkeypatch.setattr(dense, "exact", dense.exact.__wrapped__)
    assert not dense.preferred.__wrapped__()


def test_other_processors_keep_the_library_of_torch(monkeypatch):
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_name", lambda: "sapphirerapids")
    monkeypatch.setattr(dense, "exact", lambda: True)
    assert not dense.preferred.__wrapped__()


def test_the_setting_holds_inside_only(monkeypatch):
    """Also after an error, and when another thread leaves first."""
    monkeypatch.setattr(dense, "preferred", lambda: True)
    before, seen, multiply = SETTING.fp32_precision, [], torch.mm
    monkeypatch.setattr(
        torch, "mm", lambda *a, **k: (seen.append(SETTING.fp32_precision), multiply(*a, **k))[1]
    )
    dense.multiply(torch.ones(70, 3), torch.ones(3, 2), torch.empty(70, 2))
    assert seen == [before]  # it is too small
    dense.multiply(torch.ones(700, 50), torch.ones(50, 60), torch.empty(700, 60))
    assert seen == [before, "bf16", before]
    with pytest.raises(RuntimeError, match="shape"):
        dense.multiply(torch.ones(700, 50), torch.ones(51, 60), torch.empty(700, 60))
    assert SETTING.fp32_precision == before

    entered, left = Barrier(2, timeout=60), Barrier(2, timeout=60)

    def other():
        with dense._onednn:
            entered.wait()
        left.wait()

    thread = Thread(target=other)
    with dense._onednn:
        thread.start()
        entered.wait()
        left.wait()
        assert SETTING.fp32_precision == "bf16"
    thread.join()
    assert SETTING.fp32_precision == before
