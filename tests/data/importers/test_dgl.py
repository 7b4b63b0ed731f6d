"""DGL's arrays: folders of .npy or .bin files, and the files of its Reddit."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
import small_graph as small
from small_graph import imported, refused, same_edges, same_rows


def csr():
    """Row i: the nodes that i reads from, as graph.adj_tensors("csc") gives it."""
    shape = (small.N, small.N)
    made = sp.coo_array((small.WEIGHTS, (small.DST, small.SRC)), shape=shape).tocsr()
    return made.indptr, made.indices


@pytest.fixture
def arrays(tmp_path):
    folder = tmp_path / "arrays"
    folder.mkdir()
    indptr, indices = csr()
    made = {"indptr": indptr, "indices": indices, "feat": small.X, "label": small.Y}
    for name, array in (made | small.MASKS).items():
        np.save(folder / f"{name}.npy", array)
    return folder


@pytest.fixture
def reddit(tmp_path):
    folder = tmp_path / "reddit"
    folder.mkdir()
    adjacency = sp.coo_array((np.ones(10), (small.SRC, small.DST)), shape=(small.N, small.N))
    sp.save_npz(folder / "reddit_graph.npz", adjacency)
    save_data(folder)
    return folder


def save_data(folder, **changes):
    made = {
        "feature": small.X, "label": small.Y, "node_types": small.SPLIT.astype(np.int64) + 1,
        "node_ids": np.arange(small.N),
    }  # fmt: skip
    made = {key: value for key, value in (made | changes).items() if value is not None}
    np.savez(folder / "reddit_data.npz", **made)


@pytest.mark.parametrize("directed", [False, True])
def test_a_folder_of_arrays(arrays, tmp_path, directed):
    graph = imported("dgl", arrays, tmp_path / "g", directed=directed)
    same_edges(graph, small.expected(directed=directed))
    same_rows(graph)


@pytest.mark.parametrize("wide", [True, False])
def test_bare_numbers(tmp_path, wide):
    folder = tmp_path / "bin"
    folder.mkdir()
    kind = "<i8" if wide else "<i4"
    indptr, indices = csr()
    for name, array in {
        "indptr": indptr.astype(kind), "indices": indices.astype("<i4"),
        "features": small.X.astype("<f4"), "labels": small.Y.astype(kind), **small.MASKS,
    }.items():  # fmt: skip
        array.tofile(folder / f"{name}.bin")
    graph = imported("dgl", folder, tmp_path / "g")
    same_edges(graph, small.expected())
    same_rows(graph)


@pytest.mark.parametrize("directed", [False, True])
def test_reddit(reddit, tmp_path, directed):
    graph = imported("dgl", reddit, tmp_path / "g", directed=directed)
    same_edges(graph, small.expected(directed=directed))
    same_rows(graph)
    (reddit / "reddit_graph.npz").rename(reddit / "reddit_self_loop_graph.npz")
    same_edges(imported("dgl", reddit, tmp_path / "h"), small.expected())


def test_only_edges(arrays, tmp_path):
    for path in arrays.iterdir():
        if path.stem not in ("indptr", "indices"):
            path.unlink()
    graph = imported("dgl", arrays, tmp_path / "g")
    same_edges(graph, small.expected())
    same_rows(graph, x=None, y=None, split=None)


# -- what is refused ----------------------------------------------------------------------------

BAD = {
    "no columns": ("indices", None, ("no indices.npy or indices.bin",)),
    "real columns": ("indices", np.zeros(9), ("float64", "whole")),
    "unknown node": ("indices", np.full(9, 8), ("column 8 in entry 0", "0 to 7")),
    "pointers": ("indptr", np.array([0, 3, 2, 9]), ("do not fit, expected 4 that rise from",)),
    "one pointer": ("indptr", np.array([0]), ("rise from 0",)),
    "short features": ("feat", np.zeros((2, 2)), ("2 rows", "expected 8")),
    "nan": ("feat", np.full((8, 1), np.nan), ("not finite in row 0",)),
    "class": ("label", np.full(8, -3), ("label -3 for node 0",)),
    "overlap": ("val_mask", small.MASKS["train_mask"], ("in train already",)),
    "empty part": ("test_mask", np.zeros(8, bool), ("no node",)),
    "missing part": ("test_mask", None, ("train_mask", "the nodes of test")),
    "short mask": ("test_mask", np.ones(3, bool), ("3 rows",)),
    "no mask": ("test_mask", np.arange(8), ("has value 2 in entry 2", "a mask of 0 and 1")),
    "pickled": ("feat", np.full((8, 1), None), ("object",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays(arrays, tmp_path, case):
    name, array, words = BAD[case]
    (arrays / f"{name}.npy").unlink()
    if array is not None:
        np.save(arrays / f"{name}.npy", array, allow_pickle=case == "pickled")
    refused("dgl", arrays, tmp_path, "arrays", *words)


@pytest.mark.parametrize("name", ["indptr", "feat", "label", "train_mask"])
@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-3]), ".npy"),
        (lambda path: path.write_bytes(small.HTML), "HTML page"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (lambda path: (path.unlink(), path.symlink_to("/etc/hostname")), "leads out of"),
    ],
    ids=["truncated", "page", "empty", "link"],
)
def test_bad_files(arrays, tmp_path, name, spoil, word):
    spoil(arrays / f"{name}.npy")
    refused("dgl", arrays, tmp_path, f"{name}.npy", word)


REDDIT = {
    "no features": ({"feature": None}, ("'feature'",)),
    "short features": ({"feature": np.zeros((3, 1))}, ("feature in", "3 rows")),
    "nan": ({"feature": np.full((8, 1), np.nan)}, ("feature in", "not finite in row 0")),
    "class": ({"label": np.full(8, -2)}, ("label in", "label -2 for node 0")),
    "short types": ({"node_types": np.ones(3, int)}, ("node_types in", "3 rows")),
    "empty part": ({"node_types": np.ones(8, int)}, ("node_types in", "no node")),
}


@pytest.mark.parametrize("case", REDDIT)
def test_bad_reddit(reddit, tmp_path, case):
    changes, words = REDDIT[case]
    save_data(reddit, **changes)
    refused("dgl", reddit, tmp_path, "reddit_data.npz", *words)


def test_reddit_without_its_data(reddit, tmp_path):
    os.unlink(reddit / "reddit_data.npz")
    refused("dgl", reddit, tmp_path, "reddit_data.npz does not exist")


def test_bad_bare_numbers(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    indptr, indices = csr()
    indptr.tofile(folder / "indptr.bin")
    indices[:-1].tofile(folder / "indices.bin")
    refused("dgl", folder, tmp_path, "indptr.bin and indices.bin do not fit")
    for name, content, words in (
        ("feat", b"12345", ("feat.bin has 5 bytes", "multiple of 32")),
        ("label", b"123", ("label.bin has 3 bytes", "32 or 64")),
        ("train_mask", b"\2" * 8, ("train_mask.bin has value 2", "0 and 1")),
    ):
        indices.tofile(folder / "indices.bin")
        (folder / f"{name}.bin").write_bytes(content)
        (tmp_path / "made").rmdir()
        refused("dgl", folder, tmp_path, *words)
        (folder / f"{name}.bin").unlink()
    np.save(folder / "indptr.npy", indptr)
    (tmp_path / "made").rmdir()
    refused("dgl", folder, tmp_path, "mixes .npy and .bin")


def test_what_save_graphs_wrote_is_explained(tmp_path):
    (tmp_path / "graph.bin").write_bytes(b"\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd" * 4)
    refused("dgl", tmp_path / "graph.bin", tmp_path, "graph.bin is a file", "dgl.save_graphs")
    (tmp_path / "made").rmdir()
    refused("dgl", tmp_path / "nothing", tmp_path, "nothing is not a folder")
