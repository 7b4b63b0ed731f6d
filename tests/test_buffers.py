"""Dense operations on buffers: the values and gradients of plain torch, in memory used again."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from learning import labelled, make_engine, small_model
from sgcn.compute import buffers, dense
from sgcn.compute.buffers import Pool
from sgcn.compute.exact import LayerRows
from sgcn.rows import LazyRows, store_of

LARGE = (700, 400)  # more numbers than `Pool.least`: from the pool
SMALL = (7, 4)


def matrices(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def assert_same(ours, plain, inputs, *, exactly: bool = True):
    """Values to the bit, or like the gradients to 1e-4: the rounding of sums of 400 and more terms,
    which are about 20 in size."""
    one, other = ours(*inputs), plain(*inputs)
    assert torch.equal(one, other) or not exactly
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)
    g = torch.linspace(-1.0, 1.0, one.numel()).view(one.shape)
    for a, b in zip(
        torch.autograd.grad(one, inputs, g), torch.autograd.grad(other, inputs, g), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("width", [3, 500])
@pytest.mark.parametrize("shape", [LARGE, SMALL])
def test_product(shape, width, monkeypatch):
    monkeypatch.setattr(dense, "preferred", lambda: False)
    inputs = matrices(shape, (shape[1], width), (width,))
    for plain, some in ((lambda a, w, b: b + torch.mm(a, w), inputs), (torch.mm, inputs[:2])):
        assert_same(buffers.product, plain, some)
    a, w = matrices(shape, (width, shape[1]))
    assert_same(lambda a, w: buffers.product(a, w.T), lambda a, w: a @ w.T, [a, w])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(50, 9), (50, 1), (1, 9), (1, 1)])
def test_product_of_some_rows(shape, dtype, monkeypatch):
    monkeypatch.setattr(buffers, "_ROWS_AT_ONCE", 2)
    rows, width = shape
    table, weight = matrices(shape, (width, 20))
    table = table.detach().to(dtype)
    ids = torch.tensor([7, 0, 7, 49, 3], dtype=torch.int32) % rows
    assert_same(
        lambda w: buffers.rows_product(table, ids, w),
        lambda w: table[ids.long()].float() @ w, [weight], exactly=False,
    )  # fmt: skip
    none = buffers.rows_product(table, ids[:0], weight)
    assert none.shape == (0, 20)
    (by_weight,) = torch.autograd.grad(none.sum(), weight)
    assert torch.equal(by_weight, torch.zeros(width, 20))


def test_products_of_any_layout():
    """Parts, steps and repetitions of other tensors, and rows or columns of one."""
    a, b = (m.detach() for m in matrices((60, 40), (40, 50)))
    left = {
        "part": a[3:, :40], "step": a[::2], "row": a[:1], "transposed": b.T[:, :40], "none": a[:0],
        "repeated": a[:1].expand(5, 40),
    }  # fmt: skip
    right = {"part": b[:, 2:], "step": b[:, ::2], "column": b[:, :1], "transposed": a.T[:, :20]}
    for one in left.values():
        for other in right.values():
            torch.testing.assert_close(buffers.multiply(one, other), one @ other)
    torch.testing.assert_close(buffers.multiply(a[:, :0], b[:0]), torch.zeros(60, 50))


def test_a_second_derivative_is_refused():
    a, w = matrices((30, 20), (20, 20))
    (by_w,) = torch.autograd.grad(buffers.product(a, w).square().sum(), w, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        by_w.sum().backward()


@pytest.mark.parametrize("shape", [LARGE, SMALL])
def test_elu(shape):
    assert_same(buffers.elu, torch.nn.functional.elu, matrices(shape), exactly=False)


@pytest.mark.parametrize("shape", [LARGE, SMALL])
def test_shifted(shape):
    out, reference, base = matrices(shape, shape, shape)
    reference, base = reference.detach(), base.detach()
    assert_same(lambda z: buffers.shifted(z, reference, base),
                lambda z: base + (z - reference), [out])  # fmt: skip
    assert torch.equal(buffers.shifted(reference, reference, base), base)
    wanted = float(torch.dist(reference, base))
    assert buffers.distance(reference, base) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_take_the_way_of_torch(dtype):
    a, w = (m.detach().to(dtype) for m in matrices((7, 4), (4, 3)))
    assert buffers.product(a, w).dtype == dtype
    assert buffers.elu(a).dtype == dtype
    assert buffers.rows_of(a, torch.tensor([2, 0])).dtype == dtype


def test_a_second_round_makes_no_buffer(monkeypatch):
    pool = Pool()
    monkeypatch.setattr(buffers, "empty", pool.take)

    def once() -> None:
        a, w = matrices(LARGE, (400, 500))
        buffers.elu(buffers.product(a, w)).sum().backward()

    once()
    before = pool.made
    once()
    assert 0 < before == pool.made


def test_rows_in_another_order_are_not_all_rows():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    ids = torch.tensor([2, 0, 3, 1], dtype=torch.int32)
    assert torch.equal(LazyRows(store_of(x), ids).dense(), torch.from_numpy(x[ids.numpy()]))


def test_p_times_x_is_made_once():
    graph = labelled()

    def first_layer(**options) -> LayerRows:
        engine = make_engine(graph, "full", "exact", **options)
        first, again = (engine.operands.exact_pass(engine.weights).layers[0] for _ in range(2))
        assert first is again
        return first

    sums = first_layer().sums.table
    np.testing.assert_allclose(sums.numpy(), graph.matrix() @ graph.x, rtol=1e-5, atol=1e-6)
    # Not for a layer that does not sum its inputs, nor where memory is short.
    assert first_layer(model=small_model("attention")).sums is None
    assert first_layer(chunk=10).sums is None
