"""Every compiled kernel against its plain twin: integers to the bit, weights to a few ulp."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import twins
from helpers import TINY, graphs, power_law, streams
from sgcn import Graph, kernels
from sgcn.compute import buffers
from sgcn.kernels import (
    ColumnLaw,
    LadiesLaw,
    Scratch,
    activations,
    blocks,
    csr,
    describe,
    dropout,
    random,
    spmm,
    subgraphs,
    synthetic,
)

ULP = 2.0**-23  # of float32, relative
SORTING = ("sort_rows", "sort_many_rows", "compact_rows")  # together they are `sorted_rows`

PLACING = ("count_edges", "place_edges")  # together they are `scatter_edges`

#: Together they are `weighted_rows`.
WEIGHTED = ("sort_weighted_rows", "turn_rows", "merge_rows")

GROWING = ("place_names",)  # a larger table for `number_names`

#: Calls of kernels that have twins, one after another.
COMPOSED = (
    "ladies_block", "distinct", "neighbor_batch", "labor_batch",
    "vrgcn_batch", "ladies_batch", "law_batch", "node_batch", "part_batch",
)  # fmt: skip

data = st.data()
sizes = st.integers(1, 20)


def positions(graph: Graph) -> np.ndarray:
    return np.full(len(graph), -1, np.int32)


def scratch_of(graph: Graph) -> Scratch:
    words = np.zeros(len(graph) // 64 + 1, np.uint64)
    return Scratch(positions(graph), words)


def some_nodes(draw, graph: Graph) -> np.ndarray:
    """Distinct nodes in any order, perhaps none."""
    order = draw(st.permutations(range(len(graph))))
    return np.array(order[: draw(st.integers(0, len(graph)))], np.int32)


def assert_same(kernel, twin, ulps: int = 4) -> None:
    """Integers equal with their dtypes, floats of equal dtype within ``ulps``."""
    for got, wanted in zip(kernel, twin, strict=True):
        assert got.dtype == wanted.dtype
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=ulps * ULP, atol=TINY)
        else:
            np.testing.assert_array_equal(got, wanted)


#: spmm: held against dense matrices in nn/test_operators.py; memory: nothing that computes.
WITHOUT_TWINS = ("spmm", "memory")


def test_every_kernel_has_a_twin():
    """In the module of twins that is called like the kernel's."""
    modules = {info.name for info in pkgutil.iter_modules(kernels.__path__)}
    assert {"blocks", "names", "text", *WITHOUT_TWINS} < modules
    others = {*SORTING, *PLACING, *WEIGHTED, *GROWING, *COMPOSED}
    for name in modules - {*WITHOUT_TWINS}:
        module = import_module(f"sgcn.kernels.{name}")
        known = others.union(dir(getattr(twins, name, None)))
        for kernel, code in vars(module).items():
            own = getattr(code, "__module__", None) == module.__name__
            if own and hasattr(code, "py_func") and not kernel.startswith("_"):
                assert kernel in known, f"{name}.{kernel}"


# -- random.py ----------------------------------------------------------------------------------


@given(streams, st.integers(0, 2**62))
def test_uniform(stream, counter):
    assert random.bits(stream, counter) == twins.random.bits(stream, counter)
    assert random.uniform(stream, counter) == twins.random.uniform(stream, counter)


@given(streams, st.integers(0, 50))
def test_uniforms(stream, n):
    np.testing.assert_array_equal(random.uniforms(n, stream), twins.random.uniforms(n, stream))


@given(streams, st.integers(0, 50))
def test_permutation(stream, n):
    assert_same([random.permutation(n, stream)], [twins.random.permutation(n, stream)])


# -- blocks.py ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9)))
def test_unique_counts(nodes):
    nodes = np.array(nodes, np.int32)
    position = np.full(10, -1, np.int32)
    assert_same(blocks.unique_counts(nodes, position), twins.blocks.unique_counts(nodes))
    assert (position == -1).all()


