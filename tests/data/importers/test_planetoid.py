"""Planetoid's layout, array by array, and pickles that are read but never run."""

from __future__ import annotations

import collections
import os
import pickle
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from checks import assert_holds, brought, refused
from writers import FORMATS, planetoid_truth, python2, write_planetoid_as, write_python2

from sgcn import SgcnError
from sgcn.data.readers.pickles import Csr, array_of, read_lists, read_pickle

OPTIONS = {"validation": 10}


def test_everything_arrives(tmp_path):
    truth = planetoid_truth()
    test = write_planetoid_as(tmp_path, truth)
    assert test != sorted(test)  # the order of the test index matters
    graph = brought("planetoid", tmp_path, tmp_path / "out", **OPTIONS)
    assert_holds(graph, truth)
    assert sp.issparse(graph.x)
    assert graph.x.has_sorted_indices
    assert graph.y[37] == graph.split[37] == -1  # like Citeseer's isolated nodes
    assert graph.x[[37]].nnz == 0


def test_parts_do_not_show(tmp_path, monkeypatch):
    """Sparse, dense or one of each, out of order and with entries twice, 7 entries at a time."""
    monkeypatch.setattr("sgcn.chunks.CHUNK", 7)
    truth = planetoid_truth()
    test = write_planetoid_as(tmp_path, truth)
    allx = sp.csr_matrix(truth.x[: min(test)].astype(np.float32))
    backwards = np.repeat(allx.indptr[1:] + allx.indptr[:-1] - 1, np.diff(allx.indptr))
    order = np.repeat(backwards - np.arange(allx.nnz), 2)  # every row from its end, entries twice
    halves = (allx.data[order] / 2, allx.indices[order], allx.indptr * 2)
    write_python2(tmp_path / "ind.toy.allx", sp.csr_matrix(halves, allx.shape))
    graph = brought("planetoid", tmp_path, tmp_path / "sparse", **OPTIONS)
    assert_holds(graph, truth)
    assert graph.x.has_canonical_format
    write_python2(tmp_path / "ind.toy.tx", np.asfortranarray(truth.x[test]))
    assert_holds(brought("planetoid", tmp_path, tmp_path / "mixed", **OPTIONS), truth)


def test_one_list_may_be_of_several_nodes(tmp_path):
    write_planetoid_as(tmp_path, planetoid_truth())
    shared = [5, 6]
    (tmp_path / "ind.toy.graph").write_bytes(pickle.dumps({1: shared, 2: [7], 3: shared}))
    graph = brought("planetoid", tmp_path, tmp_path / "out", **OPTIONS)
    rows = {k: graph.indices[graph.indptr[k] : graph.indptr[k + 1]].tolist() for k in (1, 2, 3, 5)}
    assert rows == {1: [5, 6], 2: [7], 3: [5, 6], 5: [1, 3]}


def test_dense_features_stay_dense(tmp_path):
    truth = planetoid_truth()
    test = write_planetoid_as(tmp_path, truth)
    for part, rows in {"x": truth.ids(0), "allx": range(min(test)), "tx": test}.items():
        write_python2(tmp_path / f"ind.toy.{part}", truth.x[list(rows)])
    graph = brought("planetoid", tmp_path, tmp_path / "out", **OPTIONS)
    assert_holds(graph, truth)
    assert not sp.issparse(graph.x)


def test_the_public_split(tmp_path):
    """500 nodes after the training ones validate, unless another number is asked for."""
    write_planetoid_as(tmp_path, planetoid_truth())
    message = refused(FORMATS["planetoid"], tmp_path, tmp_path / "new" / "out", validation=500)
    assert "ind.toy.allx has 28 rows, expected 8 to train and 500 to validate" in message
    graph = brought("planetoid", tmp_path, tmp_path / "out", validation=3)
    assert np.flatnonzero(graph.split == 1).tolist() == [8, 9, 10]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_any_age(tmp_path, protocol):
    """What this Python writes, in each of its protocols, is read as what it was."""
    matrix = sp.csr_matrix(np.array([[0, 1.5, 0], [2.5, 0, 0]], np.float32))
    arrays = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.eye(3, dtype=">i4")),
              np.array([True, False]), np.zeros((0, 3), np.int16)]  # fmt: skip
    graph = collections.defaultdict(list, {0: [1, 2], np.int64(1): [0], 300: [], 70000: [-1]})
    path = tmp_path / "file"
    for value in (*arrays, np.array(arrays[0])[:, ::2]):
        path.write_bytes(pickle.dumps(value, protocol))
        read = array_of(read_pickle(path, "an array"))
        np.testing.assert_array_equal(read, value)
        assert read.dtype == value.dtype
    path.write_bytes(pickle.dumps(graph, protocol))
    lists = read_lists(path, "a graph", tmp_path / "spool")
    spans = zip(lists.nodes.tolist(), lists.starts, lists.lengths, strict=True)
    assert {node: lists.values[a : a + m].tolist() for node, a, m in spans} == graph
    assert not (tmp_path / "spool").exists()
    for value in (matrix, sp.csr_array(matrix)):
        path.write_bytes(pickle.dumps(value, protocol))
        read = read_pickle(path, "a matrix")
        assert isinstance(read, Csr)
        assert tuple(read.state["_shape"]) == (2, 3)
        for key in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(array_of(read.state[key]), getattr(matrix, key))


