"""Matrices of scipy.sparse.save_npz, and the files beside them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
import small_graph as small
from small_graph import imported, refused, same_edges, same_rows

from sgcn import Graph


def matrix(layout="csr"):
    """Entry (i, j): i reads from j."""
    shape = (small.N, small.N)
    made = sp.coo_array((small.WEIGHTS, (small.DST, small.SRC)), shape=shape)
    return made if layout == "coo" else made.asformat(layout)


@pytest.fixture
def source(tmp_path):
    sp.save_npz(tmp_path / "a.npz", matrix())
    return tmp_path / "a.npz"


@pytest.mark.parametrize("kind", [sp.coo_array, sp.coo_matrix])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("options", [{}, {"directed": True}, {"directed": True, "weighted": True}])
def test_layouts(tmp_path, layout, kind, options):
    sp.save_npz(tmp_path / "a.npz", kind(matrix("coo")).asformat(layout))
    same_edges(imported("scipy", tmp_path / "a.npz", tmp_path / "g", **options),
               small.expected(**options))  # fmt: skip
    sp.save_npz(tmp_path / "b.npz", kind(matrix("coo")).T.asformat(layout))
    turned = imported("scipy", tmp_path / "b.npz", tmp_path / "h", transpose=True, **options)
    same_edges(turned, small.expected(**options))


def test_it_is_what_from_scipy_makes(source, tmp_path):
    graph = imported("scipy", source, tmp_path / "g", weighted=True)
    same_edges(graph, Graph.from_scipy(matrix(), weighted=True))


def test_files_beside(source, tmp_path):
    np.save(tmp_path / "x.npy", small.X.astype(np.float64))
    np.save(tmp_path / "y.npy", small.Y)
    np.save(tmp_path / "s.npy", small.SPLIT.astype(np.int64))
    beside = {"features": "x.npy", "labels": "y.npy", "split": "s.npy"}
    options = {key: str(tmp_path / name) for key, name in beside.items()}
    graph = imported("scipy", source, tmp_path / "g", **options)
    same_edges(graph, small.expected())
    same_rows(graph)


def test_sparse_features_and_sets(source, tmp_path):
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(small.X))
    np.save(tmp_path / "y.npy", small.SETS.astype(np.float32))
    options = {"features": str(tmp_path / "x.npz"), "labels": str(tmp_path / "y.npy")}
    graph = imported("scipy", source, tmp_path / "g", **options)
    assert sp.issparse(graph.x)
    assert graph.x.dtype == np.float32
    np.testing.assert_array_equal(graph.x.toarray(), small.X)
    np.testing.assert_array_equal(graph.y, small.SETS)
    assert graph.y.dtype == np.uint8


@pytest.mark.parametrize("way", ["ids.npz", "masks.npz", "ids.json", "table.csv"])
def test_ways_to_give_a_split(source, tmp_path, way):
    path = tmp_path / way
    ids = {
        word: np.flatnonzero(part == small.SPLIT)
        for part, word in enumerate(("train", "valid", "test"))
    }
    if way == "ids.npz":
        np.savez(path, **ids)
    elif way == "masks.npz":
        np.savez(path, **{key.removesuffix("_mask"): mask for key, mask in small.MASKS.items()})
    elif way == "ids.json":
        path.write_text(json.dumps({key: chosen.tolist() for key, chosen in ids.items()}))
    else:
        words = ["train", "valid", "Test", "none"]
        path.write_text("part\n" + "\n".join(words[part] for part in small.SPLIT) + "\n")
    graph = imported("scipy", source, tmp_path / "g", split=str(path))
    same_rows(graph, x=None, y=None)


# -- what is refused ----------------------------------------------------------------------------


def arrays(**changes):
    csr = matrix()
    made = {
        "indptr": csr.indptr, "indices": csr.indices, "format": np.array(b"csr"),
        "shape": np.array(csr.shape), "data": csr.data,
    }  # fmt: skip
    return {key: value for key, value in (made | changes).items() if value is not None}


BAD = {
    "other layout": ({"format": np.array(b"dia")}, ("'dia'", "csr, csc or coo")),
    "no layout": ({"format": None}, ("'none'",)),
    "long layout": ({"format": np.array("csr" + "x" * 5000)}, ("'none'",)),
    "not square": ({"shape": np.array([8, 9])}, ("(8, 9)", "square")),
    "no columns": ({"indices": None}, ("'indices'",)),
    "real columns": ({"indices": np.zeros(9)}, ("float64", "whole numbers")),
    "unknown node": ({"indices": np.full(9, 8)}, ("8 in entry 0", "0 to 7")),
    "falling pointers": ({"indptr": np.array([0, 9, 1, 2, 3, 4, 5, 6, 9])}, ("do not fit",)),
    "few pointers": ({"indptr": np.array([0, 9])}, ("do not fit",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_matrices(tmp_path, case):
    changes, words = BAD[case]
    np.savez(tmp_path / "a.npz", **arrays(**changes))
    refused("scipy", tmp_path / "a.npz", tmp_path, "a.npz", *words)


def test_bad_coordinates_and_values(tmp_path):
    coo = {"format": np.array(b"coo"), "indptr": None, "indices": None}
    rows = {"row": np.array([0, 1]), "col": np.array([1, 9])}
    np.savez(tmp_path / "a.npz", **arrays(**coo, **rows))
    refused("scipy", tmp_path / "a.npz", tmp_path, "a.npz", "node 9 in edge 1")
    (tmp_path / "made").rmdir()
    np.savez(tmp_path / "a.npz", **arrays(**coo, row=np.array([0]), col=np.array([1, 2])))
    refused("scipy", tmp_path / "a.npz", tmp_path, "a.npz", "1 rows and 2 columns")
    (tmp_path / "made").rmdir()
    np.savez(tmp_path / "a.npz", **arrays(data=np.ones(3)))
    refused("scipy", tmp_path / "a.npz", tmp_path, "a.npz", "3 values", weighted=True)


BESIDE = {
    "short features": ("features", np.zeros((3, 2)), ("3 rows", "expected 8")),
    "flat features": ("features", np.zeros(8), ("2 dimensions",)),
    "text features": ("features", np.full((8, 1), "a"), ("<U1",)),
    "nan": ("features", np.where(np.arange(16) == 7, np.nan, 1.0).reshape(8, 2), ("in row 3",)),
    "pickled": ("features", np.full((8, 1), None), ("object",)),
    "class too low": ("labels", np.full(8, -2), ("label -2 for node 0",)),
    "set": ("labels", np.full((8, 2), 3), ("label 3 for node 0", "0 or 1")),
    "cube": ("labels", np.zeros((8, 2, 2)), ("(8, 2, 2)",)),
    "unknown part": ("split", np.full(8, 3), ("part 3",)),
    "short split": ("split", np.zeros(3, int), ("3 rows",)),
    "empty part": ("split", np.zeros(8, int), ("validation in", "no node")),
    "real split": ("split", np.zeros(8), ("float64",)),
}


@pytest.mark.parametrize("case", BESIDE)
def test_bad_files_beside(source, tmp_path, case):
    key, array, words = BESIDE[case]
    np.save(tmp_path / "b.npy", array, allow_pickle=case == "pickled")
    refused("scipy", source, tmp_path, "b.npy", *words, **{key: str(tmp_path / "b.npy")})


SPLITS = {
    "overlap": ({"train": [0, 1], "val": [1], "test": [2]}, ("val", "node 1", "in train already")),
    "unknown node": ({"train": [0], "val": [8], "test": [2]}, ("val", "node 8", "0 to 7")),
    "empty": ({"train": [0], "val": [], "test": [2]}, ("val", "no node")),
    "missing": ({"train": [0], "val": [1]}, ("train", "the nodes of test")),
    "none": ({"a": [1]}, ("none of train, val and test",)),
    "words": ({"train": ["a"], "val": [1], "test": [2]}, ("train", "expected node ids")),
}


@pytest.mark.parametrize("case", SPLITS)
def test_bad_splits(source, tmp_path, case):
    parts, words = SPLITS[case]
    (tmp_path / "s.json").write_text(json.dumps(parts))
    refused("scipy", source, tmp_path, "s.json", *words, split=str(tmp_path / "s.json"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"shape": np.array([3, 3])}, "3 rows"),
        ({"indices": np.full(24, 9)}, "column 9 in entry 0, expected ids from 0 to 2"),
        ({"indptr": np.arange(9)}, "row pointers that do not fit"),
        ({"data": np.full(24, np.inf)}, "not finite"),
        ({"data": None}, "'data'"),
    ],
)
def test_bad_sparse_features(source, tmp_path, change, word):
    csr = sp.csr_array(small.X + 1)
    made = {"indptr": csr.indptr, "indices": csr.indices, "data": csr.data, "shape": csr.shape}
    made = {key: value for key, value in (made | change).items() if value is not None}
    np.savez(tmp_path / "x.npz", **made)
    refused("scipy", source, tmp_path, "x.npz", word, features=str(tmp_path / "x.npz"))


def test_bad_containers(tmp_path, source):
    path = tmp_path / "b.npz"
    refused("scipy", path, tmp_path, "b.npz does not exist")
    for content, word in (
        (b"", "is empty"), (small.HTML, "HTML page"), (source.read_bytes()[:-40], "cannot be read"),
        (b"nonsense", "cannot be read"),
    ):  # fmt: skip
        path.write_bytes(content)
        (tmp_path / "made").rmdir()
        refused("scipy", path, tmp_path, "b.npz", word)
    (tmp_path / "made").rmdir()
    small.bomb(path, "indices.npy")
    refused("scipy", path, tmp_path, "b.npz", "unpacks to", limit_gb=0.001)