@given(graphs(), data, sizes, streams)
def test_neighbor_block(graph, data, size, stream):
    rows, position = some_nodes(data.draw, graph), positions(graph)
    mark = np.zeros(graph.degrees.max() + 1, np.uint8)
    p = graph.propagation
    assert_same(
        blocks.neighbor_block(p, rows, size, stream, position, mark),
        twins.blocks.neighbor_block(p, rows, size, stream),
    )
    assert (position == -1).all()
    assert not mark.any()


@given(graphs(), data)
def test_exact_block(graph, data):
    rows, position, p = some_nodes(data.draw, graph), positions(graph), graph.propagation
    indptr = blocks.row_pointers(p, rows)
    assert_same([indptr], [twins.blocks.row_pointers(p, rows)])
    indices, weights = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    src = blocks.exact_block(p, rows, indptr, indices, weights, position)
    assert_same((indptr, indices, weights, src), twins.blocks.exact_block(p, rows))
    assert (position == -1).all()


@given(graphs(), data, sizes, streams)
def test_labor_block(graph, data, size, stream):
    rows, position, p = some_nodes(data.draw, graph), positions(graph), graph.propagation
    assert_same(
        blocks.labor_block(p, rows, size, stream, position),
        twins.blocks.labor_block(p, rows, size, stream),
    )
    assert (position == -1).all()


@given(graphs(), data)
def test_restricted_block(graph, data):
    rows, src = some_nodes(data.draw, graph), some_nodes(data.draw, graph)
    factor = np.linspace(0.1, 3.0, len(src), dtype=np.float32)
    scratch, p = scratch_of(graph), graph.propagation
    assert_same(
        blocks.restricted_block(p, rows, src, factor, scratch),
        twins.blocks.restricted_block(p, rows, src, factor),
    )
    assert (scratch.position == -1).all()
    assert not scratch.member.any()


