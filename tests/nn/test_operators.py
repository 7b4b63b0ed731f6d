"""Operators against dense matrices: M h, M^T g, rows of P, and the rows of destinations."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import scipy.sparse as sp
import torch

from helpers import SMALL, dense_block, power_law, propagation_of
from learning import labelled
from sgcn import Graph, Key, SgcnError
from sgcn.compute.operators import BlockOperator, GraphOperator, Operator, RowsOperator
from sgcn.rows import LazyRows, store_of

KINDS = {
    "undirected": {},
    "directed": {"directed": True},
    "weighted": {"weights": True},
    "weighted directed": {"weights": True, "directed": True},
    "row, no loops": {"normalization": "row", "self_loops": False, "directed": True},
}


def graph_of(kind: str) -> Graph:
    options = dict(KINDS[kind])
    rng = np.random.default_rng(4)
    src, dst = rng.integers(0, 25, (2, 90))
    weights = rng.gamma(2.0, size=90) if options.pop("weights", False) else None
    return Graph.from_edges(src, dst, weights, nodes=26, **options)


def dense_of(operator: Operator, graph: Graph) -> torch.Tensor:
    """The matrix that ``operator`` stands for, over its own sources."""
    if isinstance(operator, RowsOperator):
        return torch.from_numpy(propagation_of(graph)[operator.own_index])
    if isinstance(operator, GraphOperator):
        return torch.from_numpy(propagation_of(graph))
    block = operator.block
    return torch.from_numpy(dense_block(block, len(graph))[block.dst][:, block.src])


def operators_of(graph: Graph) -> list[Operator]:
    blocks = [
        SMALL[name].sample(graph, [0, 3, 7, 25], Key(1), depth=1).blocks[0]
        for name in ("exact", "neighbor", "ladies", "saint-node")
    ]
    return [
        GraphOperator(graph),
        *(BlockOperator(block) for block in blocks),
        RowsOperator(graph, np.array([0, 3, 4, 9, 25], np.int32)),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", range(6))
def test_products_are_the_dense_ones(kind, which):
    graph = graph_of(kind)
    operator = operators_of(graph)[which]
    dense = dense_of(operator, graph)
    assert operator.shape == tuple(dense.shape)
    rng = torch.Generator().manual_seed(0)
    h = torch.randn(operator.shape[1], 7, generator=rng, requires_grad=True)
    g = torch.randn(operator.shape[0], 7, generator=rng)
    out = operator.aggregate(h)
    out.backward(g)
    torch.testing.assert_close(out, (dense @ h.double()).float(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(h.grad, (dense.T @ g.double()).float(), rtol=1e-5, atol=1e-5)
    # Of a constant, and of a table that is not contiguous.
    torch.testing.assert_close(operator.aggregate(h.detach()), out)
    turned = h.detach().T.contiguous().T.requires_grad_()
    torch.testing.assert_close(operator.aggregate(turned), out)


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient")  # gradcheck would like float64
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", range(6))
def test_gradcheck(kind, which):
    """The backward product is the derivative of the forward one (float32: wide steps, 1e-2)."""
    operator = operators_of(graph_of(kind))[which]
    h = torch.randn(operator.shape[1], 2, generator=torch.Generator().manual_seed(1))
    h.requires_grad_()
    assert torch.autograd.gradcheck(
        operator.aggregate, (h,), eps=0.5, atol=1e-4, rtol=1e-2, check_batched_grad=False
    )


@pytest.mark.parametrize("kind", KINDS)
def test_csr_is_the_matrix(kind):
    graph = graph_of(kind)
    for operator in operators_of(graph):
        indptr, indices, values = operator.csr()
        matrix = sp.csr_array((values.numpy(), indices.numpy(), indptr.numpy()), operator.shape)
        wanted = dense_of(operator, graph).numpy()
        np.testing.assert_allclose(matrix.toarray(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_read_in_place(sparse):
    """Rows that were never gathered give what gathered ones give."""
    graph = labelled()
    x = sp.csr_array(np.where(graph.x > 0.5, graph.x, 0.0)) if sparse else graph.x
    rows = LazyRows(store_of(x), torch.tensor([5, 3, 40, 2, 9], dtype=torch.int32))
    wanted = torch.from_numpy(x.toarray() if sparse else x)[[5, 3, 40, 2, 9]].float()
    assert torch.equal(rows.dense(), wanted)
    assert torch.equal(rows.take(torch.tensor([2, 0])).dense(), wanted[[2, 0]])
    weight = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    twin = weight.detach().clone().requires_grad_()
    ours, theirs = rows @ weight, wanted @ twin
    torch.testing.assert_close(ours, theirs)
    for out in (ours, theirs):
        out.square().sum().backward()
    torch.testing.assert_close(weight.grad, twin.grad)

    (block,) = SMALL["exact"].sample(graph, [0, 4], Key(0), depth=1).blocks
    rows = LazyRows(store_of(x), torch.from_numpy(block.src))
    gathered = BlockOperator(block).aggregate(rows.dense())
    torch.testing.assert_close(BlockOperator(block).aggregate(rows), gathered)


def test_a_constant_is_summed_once():
    (block,) = SMALL["exact"].sample(labelled(), [0, 4], Key(0), depth=1).blocks
    operator, h = BlockOperator(block), torch.ones(len(block.src), 2)
    assert operator.aggregate(h) is operator.aggregate(h)


def test_own_rows_that_are_missing():
    graph = labelled()
    for step in range(50):
        (block,) = SMALL["ladies"].sample(graph, [0, 4, 8, 30], Key(0, 0, step), depth=1).blocks
        if block.dst_in_src.min() < 0:
            break
    with pytest.raises(SgcnError, match="keep_destinations to true") as caught:
        BlockOperator(block).own(torch.ones(len(block.src), 2))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("width", [3, 31, 32, 33, 70, 256])
@pytest.mark.parametrize("kind", KINDS)
def test_wide_products(kind, width):
    """Stripes of columns with an overlap at the end, whole and by a few rows of P."""
    graph = graph_of(kind)
    rng = torch.Generator().manual_seed(width)
    for operator in operators_of(graph):
        h = torch.randn(operator.shape[1], width, generator=rng, requires_grad=True)
        g = torch.randn(operator.shape[0], width, generator=rng)
        dense = dense_of(operator, graph)
        out = operator.aggregate(h)
        out.backward(g)
        torch.testing.assert_close(out, (dense @ h.double()).float(), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(h.grad, (dense.T @ g.double()).float(), rtol=1e-5, atol=1e-5)
        narrow = torch.cat([operator.aggregate(part) for part in h.detach().split(5, 1)], 1)
        assert torch.equal(out, narrow)


def test_a_product_does_not_depend_on_the_threads():
    graph = Graph.from_edges(*power_law(2000, 20000), nodes=2000)
    h = torch.randn(len(graph), 70, generator=torch.Generator().manual_seed(0))
    before, found = numba.get_num_threads(), []
    try:
        for threads in range(1, before + 1):
            numba.set_num_threads(threads)
            found.append(GraphOperator(graph).aggregate(h))
    finally:
        numba.set_num_threads(before)
    assert all(torch.equal(one, found[0]) for one in found)


@pytest.mark.parametrize("width", [5, 64, 130])
def test_half_features_of_the_whole_graph(monkeypatch, width):
    """A float16 table is multiplied by stripes, and never float32 as a whole."""
    graph = graph_of("weighted")
    x = np.random.default_rng(0).normal(size=(26, width)).astype(np.float16)
    rows = LazyRows(store_of(x))
    monkeypatch.setattr(LazyRows, "dense", lambda self: pytest.fail("the whole table as float32"))
    whole = torch.from_numpy(x.astype(np.float32))
    operator = GraphOperator(graph)
    assert torch.equal(operator.aggregate(rows), operator.aggregate(whole))
