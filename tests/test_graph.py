"""Graph: every way to make one, P by its definition, memory, and what is refused."""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    dense_adjacency,
    dense_propagation,
    graphs,
    power_law,
    propagation_of,
    zoo_graph,
)
from sgcn import Graph, SgcnError

NORMALIZATIONS = ["sym", "row"]


def assert_same_graph(one: Graph, other: Graph) -> None:
    for name in ("indptr", "indices", "values", "row", "col"):
        got, wanted = getattr(one, name), getattr(other, name)
        assert (got is None) == (wanted is None), name
        if got is not None:
            assert got.dtype == wanted.dtype, name
            np.testing.assert_array_equal(got, wanted, err_msg=name)


# -- making one ---------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_constructors_agree(directed, weighted):
    """One edge list with loops and duplicates, in every form that users have."""
    src, dst = power_law()
    weights = np.random.default_rng(0).random(len(src), np.float32) if weighted else None
    options = {"directed": directed, "nodes": 64}
    wanted = Graph.from_edges(src, dst, weights, **options)

    pair = np.stack([src, dst])
    values = np.ones(len(src), np.float32) if weights is None else weights
    matrix = sp.coo_array((values, (dst, src)), shape=(64, 64))  # row i reads from column j
    order = np.argsort(dst, kind="stable")
    indptr = np.searchsorted(dst[order], np.arange(65))
    made = {
        "lists": Graph.from_edges(src.tolist(), dst.tolist(), weights, **options),
        "numpy": Graph.from_edge_index(pair, weights, **options),
        "torch": Graph.from_edge_index(
            torch.tensor(pair), None if weights is None else torch.tensor(weights), **options
        ),
        "csr": Graph.from_csr(
            indptr, src[order], None if weights is None else weights[order], directed=directed
        ),
        "coo": Graph.from_scipy(matrix, weighted=weighted, directed=directed),
        "csc": Graph.from_scipy(sp.csc_matrix(matrix), weighted=weighted, directed=directed),
    }
    for name, graph in made.items():
        assert len(graph) == 64, name
        if weighted:  # duplicates are added up in the order of the form
            np.testing.assert_allclose(graph.matrix().toarray(), wanted.matrix().toarray(), 1e-5)
        else:
            assert_same_graph(graph, wanted)


@pytest.mark.parametrize("readonly", [False, True])
def test_sorted_csr_arrays_are_taken_as_they_are(readonly):
    graph = zoo_graph("power-law")
    graph.indices.flags.writeable = not readonly
    again = Graph.from_csr(graph.indptr, graph.indices)
    assert again.indices is graph.indices
    assert again.indptr is graph.indptr


@given(graphs())
def test_stored_rows_are_sorted_distinct_and_symmetric(graph):
    for i in range(len(graph)):
        row = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
        assert (np.diff(row) > 0).all()
        assert not (graph.self_loops and i in row)
    A = dense_adjacency(graph)
    assert graph.directed or (A == A.T).all()
    assert graph.edges == len(graph.indices) == (A > 0).sum()
    assert graph.degrees.tolist() == (A > 0).sum(axis=1).tolist()
    assert_same_graph(
        Graph.from_csr(
            graph.indptr,
            graph.indices,
            graph.values,
            directed=graph.directed,
            normalization=graph.normalization,
            self_loops=graph.self_loops,
        ),
        graph,
    )


def test_the_two_directions_of_a_weighted_edge():
    """Repeated entries add up; of two directions the larger holds; zeros are no edges."""
    graph = Graph.from_edges(
        [0, 0, 1, 2, 3], [1, 1, 0, 1, 0], [1.0, 2.0, 5.0, 4.0, 0.0], self_loops=False
    )
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 5
    expected[1, 2] = expected[2, 1] = 4
    np.testing.assert_array_equal(dense_adjacency(graph), expected)
    assert graph.edges == 4


def test_direction_of_messages():
    """from_edges(src, dst): dst reads from src, so row dst holds src."""
    graph = Graph.from_edges([0], [1], directed=True, self_loops=False)
    assert graph.indptr.tolist() == [0, 0, 1]
    assert graph.indices.tolist() == [0]


def test_from_pyg():
    data = pytest.importorskip("torch_geometric.data").Data
    src, dst = power_law()
    masks = torch.arange(60) % 4
    pyg = data(
        x=torch.rand(60, 3),
        y=torch.arange(60).reshape(60, 1),
        edge_index=torch.tensor(np.stack([src, dst])),
        edge_weight=torch.rand(len(src)),
        train_mask=masks == 0,
        val_mask=masks == 1,
        test_mask=masks == 2,
    )
    graph = Graph.from_pyg(pyg, normalization="row")
    assert_same_graph(
        graph, Graph.from_edges(src, dst, pyg.edge_weight, nodes=60, normalization="row")
    )
    np.testing.assert_array_equal(graph.x, pyg.x.numpy())
    assert graph.y.tolist() == list(range(60))
    assert graph.split.tolist() == [0, 1, 2, -1] * 15

    bare = Graph.from_pyg(data(edge_index=pyg.edge_index, num_nodes=70))
    assert_same_graph(bare, Graph.from_edges(src, dst, nodes=70))
    assert bare.x is bare.y is bare.split is None