@given(graphs())
def test_square_sums(graph):
    p = graph.propagation
    for got, wanted in zip(blocks.square_sums(p), twins.blocks.square_sums(p), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@given(graphs(), data, sizes, st.booleans(), st.booleans(), streams)
def test_ladies_draws(graph, data, size, keep, stratified, stream):
    """The two ways to LADIES' law give one factor to a column drawn as often."""
    rows, position, p = some_nodes(data.draw, graph), positions(graph), graph.propagation
    src, counts, total = blocks.ladies_draws(
        p, rows, size, LadiesLaw(keep, stratified, *blocks.square_sums(p)), stream, position
    )
    twin = twins.blocks.ladies_draws(p, rows, size, keep, stratified, stream)
    assert_same([src, counts], twin[:2])
    np.testing.assert_allclose(total, twin[2], rtol=1e-12)
    assert (position == -1).all()
    if total < 0:
        return
    ones = np.ones(len(src), np.float32)
    indptr, indices, weights, _ = twins.blocks.restricted_block(p, rows, src, ones)
    changed = weights.copy()
    blocks.weigh_draws(indptr, indices, changed, counts, size, total, p.loops)
    twin = twins.blocks.weigh_draws(indptr, indices, weights, counts, size, total, p.loops)
    assert_same([changed], [twin], ulps=64)  # what the rows hold themselves is subtracted

    mass = (twins.words.dense(p)[rows] ** 2).sum(axis=0)
    mass[rows if keep else []] = 0.0
    drawn = counts > 0
    np.testing.assert_allclose(counts.sum(), size if mass.sum() > 0 else 0)
    factor = np.where(drawn, counts * mass.sum() / (size * np.where(drawn, mass[src], 1)), 1)
    np.testing.assert_allclose(changed, weights * factor[indices], rtol=1e-5)


def test_ladies_draws_gives_up_where_only_the_rows_themselves_are_left():
    """Two rows that see each other often and anything else hardly ever."""
    graph = Graph.from_edges([0, 1], [1, 2], [1.0, 1e-4])
    p, rows = graph.propagation, np.array([0, 1], np.int32)
    law = LadiesLaw(True, False, *blocks.square_sums(p))
    *_, total = blocks.ladies_draws(p, rows, 4, law, np.uint64(5), positions(graph))
    assert total == twins.blocks.ladies_draws(p, rows, 4, True, False, np.uint64(5))[2] == -1.0


@given(graphs(), data, sizes, st.booleans(), st.booleans(), streams)
def test_ladies_sources(graph, data, size, keep, stratified, stream):
    rows, position, mass = some_nodes(data.draw, graph), positions(graph), np.zeros(len(graph))
    p = graph.propagation
    law = LadiesLaw(keep, stratified, *blocks.square_sums(p))
    assert_same(
        blocks.ladies_sources(p, rows, size, law, stream, position, mass),
        twins.blocks.ladies_sources(p, rows, size, keep, stratified, stream),
    )
    assert (position == -1).all()
    assert not mass.any()


@given(graphs())
def test_alias_table(graph):
    """Equal to its twin, and true to the law: slot k is k up to its threshold, else its alias."""
    law = twins.blocks.column_law(graph.propagation)
    threshold, alias = blocks.alias_table(law)
    assert_same([threshold, alias], twins.blocks.alias_table(law))
    tabled = threshold + np.bincount(alias, 1 - threshold, len(law))
    np.testing.assert_allclose(tabled / len(law), law, atol=1e-15)


@given(graphs(), data, sizes, streams)
def test_law_sources(graph, data, size, stream):
    head, position = some_nodes(data.draw, graph), positions(graph)
    law = twins.blocks.column_law(graph.propagation)
    columns = ColumnLaw(law, *twins.blocks.alias_table(law))
    assert_same(
        blocks.law_sources(columns, head, size, stream, position),
        twins.blocks.law_sources(*columns, head, size, stream),
    )
    assert (position == -1).all()


def test_a_node_drawn_often_keeps_its_exact_factor():
    """Factors are summed in float64: 100,000 draws of one node do not drift."""
    law = np.array([0.9, 0.1])
    none = np.empty(0, np.int32)
    columns, position = ColumnLaw(law, *twins.blocks.alias_table(law)), np.full(2, -1, np.int32)
    src, factor = blocks.law_sources(columns, none, 100_000, np.uint64(1), position)
    counts = factor * 100_000 * law[src]
    np.testing.assert_allclose(counts, np.rint(counts), rtol=2 * ULP)
    assert counts.sum() == pytest.approx(100_000)


@given(graphs(), st.floats(0, 5, width=32))
def test_rescale_rows(graph, most):
    p = graph.propagation
    weights = np.linspace(0, 2, graph.edges, dtype=np.float32)
    targets = np.linspace(0, most, len(graph), dtype=np.float32)
    rows = np.arange(len(graph), dtype=np.int32)[::-1].copy()
    scaled = weights.copy()
    blocks.rescale_rows(p.indptr, scaled, rows, targets)
    assert_same([scaled], [twins.blocks.rescale_rows(p.indptr, weights, rows, targets)])


@given(graphs())
def test_sums_and_laws_of_p(graph):
    p = graph.propagation
    assert_same([blocks.row_sums(p)], [twins.blocks.row_sums(p)])
    np.testing.assert_allclose(blocks.column_law(p), twins.blocks.column_law(p), rtol=1e-12)


# -- subgraphs.py -------------------------------------------------------------------------------


def induced(graph: Graph, nodes: np.ndarray):
    """P on ``nodes``, as the subgraph samplers hand it on."""
    ones = np.ones(len(nodes), np.float32)
    return twins.blocks.restricted_block(graph.propagation, nodes, nodes, ones)[:3]


@given(graphs(), sizes, streams)
def test_edge_nodes(graph, draws, stream):
    p, linked = graph.propagation, np.flatnonzero(graph.degrees).astype(np.int32)
    assert_same(
        [subgraphs.edge_nodes(p, linked, draws, stream)],
        [twins.subgraphs.edge_nodes(p, linked, draws, stream)],
    )


@given(graphs())
def test_edge_hits(graph):
    p = graph.propagation
    np.testing.assert_allclose(subgraphs.edge_hits(p), twins.subgraphs.edge_hits(p), rtol=1e-12)


@given(graphs(), data, sizes)
def test_reweight_edges(graph, data, draws):
    p, nodes = graph.propagation, some_nodes(data.draw, graph)
    nodes = nodes[graph.degrees[nodes] > 0]  # the others are never drawn
    indptr, indices, weights = induced(graph, nodes)
    changed, linked = weights.copy(), int((graph.degrees > 0).sum())
    hits = twins.subgraphs.edge_hits(p)
    block = (indptr, indices, changed)
    subgraphs.reweight_edges(p, block, nodes, hits, linked, draws, graph.directed)
    twin = twins.subgraphs.reweight_edges(p, indptr, indices, weights, nodes, draws)
    assert_same([changed], [twin])


@given(graphs(), data, st.integers(2, 20))
def test_reweight_nodes(graph, data, draws):
    law = twins.blocks.column_law(graph.propagation)
    nodes = some_nodes(data.draw, graph)
    nodes = nodes[law[nodes] > 0]  # the others are never drawn
    indptr, indices, weights = induced(graph, nodes)
    counts = 1.0 + np.arange(len(nodes)) % 3
    changed = weights.copy()
    subgraphs.reweight_nodes(indptr, indices, changed, counts, law[nodes], draws)
    twin = twins.subgraphs.reweight_nodes(indptr, indices, weights, counts, law[nodes], draws)
    assert_same([changed], [twin])


def test_nodes_that_are_hardly_ever_drawn_have_finite_weights():
    """1 - p is 1 in float64, and yet a node that was drawn was kept with a chance of draws p."""
    law, draws = np.array([1e-20, 1e-30, 1.0]), 5
    indptr, indices = np.array([0, 3, 6, 9]), np.array([0, 1, 2] * 3, np.int32)
    weights = np.full(9, 1e-10, np.float32)
    kept = subgraphs.reweight_nodes(indptr, indices, weights, np.ones(3), law, draws)
    np.testing.assert_allclose(kept, [draws * 1e-20, draws * 1e-30, 1.0])
    given_row = np.array([5 / 4, 5 / 4, 1.0])[:, None] / (draws * law)  # kept / rest / (draws p)
    np.fill_diagonal(given_row, 1.0)
    np.testing.assert_allclose(weights.reshape(3, 3), 1e-10 * given_row, rtol=4 * ULP)


@given(graphs(), st.integers(1, 5), st.integers(1, 4), streams)
def test_walk_nodes(graph, roots, length, stream):
    p = graph.propagation
    assert_same(
        [subgraphs.walk_nodes(p, roots, length, stream)],
        [twins.subgraphs.walk_nodes(p, roots, length, stream)],
    )


@settings(max_examples=50)
@given(graphs(), data, st.integers(1, 3), st.lists(streams, min_size=1, max_size=6))
def test_pre_sampled_walks(graph, data, roots, keys):
    p, keys = graph.propagation, np.array(keys, np.uint64)
    node_counts, pair_counts = np.zeros(len(graph), np.int32), np.zeros(graph.edges, np.int32)
    position = positions(graph)
    subgraphs.count_walks(p, roots, 2, keys, position, node_counts, pair_counts)
    assert_same([node_counts, pair_counts], twins.subgraphs.count_walks(p, roots, 2, keys))
    assert (position == -1).all()

    nodes = some_nodes(data.draw, graph)
    indptr, indices, weights = induced(graph, nodes)
    changed, counts = weights.copy(), (node_counts, pair_counts)
    subgraphs.reweight_walks(p, indptr, indices, changed, nodes, *counts)
    twin = twins.subgraphs.reweight_walks(p, indptr, indices, weights, nodes, *counts)
    assert_same([changed], [twin])


@given(graphs(), data, st.floats(0, 10))
def test_reweight_parts(graph, data, factor):
    nodes = some_nodes(data.draw, graph)
    indptr, indices, weights = induced(graph, nodes)
    part, changed = (nodes % 3).astype(np.int32), weights.copy()
    subgraphs.reweight_parts(indptr, indices, changed, part, factor)
    assert_same([changed], [twins.subgraphs.reweight_parts(indptr, indices, weights, part, factor)])


# -- csr.py -------------------------------------------------------------------------------------

edge_lists = st.integers(1, 10).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))
    )
)