def test_protocol_0_of_python_2(tmp_path):
    """Text instructions; bytes are escaped in quotes."""
    content = np.array([1.5, -2.0, 1e300]).tobytes()
    escaped = b"".join(b"\\x%02x" % byte for byte in content)
    state = b"(I1\n(I3\ntcnumpy\ndtype\n(S'f8'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntbI00\n"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
    array = made + state + b"S'" + escaped + b"'\ntb"
    matrix = b"ccopy_reg\n_reconstructor\n(cscipy.sparse.csr\ncsr_matrix\nc__builtin__\nobject\nNtR"
    (tmp_path / "file").write_bytes(matrix + b"(dS'data'\n" + array + b"sb.")
    read = read_pickle(tmp_path / "file", "a matrix")
    np.testing.assert_array_equal(array_of(read.state["data"]), [1.5, -2.0, 1e300])


# -- what must not run --------------------------------------------------------------------------


class Evil:
    """Pickles to a call."""

    def __init__(self, function, *arguments) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def object_array() -> np.ndarray:
    array = np.empty(1, np.object_)
    array[0] = Evil(os.mkdir, "made-by-a-pickle")
    return array


def chain() -> bytes:
    """getattr(__import__('os'), 'mkdir')('made-by-a-pickle'), in protocol 0."""
    parts = b"cbuiltins\ngetattr\n(cbuiltins\n__import__\n(S'os'\ntRS'mkdir'\ntR"
    return parts + b"(S'made-by-a-pickle'\ntR."


EVIL = {
    "mkdir": pickle.dumps(Evil(os.mkdir, "made-by-a-pickle")),
    "system": b"cos\nsystem\n(S'touch made-by-a-pickle'\ntR.",
    "eval": pickle.dumps(Evil(eval, "__import__('os').mkdir('made-by-a-pickle')"), 0),
    "eval of Python 2": b"c__builtin__\neval\n(S'1'\ntR.",
    "a chain of getattr": chain(),
    "objects in an array": pickle.dumps(object_array(), 2),
    "objects in an array, 5": pickle.dumps(object_array(), 5),
    "numpy.load": b"cnumpy\nload\n(S'x.npy'\ntR.",
    "numpy.fromfile": pickle.dumps(Evil(np.fromfile, "/etc/hostname"), 4),
    "numpy.core": b"cnumpy.core.multiarray\nfromfile\n(S'x'\ntR.",
    "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.tofile\x93.",
    "other matrix": pickle.dumps(sp.coo_matrix(np.eye(2))),
    "codecs": b"c_codecs\ndecode\n(S'x'\nS'zip'\ntR.",
    "encode to other": b"c_codecs\nencode\n(Vx\nVrot13\ntR.",
    "instance": b"(ios\nsystem\nS'x'\n.",
    "object": b"(cos\nsystem\nS'touch made-by-a-pickle'\no.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent": b"Pwhatever\n.",
    "newobj": b"cos\nsystem\n)\x81.",
    "newobj of a known name": b"c__builtin__\nlist\n)\x81.",
    "call of a value": b"(I1\ntI1\n\x85R.",
    "build on a name": b"cnumpy\nndarray\n}b.",
    "build on a list": b"](dS'append'\nI1\nsb.",
    "bytes of a size": b"c__builtin__\nbytes\n(I1000000000000\ntR.",
    "a matrix of a value": b"cscipy.sparse.csr\ncsr_matrix\n(I5\ntR.",
    "a state that is no dict": b"cscipy.sparse.csr\ncsr_matrix\n)\x81I5\nb.",
    "bare name": b"cnumpy\nndarray\n.",
    "half an array": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR.",
    "dtype of objects": b"cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR.",
    "dtype with fields": b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR.",
    "dtype with a field list": b"cnumpy\ndtype\n((S'a'\nlttR.",
    "append to a number": b"I1\nI2\na.",
    "odd key": b"}(](I1\net.",
    "a list as a key": b"}(]I1\nu.",
    "an earlier list": b"}(I0\n]q\x00I1\n]q\x01uI2\nh\x00I5\nas.",
    "a memo with gaps": b"}I1\nr\x05\x00\x00\x00h\x03s.",
}  # fmt: skip


@pytest.mark.parametrize("case", EVIL)
@pytest.mark.parametrize("part", ["graph", "allx", "ty"])
def test_a_pickle_is_not_run(tmp_path, monkeypatch, case, part):
    monkeypatch.chdir(tmp_path)
    write_planetoid_as(tmp_path, planetoid_truth())
    (tmp_path / f"ind.toy.{part}").write_bytes(EVIL[case])
    message = refused(FORMATS["planetoid"], tmp_path, tmp_path / "new" / "out")
    assert f"ind.toy.{part}" in message
    assert not (tmp_path / "made-by-a-pickle").exists()