# -- P ------------------------------------------------------------------------------------------


@given(graphs())
def test_p_is_its_definition(graph):
    P = propagation_of(graph)
    np.testing.assert_allclose(graph.matrix().toarray(), P, rtol=1e-6, atol=1e-30)
    assert graph.row.dtype == graph.col.dtype == np.float32


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("name", ["power-law", "isolated", "weighted", "directed", "self-loops"])
def test_with_propagation_is_the_same_as_making_it_so(name, normalization, self_loops):
    options = {"normalization": normalization, "self_loops": self_loops}
    graph = zoo_graph(name, self_loops=False, x=np.ones((zoo_size(name), 2)))
    changed = graph.with_propagation(**options)
    A = dense_adjacency(graph)  # loops included, as they came
    P = dense_propagation(A, normalization, self_loops)
    np.testing.assert_allclose(changed.matrix().toarray(), P, rtol=1e-6)
    assert_same_graph(changed, zoo_graph(name, **options))
    assert changed.x is graph.x
    if not self_loops:
        assert changed.indices is graph.indices


def zoo_size(name: str) -> int:
    return len(zoo_graph(name))


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("name", ["power-law", "isolated", "hub", "weighted", "directed"])
def test_sym_is_pygs_gcn_norm(name, self_loops):
    gcn_norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv").gcn_norm
    graph = zoo_graph(name, self_loops=self_loops)
    A = dense_adjacency(graph)
    if not self_loops:
        np.fill_diagonal(A, 0)
        graph = Graph.from_scipy(
            sp.csr_array(A), weighted=True, directed=graph.directed, self_loops=False
        )
    dst, src = np.nonzero(A)
    index, weight = gcn_norm(
        torch.tensor(np.stack([src, dst])),
        torch.tensor(A[dst, src], dtype=torch.float32),
        num_nodes=len(graph),
        add_self_loops=self_loops,
    )
    theirs = np.zeros(A.shape)
    theirs[index[1], index[0]] = weight
    np.testing.assert_allclose(graph.matrix().toarray(), theirs, rtol=1e-5)