def scatter_edges(rows, cols, n, both, drop_loops):
    """Rows of edges in the order in which they come."""
    indptr, none = np.zeros(n + 1, np.int64), np.empty(0, np.float32)
    csr.count_edges(indptr[1:], rows, cols, both, drop_loops)
    indptr = np.cumsum(indptr)
    indices = np.empty(indptr[-1], np.int32)
    csr.place_edges(indices, none, indptr[:-1].copy(), rows, cols, none, both, drop_loops)
    return indptr, indices


@given(edge_lists, st.booleans(), st.booleans())
def test_edges_become_sorted_rows(edges, both, drop_loops):
    n, pairs = edges
    rows, cols = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    indptr, indices = scatter_edges(rows, cols, n, both, drop_loops)
    assert_same((indptr, indices), twins.csr.scatter_edges(rows, cols, n, both, drop_loops))
    assert csr.rows_are_sorted(indptr, indices) == twins.csr.rows_are_sorted(indptr, indices)

    wanted = twins.csr.sorted_rows(indptr, indices)
    fitted = csr.compact_rows(indptr, indices, csr.sort_rows(indptr, indices))
    indices = indices[: fitted[-1]]
    assert_same((fitted, indices), wanted)
    parts = [(rows[k::2], cols[k::2], np.empty(0, np.float32)) for k in range(2)]
    assert_same(csr.sorted_rows(lambda: parts, n, both=both, drop_loops=drop_loops), wanted)
    assert csr.rows_are_sorted(fitted, indices)
    assert csr.is_symmetric(fitted, indices) == twins.csr.is_symmetric(fitted, indices)
    assert csr.count_self_loops(fitted, indices) == twins.csr.count_self_loops(fitted, indices)
    wanted = twins.csr.drop_self_loops(fitted, indices)
    for kept in (np.empty_like(indices), indices):
        without = csr.drop_self_loops(fitted, indices, kept)
        assert_same((without, kept[: without[-1]]), wanted)


