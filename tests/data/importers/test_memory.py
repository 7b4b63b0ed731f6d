"""Importers hold parts, not arrays: the peak of traced memory, and bars where one is watched."""

from __future__ import annotations

import io
import os
import pickle
import platform
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from peaks import resident
from writers import (
    FORMATS,
    csv,
    make_truth,
    planetoid_truth,
    write_graphsaint,
    write_json,
    write_ogb,
    write_ogb_binary,
    write_planetoid_as,
    write_python2,
)

from sgcn import Graph
from sgcn.data import draft
from sgcn.data.importers import import_graph
from sgcn.data.importers.graphsage import _IdMap
from sgcn.data.readers.pickles import read_lists

ROWS, WIDTH = 4_000, 2_100  # 33.6 MB as float32


def large(write, folder) -> None:
    """A folder whose features alone are large."""
    truth = make_truth(300)
    spare = ROWS - len(truth)
    truth.split = np.r_[truth.split, np.zeros(spare, np.int8)]
    truth.y = np.r_[truth.y, np.zeros(spare, np.int64)]
    truth.x = np.tile(np.linspace(-1, 1, WIDTH), (ROWS, 1))
    truth.x[::2] *= 2
    if write is not write_ogb:
        write(folder, truth)
        return
    truth.x = truth.x[:, :1]
    write(folder, truth)
    (folder / "raw" / "node-feat.csv.gz").unlink()
    row = ",".join(f"{k % 100 / 100:g}" for k in range(WIDTH))
    (folder / "raw" / "node-feat.csv").write_text(f"{row}\n" * ROWS)