@given(graphs(), st.data())
def test_a_subgraph_is_the_graph_of_the_edges_among_its_nodes(graph, data):
    """Whatever the order of the nodes; P knows nothing of what was left out."""
    order = data.draw(st.permutations(range(len(graph))))
    nodes = order[: data.draw(st.integers(1, len(graph)))]
    made = graph.subgraph(nodes)
    dense = dense_adjacency(graph)[np.ix_(nodes, nodes)]
    np.testing.assert_array_equal(dense_adjacency(made), dense)
    wanted = dense_propagation(dense, graph.normalization, graph.self_loops)
    np.testing.assert_allclose(made.matrix().toarray(), wanted, rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_subgraph_takes_the_rows_of_its_nodes(sparse):
    x = np.arange(15.0).reshape(5, 3)
    graph = Graph.from_edges(
        [0, 1, 2, 3], [1, 2, 3, 4], x=sp.csr_array(x) if sparse else x, y=[4, 3, 2, 1, 0],
        split=[0, 1, 0, -1, 2],
    )  # fmt: skip
    for nodes in ([0, 2], np.array([True, False, True, False, False]), torch.tensor([0, 2])):
        made = graph.subgraph(nodes)
        assert (made.y.tolist(), made.split.tolist(), made.edges) == ([4, 2], [0, 0], 0)
        np.testing.assert_array_equal(made.x.toarray() if sparse else made.x, x[[0, 2]])


def test_memo_computes_once_for_all_threads():
    graph, calls = zoo_graph("hub"), []
    threads = [
        threading.Thread(target=graph.memo, args=("key", lambda: calls.append(1))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


# -- memory -------------------------------------------------------------------------------------

MEASURE = """
import ctypes, gc, numpy as np
from pathlib import Path
from sgcn import Graph

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free is not the graph's
    fields = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024

def make(n, e):
    ends = np.random.default_rng(0).integers(0, n, (2, e), np.int32)
    return Graph.from_edges(ends[0], ends[1], nodes=n, normalization=NORMALIZATION)

make(1000, 1 << 21)  # compiles and warms up both sorts
make(1000, 5000)
before = resident()
graph = make(200_000, 3_000_000)
print(resident() - before, graph.nbytes, len(graph), graph.edges)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="reads /proc, calls malloc_trim")
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_memory_of_a_graph(normalization):
    """At most 4 bytes a stored direction and 32 a node: as counted, and as the process grows."""
    code = MEASURE.replace("NORMALIZATION", repr(normalization))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown, counted, nodes, edges = map(int, run.stdout.split())
    limit = 4 * edges + 32 * nodes
    assert counted <= limit
    assert 0.9 * counted <= grown <= limit


@pytest.mark.parametrize("name", ["power-law", "isolated", "directed", "one-node", "one-edge"])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_bytes_of_small_graphs(name, normalization):
    graph = zoo_graph(name, normalization=normalization)
    assert graph.values is None
    assert graph.nbytes <= 4 * graph.edges + 32 * len(graph)


def test_repr_says_what_it_is():
    graph = Graph.from_edges([0, 1], [1, 2], directed=True)
    assert repr(graph) == "Graph(3 nodes, 2 stored edges, directed, sym + self-loops)"


# -- refusals -----------------------------------------------------------------------------------

pair = ([0, 1], [1, 0])


def pyg(**changed):
    return SimpleNamespace(**{"edge_index": np.array(pair), "num_nodes": 2} | changed)


REFUSALS = {
    "id too large": (lambda: Graph.from_edges([0], [5], nodes=3), "dst holds node 5", "0 to 2"),
    "id negative": (lambda: Graph.from_edges([-1], [0], nodes=3), "src holds node -1", "0 to 2"),
    "all negative": (lambda: Graph.from_edges([-1], [-2]), "src holds node -1", "ids from 0"),
    "huge id": (lambda: Graph.from_edges([2**40], [0], nodes=3), f"{2**40}", "0 to 2"),
    "too many nodes": (lambda: Graph.from_edges([0], [1], nodes=2**31), f"{2**31}", "at most"),
    "float ids": (lambda: Graph.from_edges([0.0], [1.5]), "src holds float64", "whole node ids"),
    "infinite ids": (lambda: Graph.from_edges([0], [np.inf]), "dst holds float64", "whole"),
    "boolean ids": (lambda: Graph.from_edges([True], [False]), "src holds bool", "whole"),
    "text ids": (lambda: Graph.from_edges(["a"], ["b"]), "src holds <U1", "whole node ids"),
    "csr id": (lambda: Graph.from_csr([0, 1], [1]), "indices holds node 1", "0 to 0"),
    "float csr id": (lambda: Graph.from_csr([0, 1], [0.0]), "indices holds float64", "whole"),
    "flat csr": (lambda: Graph.from_csr([0, 1], [[0]]), "indices has shape (1, 1)", "vector"),
    "lengths": (lambda: Graph.from_edges([0], [1, 2]), "(1,) and (2,)", "one length"),
    "edge_index": (lambda: Graph.from_edge_index([[0, 1]]), "shape (1, 2)", "(2, E)"),
    "nan weight": (lambda: Graph.from_edges(*pair, [1, np.nan]), "edge 1 has weight nan", ">= 0"),
    "negative weight": (lambda: Graph.from_edges(*pair, [-1, 1]), "weight -1.0", ">= 0"),
    "infinite weight": (lambda: Graph.from_edges(*pair, [1, np.inf]), "weight inf", "finite"),
    "large weight": (lambda: Graph.from_edges(*pair, [1, 1e300]), "weight inf", "finite"),
    "tiny weights": (lambda: Graph.from_edges(*pair, [1e-44] * 2, self_loops=False), "e-45", "sum"),
    "text weights": (lambda: Graph.from_edges(*pair, ["a", "b"]), "are <U1", "numbers"),
    "few weights": (lambda: Graph.from_edges(*pair, [1.0]), "shape (1,)", "each of the 2 edges"),
    "nan in scipy": (
        lambda: Graph.from_scipy(sp.csr_array([[0, np.nan], [1, 0]]), weighted=True),
        "weight nan",
        ">= 0",
    ),
    "indptr falls": (lambda: Graph.from_csr([0, 2, 1, 2], [0, 1]), "from 0 to 2", "falling"),
    "indptr starts": (lambda: Graph.from_csr([1, 2], [0, 0]), "from 1 to 2", "rise from 0"),
    "indptr ends": (lambda: Graph.from_csr([0, 1], [0, 0]), "from 0 to 1", "2 entries"),
    "indptr of floats": (lambda: Graph.from_csr([0.0, 1.0], [0]), "float64", "whole numbers"),
    "indptr a number": (lambda: Graph.from_csr(3, [0]), "of shape ()", "whole numbers"),
    "no edges": (lambda: Graph.from_edges([], []), "empty", "at least one node"),
    "no nodes": (lambda: Graph.from_edges([], [], nodes=0), "nodes is 0", ">= 1"),
    "half a node": (lambda: Graph.from_edges([0], [1], nodes=2.5), "nodes is 2.5", ">= 1"),
    "empty csr": (lambda: Graph.from_csr([0], []), "shape (1,)", "N >= 1"),
    "empty scipy": (lambda: Graph.from_scipy(sp.csr_array((0, 0))), "empty", "at least one node"),
    "not square": (lambda: Graph.from_scipy(sp.csr_array((2, 3))), "(2, 3)", "square"),
    "features": (lambda: Graph.from_edges(*pair, x=np.ones((3, 1))), "(3, 1)", "2 rows"),
    "sparse features": (
        lambda: Graph.from_edges(*pair, x=sp.csr_array((3, 4))),
        "x (features) has shape (3, 4)",
        "2 rows",
    ),
    "labels": (lambda: Graph.from_edges(*pair, y=[1]), "y (labels) has shape (1,)", "2 rows"),
    "split": (lambda: Graph.from_edges(*pair, split=[0, 1, 2]), "split has shape (3,)", "2 rows"),
    "a mask": (lambda: Graph.from_pyg(pyg(train_mask=[True])), "1 entries", "2 nodes"),
    "no number of nodes": (lambda: Graph.from_pyg(pyg(num_nodes=None)), "num_nodes", "set it to N"),
    "nodes true": (lambda: Graph.from_edges(*pair, nodes=True), "nodes is True", ">= 1"),
    "a list of lists": (lambda: Graph.from_scipy([[0, 1], [1, 0]]), "is a list", "scipy"),
    "a sparse tensor": (
        lambda: Graph.from_pyg(pyg(x=torch.eye(2).to_sparse())),
        "torch.sparse_coo",
        "to_dense()",
    ),
    "bfloat16": (lambda: Graph.from_pyg(pyg(x=torch.eye(2).bfloat16())), "bfloat16", "float()"),
    "rows of two lengths": (lambda: Graph.from_edges(*pair, x=[[1], [1, 2]]), "2 rows", "one len"),
    "parts of a table": (lambda: Graph.from_edges(*pair, split=[[0], [1]]), "(2, 1)", "2 rows"),
    "a fourth part": (
        lambda: Graph.from_edges(*pair, split=np.array([0, 7], np.int8)),
        "other than 0",
        "only",
    ),
    "a number as labels": (lambda: Graph.from_edges(*pair, y=1), "shape ()", "2 rows"),
    "normalization": (
        lambda: Graph.from_edges(*pair, normalization="mean"),
        "normalization is 'mean'",
        "one of sym, row",
    ),
    "subgraph outside": (
        lambda: Graph.from_edges(*pair).subgraph([0, 9]),
        "nodes holds node 9",
        "ids from 0 to",
    ),
    "subgraph twice": (
        lambda: Graph.from_edges(*pair).subgraph([1, 1]),
        "names a node twice",
        "distinct ids",
    ),
    "subgraph of a short mask": (
        lambda: Graph.from_edges(*pair).subgraph([True]),
        "nodes holds bool values",
        "node ids",
    ),
    "subgraph of nothing": (
        lambda: Graph.from_edges(*pair).subgraph([]),
        "the graph is empty",
        "one node",
    ),
    "not pyg": (lambda: Graph.from_pyg(3), "int has no edge_index", "PyG Data"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_with_one_sentence(case):
    """What came, ``expected`` and what was expected, in one line."""
    make, came, wanted = REFUSALS[case]
    with pytest.raises(SgcnError) as error:
        make()
    message = str(error.value)
    before, _, after = message.partition("expected")
    assert "\n" not in message
    assert came in before
    assert wanted in after


@given(st.integers(1, 5), st.integers(-3, 8), st.integers(-3, 8))
def test_ids_are_taken_or_refused(nodes, src, dst):
    sound = 0 <= src < nodes and 0 <= dst < nodes
    if sound:
        assert len(Graph.from_edges([src], [dst], nodes=nodes)) == nodes
    else:
        with pytest.raises(SgcnError, match="holds node"):
            Graph.from_edges([src], [dst], nodes=nodes)


def test_a_mask_is_no_split_and_a_column_of_classes_is_a_list():
    edges = {"src": [0, 1], "dst": [1, 2], "nodes": 3}
    with pytest.raises(SgcnError, match=r"split is a mask .*numpy.select\(\[train_mask"):
        Graph.from_edges(**edges, split=np.array([True, False, False]))
    column = Graph.from_edges(**edges, y=np.array([[0], [2], [1]]))
    assert column.y.tolist() == [0, 2, 1]
    for kind in (np.float32, np.int64):
        assert Graph.from_edges(**edges, y=np.ones((3, 1), kind)).y.shape == (3, 1)