@given(edge_lists, st.booleans(), st.booleans(), data)
def test_weighted_edges_become_sorted_rows(edges, both, drop_loops, data):
    """Weights are quarters: their sums are exact in any order."""
    n, pairs = edges
    rows, cols = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    quarters = st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs))
    weights = np.array(data.draw(quarters), np.float32) / 4
    parts = [(rows[k::2], cols[k::2], weights[k::2]) for k in range(2)]
    options = {"both": both, "drop_loops": drop_loops}
    assert_same(
        csr.sorted_rows(lambda: parts, n, weighted=True, **options),
        twins.csr.weighted_rows(rows, cols, weights, n, **options),
        ulps=0,
    )


def test_sorting_on_all_cores_is_the_same_sorting():
    rows, cols = (ends.astype(np.int32) for ends in power_law())
    indptr, alone = scatter_edges(rows, cols, 60, True, True)
    together = alone.copy()
    assert_same([csr.sort_many_rows(indptr, together)], [csr.sort_rows(indptr, alone)])
    assert_same([together], [alone])


@given(graphs())
def test_weighted_degrees(graph):
    values = np.linspace(0, 1, graph.edges, dtype=np.float32)
    np.testing.assert_allclose(
        csr.weighted_degrees(graph.indptr, values),
        twins.csr.weighted_degrees(graph.indptr, values),
        rtol=1e-12,
    )