@pytest.mark.parametrize("write", [write_graphsaint, write_ogb_binary, write_ogb])
def test_peak_of_memory(tmp_path, write):
    large(write, tmp_path)
    format = "graphsaint" if write is write_graphsaint else "ogb"
    small = tmp_path / "small"
    small.mkdir()
    write(small, make_truth())
    import_graph(format, small, tmp_path / "first")  # compiles what is needed
    tracemalloc.start()
    import_graph(format, tmp_path, tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    written = (tmp_path / "out" / "x.npy").stat().st_size
    assert written > 30e6
    assert peak < written
    assert Graph.open(tmp_path / "out").x.shape == (ROWS, WIDTH)


@pytest.mark.parametrize("kind", ["csv", "csv with ids", "parquet", "parquet with ids"])
def test_tables_of_features_are_held_once_at_most(tmp_path, kind):
    """With ids in any order as float32; without ids only in parts."""
    rows, width = 2_000, 1_000  # 8 MB as float32
    order = np.random.default_rng(0).permutation(rows) if "ids" in kind else np.arange(rows)
    names = ["id"] * ("ids" in kind) + [f"x{k}" for k in range(width)]
    columns = [order] * ("ids" in kind) + [order % 10 / 8 + k for k in range(width)]
    path = tmp_path / f"x.{kind.split()[0]}"
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns, names), path)
    else:
        path.write_text(",".join(names) + "\n" + csv(np.stack(columns, 1)))
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    options = {"features": str(path), "nodes": rows} | (
        {"id_column": "id"} if "ids" in kind else {}
    )
    import_graph("edgelist", tmp_path / "edges.csv", tmp_path / "first", **options)  # compiles
    tracemalloc.start()
    graph = import_graph("edgelist", tmp_path / "edges.csv", tmp_path / "out", **options)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    wanted = np.arange(rows)[:, None] % 10 / 8 + np.arange(width)
    np.testing.assert_array_equal(graph.x, wanted.astype(np.float32))
    # beside it: a part as text, as places in it, as float64 and as float32
    assert peak < 4 * rows * width * ("ids" in kind) + 24 * (1 << 18) + (1 << 20)


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_edges_are_held_once(tmp_path, monkeypatch, layout):
    """In order or not, with loops: at most half as much beside them, where parts are small."""
    rng = np.random.default_rng(0)
    n, edges = 20_000, 400_000
    src, dst = rng.integers(0, n, (2, edges), np.int32)
    both = np.r_[src, dst, np.arange(n)], np.r_[dst, src, np.arange(n)]
    matrix = sp.coo_array((np.ones(len(both[0]), np.bool_), both), shape=(n, n))
    if layout == "csr":
        matrix = sp.csr_array(matrix)
        matrix.indices = matrix.indices[::-1].copy()  # rows backwards, of the other end
        matrix.indptr = matrix.indptr[-1] - matrix.indptr[::-1]
        matrix.indices = (n - 1 - matrix.indices).astype(np.int32)
    sp.save_npz(tmp_path / "a.npz", matrix, compressed=False)
    monkeypatch.setattr("sgcn.chunks.ROWS", 1 << 14)
    import_graph("scipy", tmp_path / "a.npz", tmp_path / "first")  # compiles what is needed
    tracemalloc.start()
    import_graph("scipy", tmp_path / "a.npz", tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    written = (tmp_path / "out" / "indices.npy").stat().st_size
    assert written > 3e6
    assert peak < 1.5 * written


def test_neighbour_lists_are_not_held(tmp_path):
    """A list of Python numbers takes 36 bytes an entry; these go to a file."""
    degree, nodes = 100, 2_000
    lists = {k: list(range(1000 * k, 1000 * k + degree)) for k in range(nodes)}
    (tmp_path / "graph").write_bytes(pickle.dumps(lists, 2))
    tracemalloc.start()
    graph = read_lists(tmp_path / "graph", "a graph", tmp_path / "spool")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert graph.nodes.tolist() == list(lists)
    spans = zip(graph.starts, graph.lengths, strict=True)
    ends = [graph.values[a : a + m].tolist() for a, m in spans]
    assert ends == list(lists.values())
    assert peak < 240 * nodes  # the lists at 4 bytes an entry would be 400


def test_pickled_features_are_not_held(tmp_path):
    """Sparse or dense, as Python 2 or 3 wrote them: arrays stay in the file."""
    truth = planetoid_truth()
    rng = np.random.default_rng(0)
    truth.x = rng.random((40, 100_000)) * (truth.split >= 0)[:, None]  # 16 MB as float32
    for name, write in (("2", write_python2), ("3", dump)):
        for kind in (sp.csr_matrix, np.asarray):
            folder = tmp_path / f"{kind.__name__}{name}"
            folder.mkdir()
            test = write_planetoid_as(folder, truth)
            for part, rows in {"x": truth.ids(0), "allx": range(28), "tx": test}.items():
                write(folder / f"ind.toy.{part}", kind(truth.x[list(rows)].astype(np.float32)))
            tracemalloc.start()
            graph = import_graph("planetoid", folder, folder / "out", validation=10)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 8e6
            x = graph.x.toarray() if sp.issparse(graph.x) else graph.x
            np.testing.assert_array_equal(x, truth.x.astype(np.float32))


def dump(path, value) -> None:
    path.write_bytes(pickle.dumps(value, 4))


@pytest.mark.parametrize("directed", [True, False])
def test_weighted_edges_are_not_held(tmp_path, directed):
    """Indices and values are sorted in mapped files; the same as in memory, bit for bit."""
    rng = np.random.default_rng(0)
    n, edges = 2_000, 400_000  # about a tenth of them duplicates
    src, dst = rng.integers(0, n, (2, edges), np.int32)
    weights = rng.integers(0, 5, edges) / 4  # sums are exact; some are 0
    wanted = Graph.from_edges(src, dst, weights, nodes=n, directed=directed)
    parts = [(src[k::8], dst[k::8], weights[k::8]) for k in range(8)]
    with draft.Draft.new(tmp_path / "first") as made:
        made.finish(made.edges(parts, n, directed=directed))  # compiles what is needed
    tracemalloc.start()
    with draft.Draft.new(tmp_path / "out") as made:
        made.finish(made.edges(parts, n, directed=directed))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    graph = Graph.open(tmp_path / "out")
    for name in ("indptr", "indices", "values", "row"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(wanted, name))
    assert peak < 1.5 * graph.values.nbytes


def test_node_names_are_held_as_bytes(tmp_path):
    """A dict from text to rows takes some 150 bytes a node."""
    nodes = 30_000
    write_json(tmp_path / "map.json", {f"c{k}": k for k in range(nodes)})
    tracemalloc.start()
    row_of = _IdMap(tmp_path / "map.json")
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert row_of(["c7", "c29999", "c0"], "", "").tolist() == [7, 29999, 0]
    assert held < 80 * nodes


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked for it")
def test_freed_memory_is_given_back_before_edges_are_placed(tmp_path, monkeypatch):
    """Pieces too small to be mapped by themselves, and one behind them: free() keeps them all."""
    pieces = [np.ones(1 << 13) for _ in range(1_000)]  # 64 kB each
    behind = [np.ones(1 << 13) for _ in range(10)]
    before = resident(os.getpid(), "RssAnon")
    left: list[int] = []
    place = draft.sorted_rows

    def placed(*args, **options):
        left.append(resident(os.getpid(), "RssAnon"))
        return place(*args, **options)

    monkeypatch.setattr(draft, "sorted_rows", placed)
    pieces.clear()
    with draft.Draft.new(tmp_path / "out") as made:
        made.finish(made.edges([(np.array([0, 1]), np.array([1, 2]))]))
    assert len(behind) == 10
    assert before - left[0] > 1_000 * (1 << 16) / 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
@pytest.mark.parametrize("name", FORMATS)
def test_bars_on_a_terminal_only(tmp_path, monkeypatch, stream, name):
    """One at a time, about what is read and about what is written."""
    format = FORMATS[name]
    format.write(tmp_path, make_truth())
    watched = stream()
    monkeypatch.setattr("sgcn.chunks.DELAY", 0)
    monkeypatch.setattr(sys, "stderr", watched)
    options = format.given(tmp_path)
    import_graph(format.importer, tmp_path / format.source, tmp_path / "out", **options)
    said = watched.getvalue()
    if stream is Terminal:
        assert "reading " in said
        assert "writing indices" in said
        assert "\x1b[A" not in said  # one line: no bar below another
    else:
        assert said == ""
