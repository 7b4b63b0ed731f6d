"""Every check of `verify` fails on a graph with just that fault, and none on sound ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from learning import labelled
from sgcn import Graph, SgcnError
from sgcn.data.verify import CHECKS, verify, verify_graph


def changed(graph: Graph, **arrays) -> Graph:
    """The graph with other arrays, which nobody checked."""
    made = Graph(
        graph.indptr, graph.indices, graph.values, directed=graph.directed,
        normalization=graph.normalization, self_loops=graph.self_loops,
        x=graph.x, y=graph.y, split=graph.split, scaling=(graph.row, graph.col),
    )  # fmt: skip
    for name, array in arrays.items():
        setattr(made, name, array)
    return made


def put(array, at, value):
    """A copy with one entry changed."""
    copy = np.array(array)
    copy[at] = value
    return copy


@pytest.mark.parametrize("options", [{}, {"normalization": "row", "self_loops": False}])
def test_sound_graphs_pass(graph, options, tmp_path):
    made = Graph.from_csr(
        graph.indptr, graph.indices, graph.values, directed=graph.directed,
        x=np.ones((len(graph), 2)), y=np.zeros(len(graph), int), split=np.zeros(len(graph)),
        **options,
    )  # fmt: skip
    made.save(tmp_path / "g")
    assert list(verify(str(tmp_path / "g"))) == ["checksums", *CHECKS]


@pytest.mark.parametrize(
    "options", [{"x": None, "y": None, "split": None}, {"multi_label": True},
                {"x": sp.csr_array(np.eye(60))}, {"x": np.ones((60, 2), np.float16)},
                {"y": put(np.linspace(0, 1, 60), 3, np.nan)}]
)  # fmt: skip
def test_sound_rows_pass(options):
    assert list(verify_graph(labelled(**options))) == list(CHECKS)


def test_generated_graphs_pass():
    assert list(verify("ppi-like")) == ["readable", *CHECKS]


@pytest.mark.parametrize(
    ("check", "fault", "message"),
    [
        ("row pointers rise", lambda g: {"indptr": put(g.indptr, 3, g.edges + 1)},
         "row pointers fall after node 3"),
        ("ids in range", lambda g: {"indices": put(g.indices, 5, 60)}, "name node 60, expected"),
        ("ids in range", lambda g: {"indices": put(g.indices, 5, -1)}, "name node -1, expected"),
        ("rows sorted, no edge twice", lambda g: {"indices": put(g.indices, 1, g.indices[0])},
         "not sorted or has one twice"),
        ("no self-loop counted twice",
         lambda g: {"indptr": put(g.indptr, slice(1, None), g.indptr[1:] + 1),
                    "indices": np.append(np.int32(0), g.indices)},
         "1 self-loops are stored, expected none"),
        ("edge weights", lambda g: {"values": put(np.ones(g.edges, np.float32), 4, np.nan)},
         "stored edge 4 has weight nan"),
        ("undirected edges both ways",
         lambda g: {"indptr": put(g.indptr, slice(1, None), g.indptr[1:] - 1),
                    "indices": g.indices[1:]},
         "stored in one direction alone"),
        ("undirected edges both ways",
         lambda g: {"values": put(np.ones(g.edges, np.float32), 4, 2)}, "two different weights"),
        ("scaling agrees with degrees", lambda g: {"row": put(g.row, 7, g.row[7] * 1.01)},
         "row scales node 7 by"),
        ("scaling agrees with degrees", lambda g: {"col": put(g.col, 8, np.nan)},
         "col scales node 8 by nan"),
        ("features finite", lambda g: {"x": put(g.x, (9, 2), np.inf)}, "node 9 has a feature"),
        ("features finite", lambda g: {"x": sp.csr_array(put(g.x, (9, 2), np.nan))},
         "node 9 has a feature"),
        ("labels in range", lambda g: {"y": put(g.y, 11, -2)}, "node 11 has class -2"),
        ("labels in range", lambda g: {"y": g.y.astype(str)}, "labels are <U21"),
        ("labels in range", lambda g: {"y": put(g.y + 0.5, 14, np.inf)}, "node 14 has an infinite"),
        ("labels in range", lambda g: {"y": put(np.zeros((60, 3), int), (12, 1), 2)},
         "node 12 has a label other than 0 and 1"),
        ("split in range", lambda g: {"split": put(g.split, 13, 3)}, "node 13 has split 3"),
    ],
)  # fmt: skip
def test_each_fault_is_found_by_its_check(check, fault, message):
    graph = labelled()
    faulty = changed(graph, **fault(graph))
    passed = []
    with pytest.raises(SgcnError, match=message) as error:
        passed.extend(verify_graph(faulty))
    assert str(error.value).endswith(": make the graph again")
    assert passed == list(CHECKS)[: list(CHECKS).index(check)]


def test_sparse_features_that_do_not_fit():
    graph = labelled(x=sp.csr_array(np.eye(60)))
    graph.x.indices[3] = 99
    with pytest.raises(SgcnError, match="features are no CSR matrix"):
        list(verify_graph(graph))


def test_files_are_read_as_they_stand(tmp_path):
    """A saved P is checked, not made again."""
    graph = labelled(normalization="row")
    changed(graph, row=put(graph.row, 3, 0.3)).save(tmp_path / "g")
    with pytest.raises(SgcnError, match=r"row scales node 3 by 0\.3"):
        list(verify(str(tmp_path / "g")))


def test_checksums(tmp_path):
    labelled().save(tmp_path / "g")
    header = json.loads((tmp_path / "g" / "header.json").read_text())
    header["arrays"]["y"]["crc32"] ^= 1
    (tmp_path / "g" / "header.json").write_text(json.dumps(header))
    with pytest.raises(SgcnError, match=r"y\.npy does not have the checksum"):
        list(verify(str(tmp_path / "g")))
