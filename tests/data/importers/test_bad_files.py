"""Files that are not what they should be: one sentence that names them, and nothing left behind.

Every format of `writers.FORMATS` gets the damages of `DAMAGE` on each of its files. `CASES` has
what is special about one of them: a line is a format, a file, what happens to it, and the words.
"""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from checks import refused
from writers import FORMATS, csv, make_truth, write_gz, write_python2


@pytest.fixture
def place(tmp_path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "new").mkdir()
    return tmp_path


def refusal(place: Path, name: str, file: str, change: Callable[[Path], Any], **options) -> str:
    format = FORMATS[name]
    format.write(place / "in", make_truth())
    change(place / "in" / file)
    return refused(format, place / "in", place / "new" / "out", **options)


# -- any file -----------------------------------------------------------------------------------

PAGE = b"\n<!DOCTYPE html><html><body>404</body></html>"


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def outside(path: Path) -> None:
    """A link to a file beside the folder."""
    folder = next(parent for parent in path.parents if parent.name == "in")
    target = folder.parent / "elsewhere"
    shutil.move(path, target)
    path.symlink_to(target)


DAMAGE = {
    "missing": (Path.unlink, ""),
    "empty": (lambda path: path.write_bytes(b""), "is empty, expected"),
    "a web page": (lambda path: path.write_bytes(PAGE), "is an HTML page, expected"),
    "noise": (lambda path: path.write_bytes(bytes(range(256)) * 20), ""),
    "half": (half, ""),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "is a folder, expected a file"),
    "outside": (outside, "leads out of"),
}
FILES = [(name, file) for name, format in FORMATS.items() for file in format.files]
#: Without it a graph is read all the same: see the tests of the format.
OPTIONAL = {
    ("graphsage", "toy-feats.npy"), ("ogb", "raw/node-feat.csv.gz"), ("dgl", "feat.npy"),
    ("dgl", "label.npy"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "file"), FILES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files(place, name, file, damage):
    change, words = DAMAGE[damage]
    if damage == "missing" and (name, file) in OPTIONAL:
        pytest.skip("may be missing")
    if damage == "half" and name in ("edgelist", "table"):
        pytest.skip("half of an edge list is an edge list")
    if damage == "outside" and FORMATS[name].source:
        pytest.skip("the source is this file, wherever it is")
    message = refusal(place, name, file, change)
    assert Path(file).name in message
    assert words in message


@pytest.mark.parametrize(("name", "file"), [pair for pair in FILES if pair[1].endswith(".npz")])
def test_half_of_an_archive_is_said_to_be_truncated(place, name, file):
    assert "it is truncated, fetch it again" in refusal(place, name, file, half)


@pytest.mark.parametrize("name", FORMATS)
def test_a_source_that_is_not_there(place, name):
    message = refused(FORMATS[name], place / "nowhere", place / "new" / "out")
    assert "nowhere" in message


# -- archives that unpack to more than they should ----------------------------------------------

PACKED = [(name, file) for name, file in FILES if file.endswith((".npz", ".gz"))]


@pytest.mark.parametrize(("name", "file"), PACKED)
def test_bombs(place, name, file):
    """A little more than the limit, which is set low: 100 kB."""

    def change(path: Path) -> None:
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(b"1\n" * 60_000))
        else:
            np.savez_compressed(path, **np.load(path), ones=np.ones(60_000, np.int16))

    message = refusal(place, name, file, change, limit_gb=1e5 / 2**30)
    if path_has_rows(file):
        assert Path(file).name in message  # too many rows are seen before too many bytes
        return
    assert f"{Path(file).name} unpacks to 0.0 GiB or more, expected at most" in message
    assert "raise limit_gb if you trust it" in message


def path_has_rows(file: str) -> bool:
    """Whether the number of rows is known and checked while they are read."""
    return file in ("raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz")


def test_a_bomb_in_rows_is_seen_by_its_bytes(place):
    """Spaces are no rows."""

    def change(path: Path) -> None:
        path.write_bytes(gzip.compress(b"1,2\n" + b" \n" * 60_000))

    message = refusal(place, "ogb", "raw/edge.csv.gz", change, limit_gb=1e5 / 2**30)
    assert "edge.csv.gz unpacks to" in message


@pytest.mark.parametrize(("name", "file"), [pair for pair in PACKED if pair[1].endswith(".npz")])
def test_declared_sizes_count(place, name, file):
    """A zip that promises 4 GB is refused before anything is unpacked."""

    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        entry = data.index(b"PK\x01\x02")  # the first file in the directory at the end
        data[entry + 24 : entry + 28] = struct.pack("<I", 0xFFFFFFF0)
        path.write_bytes(data)

    message = refusal(place, name, file, change, limit_gb=1)
    assert f"{Path(file).name} unpacks to 4.0 GiB or more, expected at most 1.0" in message