# -- describe.py --------------------------------------------------------------------------------


@given(graphs())
def test_components(graph):
    wanted = twins.describe.components(graph.indptr, graph.indices)
    assert_same([describe.components(graph.indptr, graph.indices)], [wanted])


@given(graphs(), data)
def test_labels_along_edges(graph, data):
    n = len(graph)
    y = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    assert_same(
        describe.same_classes(graph.indptr, graph.indices, y),
        twins.describe.same_classes(graph.indptr, graph.indices, y),
    )
    sets = np.stack([y < 1, y > 0], 1).astype(np.uint8)
    sets[y == 2] = 0
    total, count = describe.shared_labels(graph.indptr, graph.indices, sets)
    wanted = twins.describe.shared_labels(graph.indptr, graph.indices, sets)
    np.testing.assert_allclose(total, wanted[0], rtol=1e-12)
    assert_same([count], [wanted[1]])


@given(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.5, -3.0]), min_size=3, max_size=3)))
def test_row_hashes(rows):
    x = np.array(rows, np.float32).reshape(-1, 3)
    sign = np.uint64(1 << 31)
    dense = np.arange(len(x) + 1) * 3, np.tile(np.arange(3), len(x)), x.reshape(-1)
    stored = sp.csr_array(x)
    wanted = twins.describe.row_hashes(*dense[:2], dense[2].view(np.uint32), sign)
    for indptr, indices, values in (dense, (stored.indptr, stored.indices, stored.data)):
        parts = (indptr, indices, values.view(np.uint32), sign)
        assert_same([describe.row_hashes(*parts)], [wanted])
        assert_same([twins.describe.row_hashes(*parts)], [wanted])


# -- synthetic.py -------------------------------------------------------------------------------


@given(streams, st.integers(1, 4), st.integers(0, 100), st.floats(0, 1))
def test_edges_are_drawn_absorbed_and_made_rows(stream, communities, first, homophily):
    n = 12
    bounds = np.arange(communities + 1) * n // communities
    order = random.permutation(n, stream)
    codes = np.empty(20, np.int64)
    args = (first, stream, order, bounds, homophily, 0.05, 0.4)
    synthetic.draw_edges(codes, *args)
    assert_same([codes], [twins.synthetic.draw_edges(codes, *args)])

    codes[:8].sort()
    have = synthetic.absorb_edges(codes[:8], 0)
    codes = np.concatenate([codes[:have], np.sort(codes[8:])])
    wanted = twins.synthetic.absorb_edges(codes, have)
    count = synthetic.absorb_edges(codes, have)
    assert_same([codes[:count]], [wanted])
    for pieces in (1, 3):
        assert_same(
            synthetic.rows_of_edges(wanted, n, pieces),
            twins.synthetic.rows_of_edges(wanted, n, pieces),
        )


@given(streams, st.floats(0, 2), st.floats(0, 2))
def test_noisy_rows(stream, scale, noise):
    centres = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    args = (centres, np.array([0, 1, 1, 0], np.int32), scale, noise, stream)
    np.testing.assert_allclose(
        synthetic.noisy_rows(*args), twins.synthetic.noisy_rows(*args), rtol=1e-5, atol=1e-5
    )


# -- spmm.py ------------------------------------------------------------------------------------


widths = st.sampled_from([1, 5, 31, 32, 33, 64, 70])
precisions = st.sampled_from(["float32", "bfloat16", "float16"])


def random_table(rows, width, precision):
    """A table for kernels, and its numbers as float32."""
    table = torch.from_numpy(np.random.default_rng(width).normal(size=(rows, width)))
    table = table.to(getattr(torch, precision))
    if table.numel():
        table[0, 0] = 2.0**-20  # less than what float16 holds with all its digits
    return buffers.numbers(table), table.float().numpy()


