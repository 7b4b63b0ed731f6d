"""Graphs on disk: what goes in comes out, mapped and not copied; what is broken is refused."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import digest, zoo_graph
from sgcn import Graph, Key, SgcnError, make_sampler, store

ARRAYS = ("indptr", "indices", "values", "row", "col")


@pytest.fixture
def saved(tmp_path):
    """A directory with a graph that has everything."""
    graph = zoo_graph(
        "weighted",
        x=np.arange(120, dtype=np.float32).reshape(60, 2),
        y=np.arange(60),
        split=np.arange(60) % 3,
    )
    graph.save(tmp_path / "graph")
    return tmp_path / "graph"


def edit_header(path, **changes) -> None:
    header = json.loads((path / "header.json").read_text())
    (path / "header.json").write_text(json.dumps(header | changes))


# -- round trip ---------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["none", "dense", "sparse", "fortran"])
@pytest.mark.parametrize("options", [{}, {"normalization": "row", "self_loops": False}])
def test_round_trip(graph, features, options, tmp_path):
    n = len(graph)
    x = {
        "none": None,
        "dense": np.arange(3 * n, dtype=np.float32).reshape(n, 3),
        "fortran": np.asfortranarray(np.arange(3 * n, dtype=np.float64).reshape(n, 3)),
        "sparse": sp.random_array((n, 7), density=0.3, format="csr", rng=0),
    }[features]
    y, split = np.arange(n), (np.arange(n) % 3).astype(np.int8)
    made = Graph.from_csr(
        graph.indptr,
        graph.indices,
        graph.values,
        directed=graph.directed,
        x=x,
        y=None if features == "none" else y,
        split=None if features == "none" else split,
        **options,
    )
    made.save(tmp_path / "deep" / "graph")
    back = Graph.open(tmp_path / "deep" / "graph", verify=True)
    assert repr(back) == repr(made)
    for name in (*ARRAYS, "y", "split"):
        got, wanted = getattr(back, name), getattr(made, name)
        assert (got is None) == (wanted is None)
        if got is not None:
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
    if features == "sparse":
        assert back.x.dtype == x.dtype
        assert (back.x != x).nnz == 0
    elif x is not None:
        assert back.x.dtype == x.dtype
        np.testing.assert_array_equal(back.x, x)

    sampler = make_sampler("ladies", sizes=3)
    assert digest(sampler.sample(back, [0], Key(0))) == digest(sampler.sample(made, [0], Key(0)))


def test_a_saved_graph_is_files_and_a_header(saved):
    header = json.loads((saved / "header.json").read_text())
    assert (header["format"], header["version"], header["nodes"]) == ("sgcn-graph", 1, 60)
    assert {f"{name}.npy" for name in header["arrays"]} | {"header.json"} == set(os.listdir(saved))
    for name, entry in header["arrays"].items():
        array = np.load(saved / f"{name}.npy")
        assert (str(array.dtype), list(array.shape)) == (entry["dtype"], entry["shape"])


# -- opening is a map ---------------------------------------------------------------------------


def test_open_maps_and_does_not_copy(saved):
    graph = Graph.open(saved)
    for name in (*ARRAYS, "x", "y", "split"):
        mapped = getattr(graph, name).base
        assert isinstance(mapped, np.memmap), name
        assert mapped.mode == "c", name  # copy-on-write: the file cannot be changed through it
    before = (saved / "row.npy").read_bytes()
    graph.row[:] = 0
    assert (saved / "row.npy").read_bytes() == before
    assert Graph.open(saved, verify=True).row.min() > 0


@pytest.mark.parametrize("sparse", [False, True])
def test_open_takes_no_memory(tmp_path, sparse):
    """Opening 16 MB allocates less than 200 kB."""
    n = 1000
    x = sp.csr_array(np.ones((n, 1000))) if sparse else np.ones((n, 2000))
    Graph.from_edges(np.arange(n - 1), np.arange(1, n), x=x).save(tmp_path / "g")
    Graph.open(tmp_path / "g")
    tracemalloc.start()
    graph = Graph.open(tmp_path / "g")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert graph.x.shape[0] == n
    assert peak < 200_000


# -- refusals -----------------------------------------------------------------------------------


def truncate(path, name="indices.npy", keep=0.5) -> None:
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[: int(len(data) * keep)])


def replace(path, name, array) -> None:
    np.save(path / f"{name}.npy", array)


def break_header(path) -> None:
    (path / "header.json").write_text('{"format": "sgcn-')


BROKEN = {
    "half a file": (truncate, "indices.npy", "truncated"),
    "no data": (lambda p: truncate(p, "row.npy", 0.0), "row.npy", "truncated"),
    "half a header of an array": (lambda p: truncate(p, "col.npy", 0.05), "col.npy", "truncated"),
    "file missing": (lambda p: (p / "indptr.npy").unlink(), "indptr.npy", "truncated"),
    "feature file missing": (lambda p: (p / "x.npy").unlink(), "x.npy", "truncated"),
    "header missing": (lambda p: (p / "header.json").unlink(), "header.json", "Graph.save"),
    "half a header": (break_header, "header.json", "Graph.save"),
    "header a list": (lambda p: (p / "header.json").write_text("[]"), "header.json", "Graph.save"),
    "binary header": (lambda p: (p / "header.json").write_bytes(b"\xff\0"), "no header", "Graph."),
    "foreign format": (lambda p: edit_header(p, format="other"), "header.json", "Graph.save"),
    "future version": (lambda p: edit_header(p, version=2), "format version 2", "expected 1"),
    "no arrays": (lambda p: edit_header(p, arrays={}), "header.json", "Graph.save"),
    "arrays unsaid": (
        lambda p: edit_header(p, arrays={name: {} for name in ARRAYS}),
        "header.json",
        "Graph.save",
    ),
    "list of arrays": (lambda p: edit_header(p, arrays=list(ARRAYS)), "header.json", "Graph.save"),
    "no nodes": (lambda p: edit_header(p, nodes=0), "header.json", "Graph.save"),
    "sparse without parts": (lambda p: edit_header(p, x_shape=[60, 2]), "header.json", "Graph.s"),
    "other N": (lambda p: edit_header(p, nodes=61), "do not fit", "saved graph"),
    "other dtype": (lambda p: replace(p, "row", np.ones(60)), "row.npy holds float64", "float32"),
    "other shape": (lambda p: replace(p, "y", np.arange(5)), "y.npy holds int64", "(60,)"),
    "objects": (
        lambda p: np.save(p / "y.npy", np.array([None] * 60), allow_pickle=True),
        "y.npy",
        "int64",
    ),
    "not a directory": (lambda p: p.rename(p.with_name("moved")), "not a directory", "Graph.save"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_directories_are_refused_with_one_sentence(saved, case):
    spoil, came, wanted = BROKEN[case]
    spoil(saved)
    with pytest.raises(SgcnError) as error:
        Graph.open(saved)
    message = str(error.value)
    assert "\n" not in message
    assert "expected" in message
    assert came in message
    assert wanted in message


@pytest.mark.parametrize("name", ["indices", "x", "split"])
def test_verify_finds_a_flipped_bit(saved, name):
    file = saved / f"{name}.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    Graph.open(saved)  # does not read the data, so cannot know
    with pytest.raises(SgcnError, match=rf"^\S+{name}\.npy does not have the checksum .*expected"):
        Graph.open(saved, verify=True)


def test_a_file_is_not_a_graph(tmp_path):
    (tmp_path / "file").write_text("hello")
    with pytest.raises(SgcnError, match=r"is not a directory, expected one that Graph\.save"):
        Graph.open(tmp_path / "file")


# -- saving is all or nothing -------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    """Three arrays are written, half of a fourth, and then the disk is full."""
    calls = []
    stream = store.Writer.stream

    def failing(files, name, shape, dtype, parts):
        calls.append(name)
        if len(calls) > 3:
            (files.folder / f"{name}.npy").write_bytes(b"half")
            raise OSError(errno.ENOSPC, "no space left on device")
        stream(files, name, shape, dtype, parts)

    monkeypatch.setattr(store.Writer, "stream", failing)
    return calls


def test_nothing_half_written_remains(tmp_path, full_disk):
    with pytest.raises(SgcnError, match="no space left"):
        zoo_graph("weighted").save(tmp_path / "graph")
    assert len(full_disk) == 4
    assert list(tmp_path.iterdir()) == []


def test_a_failed_overwrite_leaves_the_old_graph(saved, full_disk):
    with pytest.raises(SgcnError, match="no space left"):
        zoo_graph("hub").save(saved, overwrite=True)
    assert [path.name for path in saved.parent.iterdir()] == ["graph"]
    assert len(Graph.open(saved, verify=True)) == 60


def test_overwriting_is_asked_for(saved):
    hub = zoo_graph("hub")
    with pytest.raises(SgcnError, match="exists already, expected a new directory"):
        hub.save(saved)
    hub.save(saved, overwrite=True)
    assert repr(Graph.open(saved, verify=True)) == repr(hub)
    assert [path.name for path in saved.parent.iterdir()] == ["graph"]


def test_an_open_graph_can_be_saved_over_itself(saved):
    graph = Graph.open(saved)
    graph.save(saved, overwrite=True)
    np.testing.assert_array_equal(graph.indices, Graph.open(saved, verify=True).indices)


def test_what_is_no_graph_is_never_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    with pytest.raises(SgcnError, match="exists already"):
        zoo_graph("hub").save(tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter").read_text() == "years of work"


# -- what is kept with a graph ------------------------------------------------------------------


def test_a_partition_is_computed_once_and_kept(saved, monkeypatch):
    from sgcn.samplers import cluster

    sampler, computed = make_sampler("cluster", parts=4), []
    metis = cluster._metis
    monkeypatch.setattr(cluster, "_metis", lambda *a: computed.append(a) or metis(*a))

    graph = Graph.open(saved)
    first = digest(sampler.sample(graph, [0], Key(0)))
    assert digest(sampler.sample(graph, [0], Key(0))) == first
    assert digest(sampler.sample(Graph.open(saved), [0], Key(0))) == first
    assert len(computed) == 1
    Graph.open(saved, verify=True)  # the extra file is no damage

    (saved / "metis-4.npy").write_bytes(b"half")  # a bad copy is made again
    assert digest(sampler.sample(Graph.open(saved), [0], Key(0))) == first
    assert len(computed) == 2
    assert store.kept_beside(saved, "metis-4").shape == (60,)
    assert store.kept_beside(None, "metis-4") is None