@pytest.mark.parametrize("case", ["mkdir", "system", "eval", "a chain of getattr", "numpy.load"])
def test_the_refusal_names_what_the_pickle_wants(tmp_path, case):
    (tmp_path / "file").write_bytes(EVIL[case])
    with pytest.raises(SgcnError, match=r"names \w+\.\w+, expected an array: pickles can run"):
        read_pickle(tmp_path / "file", "an array")


@pytest.mark.parametrize("items", [b"S'1'\n", b"]", b"G" + struct.pack(">d", 1), b"\x88", b"N"])
@pytest.mark.parametrize("close", [b"l", b"e"])
def test_a_list_is_of_whole_numbers(tmp_path, items, close):
    """Lists are of neighbours only; nothing else needs to be held as objects."""
    start = b"\x80\x02]" if close == b"e" else b"\x80\x02"
    (tmp_path / "file").write_bytes(start + b"(I1\n" + items + close + b".")
    with pytest.raises(SgcnError, match=r"expected a graph \(a list holds other things"):
        read_pickle(tmp_path / "file", "a graph")


def test_a_neighbour_beyond_all_nodes(tmp_path):
    write_planetoid_as(tmp_path, planetoid_truth())
    for node, words in ((2**31, "cannot be read"), (2**31 - 1, "has node 2147483647"),
                        (-1, "has node -1")):  # fmt: skip
        (tmp_path / "ind.toy.graph").write_bytes(pickle.dumps({0: [1], 1: [0, node]}))
        assert words in refused(FORMATS["planetoid"], tmp_path, tmp_path / "new" / "out")


LARGE = {
    "a shape": python2(np.zeros(2)).replace(python2((2,)), python2((2_000_000_000,))),
    "a memo": b"I1\nr\xff\xff\xff\xff" + b"0]",
    "bytes": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40),
    "a bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40),
    "text": b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62),
    "a frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"K\x01",
    "a number": b"I" + b"9" * 10000 + b"\n",
    "a long": b"\x80\x02\x8b\xff\xff\xff\x7f",
    "nesting": b"(" * 100_000,
    "lists": b"]" * 100_000 + b"a" * 99_999,
}


@pytest.mark.parametrize("case", LARGE)
def test_a_pickle_cannot_ask_for_memory(tmp_path, case):
    write_planetoid_as(tmp_path, planetoid_truth())
    (tmp_path / "ind.toy.allx").write_bytes(LARGE[case] + b".")
    assert "ind.toy.allx" in refused(FORMATS["planetoid"], tmp_path, tmp_path / "new" / "out")


def test_one_list_for_many_nodes_is_not_unfolded(tmp_path):
    write_planetoid_as(tmp_path, planetoid_truth())
    neighbours = [0] * 50_000
    graph = pickle.dumps(dict.fromkeys(range(50_000), neighbours))  # 2.5e9 edges in 0.4 MB
    (tmp_path / "ind.toy.graph").write_bytes(graph)
    message = refused(FORMATS["planetoid"], tmp_path, tmp_path / "new" / "out")
    assert "2500000000 edges, more than its bytes" in message


def test_a_matrix_that_lies_about_itself(tmp_path):
    """Columns outside of the matrix would be read out of bounds by compiled code."""
    write_planetoid_as(tmp_path, planetoid_truth())
    good = sp.csr_matrix(np.eye(28, 5, dtype=np.float32))
    for attribute, place, value in (("indices", 0, 5), ("indices", 0, -1), ("indptr", 3, 99),
                                    ("indptr", 28, 4), ("indptr", 0, 1)):  # fmt: skip
        bad = good.copy()
        getattr(bad, attribute)[place] = value
        write_python2(tmp_path / "ind.toy.allx", bad)
        message = refused(FORMATS["planetoid"], tmp_path, tmp_path / "new" / "out")
        assert "ind.toy.allx holds something else or nothing, expected a pickle of a" in message


@pytest.mark.filterwarnings("ignore")
def test_another_reader_sees_the_same(tmp_path):
    """PyG's own reader of these files, which runs the pickles."""
    io = pytest.importorskip("torch_geometric.io")
    truth = planetoid_truth(700)
    truth.split[8:508] = 1  # the 500 of the public split
    write_planetoid_as(tmp_path, truth)
    for path in tmp_path.glob("ind.toy.*"):  # by this name it looks for missing test nodes
        path.rename(tmp_path / path.name.replace("toy", "citeseer"))
    graph = brought("planetoid", tmp_path, tmp_path / "out")
    data = io.read_planetoid_data(str(tmp_path), "citeseer")
    np.testing.assert_allclose(graph.x.toarray(), data.x.numpy(), rtol=1e-6)
    known = graph.split >= 0
    np.testing.assert_array_equal(graph.y[known], data.y.numpy()[known])
    for part, mask in enumerate((data.train_mask, data.val_mask, data.test_mask)):
        np.testing.assert_array_equal(graph.split == part, mask.numpy())
    rows = np.repeat(np.arange(len(graph)), graph.degrees)
    theirs = {tuple(pair) for pair in data.edge_index.numpy().T.tolist()}
    assert set(zip(rows.tolist(), graph.indices.tolist(), strict=True)) == theirs