# -- contents -----------------------------------------------------------------------------------


def array(**changes: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Change arrays of an ``.npz`` file."""

    def change(path: Path) -> None:
        arrays = dict(np.load(path))
        for key, make in changes.items():
            arrays[key] = make(arrays[key])
            if arrays[key] is None:
                del arrays[key]
        np.savez(path, **arrays)

    return change


def rows(make: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Change the array of an ``.npy`` file."""
    return lambda path: np.save(path, make(np.load(path)), allow_pickle=True)


def entries(**changes: Any) -> Callable[[Path], None]:
    """Change members of a JSON object."""

    def change(path: Path) -> None:
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def line(number: int, text: str) -> Callable[[Path], None]:
    """Change a line of a packed table."""

    def change(path: Path) -> None:
        lines = gzip.decompress(path.read_bytes()).decode().split("\n")
        lines[number] = text
        write_gz(path, "\n".join(lines))

    return change


def table(content: str) -> Callable[[Path], None]:
    return lambda path: write_gz(path, content)


def text(content: str) -> Callable[[Path], Any]:
    return lambda path: path.write_text(content)


def pickled(value: Any) -> Callable[[Path], None]:
    return lambda path: write_python2(path, value)


def with_at(place: Any, value: Any) -> Callable[[Any], Any]:
    """A copy of an array with another value at a place."""

    def make(array: Any) -> Any:
        array = array.copy()
        array[place] = value
        return array

    return make


def csr(shape: tuple[int, int], value: float = 1.0) -> Any:
    return sp.csr_matrix(np.full(shape, value, np.float32))


EYE = np.eye(4, dtype=np.int32)
SHIFT = np.array([0, 1])

CASES: list[tuple[str, str, Callable[[Path], Any], str]] = [
    # GraphSAINT: topology
    ("graphsaint", "adj_full.npz", array(indices=with_at(7, 40)), "column 40 in entry 7, expected"),
    ("graphsaint", "adj_full.npz", array(indices=with_at(7, -1)), "column -1 in entry 7, expected"),
    ("graphsaint", "adj_full.npz", array(indices=lambda a: a + 0.5), "holds float64 of shape"),
    ("graphsaint", "adj_full.npz", array(indices=lambda a: a[:-1]), "row pointers that do not fit"),
    ("graphsaint", "adj_full.npz", array(indptr=with_at(2, 999)), "row pointers that do not fit"),
    ("graphsaint", "adj_full.npz", array(indptr=lambda a: None), "has no array 'indptr', expected"),
    ("graphsaint", "adj_full.npz", array(shape=lambda a: a[:1]), "shape (40,), expected a square"),
    ("graphsaint", "adj_full.npz", array(shape=lambda a: a + SHIFT), "(40, 41), expected a square"),
    ("graphsaint", "adj_full.npz", array(shape=lambda a: a - 1), "row pointers that do not fit"),
    # GraphSAINT: features
    ("graphsaint", "feats.npy", rows(with_at((3, 1), np.nan)), "not finite in row 3, expected fin"),
    ("graphsaint", "feats.npy", rows(with_at((39, 4), -np.inf)), "not finite in row 39, expected"),
    ("graphsaint", "feats.npy", rows(with_at((3, 1), 1e200)), "standardise=false"),
    ("graphsaint", "feats.npy", rows(lambda a: a[:-1]), "shape (39, 5), expected 40 rows"),
    ("graphsaint", "feats.npy", rows(lambda a: a[:, :0]), "expected 40 rows, one for each node, a"),
    ("graphsaint", "feats.npy", rows(lambda a: a[:, 0]), "shape (40,), expected features with 40"),
    ("graphsaint", "feats.npy", rows(lambda a: a.astype("U8")), "holds <U8 of shape (40, 5), expe"),
    ("graphsaint", "feats.npy", rows(lambda a: a.astype(object)), "holds object of shape (40, 5)"),
    ("graphsaint", "feats.npy", rows(np.asfortranarray), "columns one after the other, expected"),
    # GraphSAINT: labels and roles
    ("graphsaint", "class_map.json", entries(**{"40": 1}), "has node 40 as key 40, expected"),
    ("graphsaint", "class_map.json", entries(**{"4": -2}), "has label -2 for node 4, expected"),
    ("graphsaint", "class_map.json", text("[1, 2]"), "where 'an object' should be, expected"),
    ("graphsaint", "class_map.json", text("{}"), "labels 0 nodes and not node 0, expected"),
    ("graphsaint", "role.json", entries(va=[]), "names no node, expected at least one for validat"),
    ("graphsaint", "role.json", entries(te=[40]), "has node 40 in entry 0, expected ids from 0"),
    ("graphsaint", "role.json", entries(te=[-1]), "has node -1 in entry 0, expected ids from 0"),
    ("graphsaint", "role.json", entries(te=[0.5]), "holds other things than numbers, expected"),
    ("graphsaint", "role.json", entries(te=[[1], [2, 3]]), "holds other things than numbers, exp"),
    ("graphsaint", "role.json", entries(te=list(range(40))), "already, expected parts that do not"),
    ("graphsaint", "role.json", entries(te=3), "has no list 'te', expected test nodes"),
    ("graphsaint", "role.json", text("[]"), "holds a list, expected the lists tr, va and te"),
    # GraphSAGE
    ("graphsage", "toy-feats.npy", rows(with_at((3, 1), np.nan)), "not finite in row 3, expected"),
    ("graphsage", "toy-feats.npy", rows(lambda a: a[:-1]), "shape (39, 5), expected 40 rows"),
    ("graphsage", "toy-class_map.json", entries(zz=1), "labels 'zz', expected a node of the graph"),
    ("graphsage", "toy-class_map.json", entries(c4=-2), "has label -2 for node 4, expected"),
    ("graphsage", "toy-class_map.json", text("{}"), "labels 0 nodes and not node 0, expected"),
    ("graphsage", "toy-id_map.json", text("{}"), "names no node, expected an object with the row"),
    ("graphsage", "toy-G.json", text('{"nodes": [], "links": []} x'), "where 'the end of the file"),
    ("graphsage", "toy-G.json", text('{"nodes": [1,], "links": []}'), "cannot be read, expected a"),
    ("graphsage", "toy-G.json", entries(nodes=[{"id": "c0", "val": False, "test": False}]),
     "names no node, expected at least one for validation"),
    # Planetoid
    ("planetoid", "ind.toy.test.index", text("28\nx\n"), "has 'x' in line 2, expected a node id i"),
    ("planetoid", "ind.toy.test.index", text("28\n"), "has 1 rows, expected 11, as tx"),
    ("planetoid", "ind.toy.test.index", text("".join(f"{k}\n" for k in range(20, 31))),
     "names a node twice or one of the 28 of allx, expected distinct ids"),
    ("planetoid", "ind.toy.test.index", text("28\n" * 11), "names a node twice or one of the 28"),
    ("planetoid", "ind.toy.test.index", text("".join(f"{k}\n" for k in range(9990, 10001))),
     "names node 10000, expected ids near 39"),
    ("planetoid", "ind.toy.test.index", text("".join(f"{k << 40}\n" for k in range(11))),
     "expected ids from 0 to"),
    ("planetoid", "ind.toy.allx", pickled(csr((28, 5), np.nan)), "not finite in row 0, expected"),
    ("planetoid", "ind.toy.allx", pickled(csr((28, 6))), "expected as many as allx"),
    ("planetoid", "ind.toy.allx", pickled(csr((27, 5))), "expected 27, as allx"),
    ("planetoid", "ind.toy.allx", pickled([1, 2]), "something else or nothing, expected a pickle"),
    ("planetoid", "ind.toy.allx", pickled(np.ones(5)), "something else or nothing, expected a pi"),
    ("planetoid", "ind.toy.tx", pickled(csr((10, 5))), "has 11 rows, expected 10, as tx"),
    ("planetoid", "ind.toy.ty", pickled(EYE), "has 4 rows, expected 11, as tx"),
    ("planetoid", "ind.toy.ty", pickled(np.ones((11, 4))), "row 0 that is not one-hot, expected"),
    ("planetoid", "ind.toy.ally", pickled(EYE * 2), "row 0 that is not one-hot, expected"),
    ("planetoid", "ind.toy.ally", pickled({0: [1]}), "something else or nothing, expected"),
    ("planetoid", "ind.toy.graph", pickled({0: [40]}), "has node 40 in edge 0, expected ids fro"),
    ("planetoid", "ind.toy.graph", pickled({-1: [3]}), "has node -1 in edge 0, expected ids fro"),
    ("planetoid", "ind.toy.graph", pickled({0: 1}), "holds something else, expected a pickle of a"),
    ("planetoid", "ind.toy.graph", pickled({0: ["a"]}), "a list holds other things than whole"),
    ("planetoid", "ind.toy.graph", pickled([1]), "holds something else, expected a pickle of a"),
    # OGB: tables
    ("ogb", "raw/edge.csv.gz", line(4, "3,40"), "has node 40 in edge 4, expected ids from 0 to"),
    ("ogb", "raw/edge.csv.gz", line(4, "3,-1"), "has node -1 in edge 4, expected ids from 0 to"),
    ("ogb", "raw/edge.csv.gz", line(4, "3,4.5"), "has '4.5' in line 5, expected an edge in each"),
    ("ogb", "raw/edge.csv.gz", line(4, "3"), "has 1 fields in line 5, expected 2 in every line"),
    ("ogb", "raw/edge.csv.gz", line(4, ""), "has 119 rows, expected 120"),
    ("ogb", "raw/edge.csv.gz", table("1,2\n" * 121), "has 121 rows or more, expected 120"),
    ("ogb", "raw/num-node-list.csv.gz", table("0\n"), "counts 0, expected a number >= 1"),
    ("ogb", "raw/num-node-list.csv.gz", table("-4\n"), "counts -4, expected a number >= 1"),
    ("ogb", "raw/num-node-list.csv.gz", table("x\n"), "has 'x' in line 1, expected one number"),
    ("ogb", "raw/node-feat.csv.gz", line(3, "1,2,nan,4,5"), "not finite in row 3, expected finite"),
    ("ogb", "raw/node-feat.csv.gz", line(3, "1,2,,4,5"), "not finite in row 3, expected finite"),
    ("ogb", "raw/node-feat.csv.gz", line(3, "1,2,1e300,4,5"), "not finite in row 3, expected fin"),
    ("ogb", "raw/node-feat.csv.gz", line(3, "1,2,abc,4,5"), "has 'abc' in line 4, expected the fe"),
    ("ogb", "raw/node-feat.csv.gz", table("1\n2\n"), "has 2 rows, expected 40"),
    ("ogb", "raw/node-label.csv.gz", line(3, "-2"), "has label -2.0 for node 3, expected"),
    ("ogb", "raw/node-label.csv.gz", line(3, "1.5"), "has label 1.5 for node 3, expected"),
    ("ogb", "raw/node-label.csv.gz", line(3, "1e30"), "has label 1e+30 for node 3, expected"),
    ("ogb", "raw/node-label.csv.gz", line(3, "1,2"), "has 2 fields in line 4, expected 1 in every"),
    ("ogb", "raw/node-label.csv.gz", table(csv(np.full((40, 3), 2))), "has label 2.0 for node 0"),
    ("ogb", "split/time/valid.csv.gz", table("\n"), "names no node, expected at least one for val"),
    ("ogb", "split/time/test.csv.gz", table("40\n"), "has node 40 in entry 0, expected ids"),
    ("ogb", "split/time/test.csv.gz", table(csv(np.arange(40)[:, None])), "expected parts that do"),
    ("ogb", "raw/edge.csv.gz", lambda path: path.write_bytes(b"1,2\n"), "cannot be read, expected"),
    # OGB: arrays
    ("ogb-binary", "raw/data.npz", array(edge_index=with_at((1, 4), 40)), "node 40 in edge 4, exp"),
    ("ogb-binary", "raw/data.npz", array(edge_index=with_at((0, 4), -1)), "node -1 in edge 4, exp"),
    ("ogb-binary", "raw/data.npz", array(edge_index=lambda a: a.T.copy()), "(120, 2), expected (2"),
    ("ogb-binary", "raw/data.npz", array(edge_index=lambda a: a * 1.0), "holds float64 of shape ("),
    ("ogb-binary", "raw/data.npz", array(edge_index=lambda a: a[:, :-1]), "119 edges, expected 12"),
    ("ogb-binary", "raw/data.npz", array(edge_index=lambda a: None), "has no array 'edge_index'"),
    ("ogb-binary", "raw/data.npz", array(num_nodes_list=lambda a: a + 1), "has 40 rows, expected"),
    ("ogb-binary", "raw/data.npz", array(node_feat=with_at((3, 1), np.nan)), "not finite in row 3"),
    ("ogb-binary", "raw/data.npz", array(node_feat=lambda a: a[:-1]), "has 39 rows, expected 40"),
    ("ogb-binary", "raw/node-label.npz", array(node_label=with_at(3, 0.5)), "has label 0.5 for"),
    ("ogb-binary", "raw/node-label.npz", array(node_label=lambda a: a[:, 0]), "holds float32 of s"),
]  # fmt: skip

#: The file that the sentence names, where it is not the changed one.
BLAMED = {
    ("planetoid", "ind.toy.allx", "expected as many as allx"): "ind.toy.tx",
    ("planetoid", "ind.toy.allx", "expected 27, as allx"): "ind.toy.ally",
    ("planetoid", "ind.toy.tx", "has 11 rows, expected 10, as tx"): "ind.toy.ty",
    ("ogb-binary", "raw/data.npz", "has 40 rows, expected"): "node-label.npz",
}


@pytest.mark.parametrize(
    ("name", "file", "change", "words"), CASES, ids=[f"{case[0]}-{case[3][:40]}" for case in CASES]
)
def test_bad_contents(place, name, file, change, words):
    message = refusal(place, name, file, change)
    assert BLAMED.get((name, file, words), Path(file).name) in message
    assert words in message