@given(graphs(), data, widths, precisions)
def test_propagate(graph, data, width, precision):
    """Equal to the bit, by all rows and by some: the stripes and the narrow road."""
    p = graph.propagation
    lo = data.draw(st.integers(0, len(graph) - 1))
    hi = data.draw(st.integers(lo, len(graph)))
    table, h = random_table(len(graph), width, precision)
    some = p._replace(indptr=p.indptr[lo : hi + 1], row=p.row[lo:hi], loops=False)
    for rows in (p, some):
        out = np.full((len(rows.row), width), np.nan, np.float32)
        spmm.propagate(rows, table, out)
        np.testing.assert_array_equal(out, twins.spmm.propagate(rows, h))


@given(graphs(), data, widths, precisions)
def test_spmm(graph, data, width, precision):
    """Equal to the bit, with the rows written down and with rows read in place."""
    rows, p = some_nodes(data.draw, graph), graph.propagation
    block = twins.blocks.restricted_block(p, rows, rows, np.ones(len(rows), np.float32))[:3]
    table, h = random_table(len(graph), width, precision)
    wanted = twins.spmm.spmm(*block, h[rows])
    for source, ids in ((table[rows], None), (table, rows)):
        out = np.full((len(rows), width), np.nan, np.float32)
        spmm.spmm(*block, source, ids, out)
        np.testing.assert_array_equal(out, wanted)


# -- activations.py -----------------------------------------------------------------------------


def test_elu():
    """To a unit in the last place, from the smallest numbers to those where it is -1."""
    small = -np.logspace(-37, 3, 200_001)
    z = np.concatenate([small, -small, [0.0, -np.inf, np.inf]]).astype(np.float32)
    out = np.full_like(z, 7.0)
    activations.elu(z, out)
    np.testing.assert_allclose(out, twins.activations.elu(z), rtol=ULP, atol=0.0)
    activations.elu(np.array([np.nan], np.float32), out[:1])
    assert np.isnan(out[0])  # what blew up stays visible


def test_the_terms_of_elu_are_those_of_the_polynomial():
    reach = 1.01 * np.log(2.0) / 2.0
    fitted = np.polynomial.Chebyshev.interpolate(
        lambda r: (np.expm1(r) - r) / r**2, 5, domain=[-reach, reach]
    ).convert(kind=np.polynomial.Polynomial)
    np.testing.assert_allclose(activations._TERMS, fitted.coef, rtol=1e-6)


# -- dropout.py ---------------------------------------------------------------------------------


@given(streams, st.integers(0, 40), st.floats(0.0, 0.999))
def test_drop(stream, n, share):
    values = np.arange(1, n + 1, dtype=np.float32).reshape(1, n)
    out = np.full_like(values, np.nan)
    dropout.drop(values, stream, share, out)
    assert_same([out], [twins.dropout.drop(values, stream, share)])


def test_drop_over_several_pieces():
    values = np.ones((3, 20_001), np.float32)
    out = np.empty_like(values)
    dropout.drop(values, np.uint64(3), 0.3, out)
    assert_same([out], [twins.dropout.drop(values, 3, 0.3)])
    # The chance of a value to stay, to five standard errors; the mean stays what it was.
    assert abs((out > 0).mean() - 0.7) < 5 * (0.21 / out.size) ** 0.5
    assert out.max() == np.float32(1 / (1 - round(0.3 * 65536) / 65536))


@given(graphs(), data, streams, st.floats(0.0, 0.999))
def test_drop_entries(graph, data, stream, share):
    values = np.arange(len(graph.indices), dtype=np.float32)
    csr, ids = (graph.indptr, graph.indices, values), some_nodes(data.draw, graph)
    assert_same(
        dropout.drop_entries(*csr, ids, stream, share),
        twins.dropout.drop_entries(*csr, ids, stream, share),
    )
