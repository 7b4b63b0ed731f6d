"""One table of nodes: ids, labels, split, numbers and words in its columns."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest
import small_graph as small
from small_graph import imported, refused

from sgcn import Graph, cli
from sgcn.data.importers import import_graph

NODES = """\ufeffname,age,colour,label,split,"big, far"
ann,3,red,law,train,1e3
zoë,,blue,art,val,-2
"c, d",NA,NaN,art,testing,0.5
eve,4.5,red,,none,0
bob,7,none,bio,Train,0
"""
EDGES = 'ann,zoë\neve,"c, d"\nzoë,bob\nbob,ann\n'
X = [
    [3, 0, 0, 1, 1e3],
    [29 / 6, 1, 0, 0, -2],
    [29 / 6, 0, 0, 0, 0.5],
    [4.5, 0, 0, 1, 0],
    [7, 0, 1, 0, 0],
]
GRAPH = Graph.from_edges([0, 3, 1, 4], [1, 2, 4, 0], nodes=5)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "edges.csv").write_text(EDGES, encoding="utf-8")
    return tmp_path


def table(place, out="g", nodes="nodes.csv", **options):
    options = {"edges": str(place / "edges.csv"), "id": "name"} | options
    return imported("table", place / nodes, place / out, **options)


def beside(place, name, out="g"):
    return json.loads((place / out / f"{name}.json").read_text("utf-8"))


def rewritten(place, nodes):
    (place / "nodes.csv").write_text(nodes, encoding="utf-8")


def test_all_columns(place):
    said = []
    options = {"edges": str(place / "edges.csv"), "id": "name"}
    import_graph("table", place / "nodes.csv", place / "g", say=said.append, **options)
    graph = Graph.open(place / "g", verify=True)
    small.same_edges(graph, GRAPH)
    assert graph.x.dtype == np.float32
    np.testing.assert_allclose(graph.x, X, rtol=1e-6)
    assert graph.y.tolist() == [2, 0, 0, -1, 1]
    assert graph.split.tolist() == [0, 1, 2, -1, 0]
    assert beside(place, "ids") == ["ann", "zoë", "c, d", "eve", "bob"]
    assert beside(place, "classes") == ["art", "bio", "law"]
    assert said == [
        "nodes without a label: 1",
        "words, a feature a value: colour (3)",
        "missing values: age 2 (mean 4.833), colour 1 (zeros)",
    ]


@pytest.mark.parametrize("block", [16, 40])
def test_nothing_depends_on_where_the_text_is_cut(place, monkeypatch, block):
    """A column may turn out to hold words late, and miss values early."""
    monkeypatch.setattr("sgcn.data.readers.tables._TEXT", block)
    np.testing.assert_allclose(table(place).x, X, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".tsv", ".parquet"])
def test_other_tables(place, suffix):
    rows = list(csv.reader(NODES.lstrip("\ufeff").splitlines()))
    if suffix == ".tsv":
        lines = ("\t".join(row) for row in rows)
        (place / "n.tsv").write_text("\n".join(lines), encoding="utf-8")
    else:
        arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        tables = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
        columns = dict(zip(rows[0], map(list, zip(*rows[1:], strict=True)), strict=True))
        columns["age"] = arrow.array([3.0, None, float("nan"), 4.5, 7.0])
        columns["colour"] = arrow.array(["red", "blue", None, "red", "none"]).dictionary_encode()
        columns["label"] = arrow.array(["law", "art", "art", None, "bio"])
        columns["big, far"] = arrow.array([1e3, -2, 0.5, 0, 0])
        tables.write_table(arrow.table(columns), place / "n.parquet")
    graph = table(place, nodes=f"n{suffix}")
    small.same_edges(graph, GRAPH)
    np.testing.assert_allclose(graph.x, X, rtol=1e-6)
    assert (graph.y.tolist(), graph.split.tolist()) == ([2, 0, 0, -1, 1], [0, 1, 2, -1, 0])


@pytest.mark.parametrize(
    ("features", "columns"),
    [("age,colour", [0, 1, 2, 3]), ("big", None), (["big, far", "age"], [4, 0]), (5, [4])],
)
def test_chosen_features(place, features, columns):
    if columns is None:
        options = {"edges": str(place / "edges.csv"), "id": "name", "features": features}
        refused("table", place / "nodes.csv", place, "no column 'big'", **options)
        return
    graph = table(place, features=features)
    np.testing.assert_allclose(graph.x, np.array(X)[:, columns], rtol=1e-6)


def test_without_id_edges_are_numbers_of_rows(place):
    (place / "edges.csv").write_text("target,source\n0,4\n2,3\n")
    graph = table(place, id="none", label="none", split="none", directed=True,
                  features="none", source_column="source", target_column="target")  # fmt: skip
    small.same_edges(graph, Graph.from_edges([4, 3], [0, 2], nodes=5, directed=True))
    small.same_rows(graph, x=None, y=None, split=None)
    assert not (place / "g" / "ids.json").exists()


def test_whole_ids_stay_numbers(place):
    rewritten(place, "id,x\n30,1\n7,2\n#9,3\n")
    (place / "edges.csv").write_text("30,7\n")
    assert len(table(place, id="auto")) == 3  # "#" begins no comment
    assert beside(place, "ids") == ["30", "7", "#9"]
    rewritten(place, "id,x\n30,1\n7,2\n")
    table(place, "h", id="auto")
    assert beside(place, "ids", "h") == [30, 7]


@pytest.mark.parametrize(
    ("column", "options", "y", "classes"),
    [
        ("2.0,,10,-1,2", {}, [0, -1, 1, -1, 0], ["2", "10"]),
        ("2.5,,10,-1,2", {}, [2.5, np.nan, 10, -1, 2], None),
        ("2,,10,-1,2", {"kind": "numbers"}, [2, np.nan, 10, -1, 2], None),
        ("2.5,,a,a,2", {}, [1, -1, 2, 2, 0], ["2", "2.5", "a"]),
        ("2.5,,10,2.5,2", {"kind": "classes"}, [2, -1, 0, 2, 1], ["10", "2", "2.5"]),
        ("b;a,,a; c,b,;", {"kind": "sets"},
         [[1, 1, 0], [0, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]], ["a", "b", "c"]),
    ],
    ids=["whole numbers", "numbers", "counts", "words", "numbers as classes", "sets"],
)  # fmt: skip
def test_labels(place, column, options, y, classes):
    rows = [f"{name},{label}" for name, label in zip("vwxyz", column.split(","), strict=True)]
    rewritten(place, "name,label\n" + "\n".join(rows) + "\n")
    (place / "edges.csv").write_text("v,w\n")
    graph = table(place, **options)
    np.testing.assert_array_equal(graph.y, y)
    assert graph.x is None
    if classes is None:
        assert graph.y.dtype == np.float32
        assert not (place / "g" / "classes.json").exists()
    else:
        assert beside(place, "classes") == classes


@pytest.mark.parametrize(
    ("classes", "rows", "told"), [(12, 36, True), (12, 200, False), (5, 6, False)]
)
def test_whole_numbers_of_many_values_are_told(place, classes, rows, told):
    lines = [f"n{k},{k % classes}" for k in range(rows)]
    rewritten(place, "name,label\n" + "\n".join(lines) + "\n")
    (place / "edges.csv").write_text("n0,n1\n")
    said = []
    for at, options in enumerate(({}, {"kind": "classes"})):
        import_graph("table", place / "nodes.csv", place / f"{at}", say=said.append, id="name",
                     edges=str(place / "edges.csv"), **options)  # fmt: skip
    wanted = "labels that are whole numbers, read as 12 classes; to predict them as numbers: --set"
    assert said == [f"{wanted} kind=numbers"] * told


def test_like_another_table(place):
    """New nodes get the same columns, the same classes, and the old mean for what is missing."""
    table(place)
    rewritten(place, '"big, far",colour,name,label,age\n1,green,q,bio,\n2,red,r,law,9\n3,,s,,1\n')
    (place / "edges.csv").write_text("q,r\n")
    said = []
    graph = import_graph("table", place / "nodes.csv", place / "h", say=said.append, id="name",
                         edges=str(place / "edges.csv"), like=str(place / "g"))  # fmt: skip
    wanted = [[29 / 6, 0, 0, 0, 1], [9, 0, 0, 1, 2], [1, 0, 0, 0, 3]]
    np.testing.assert_allclose(graph.x, wanted, rtol=1e-6)
    assert graph.y.tolist() == [1, 2, -1]
    for name in ("classes", "features"):
        assert beside(place, name, "h") == beside(place, name)
    assert said[-1] == f"words that {place / 'g'} does not have (zeros): colour 1"
    options = {"edges": str(place / "edges.csv"), "id": "name", "like": str(place / "g")}
    rewritten(place, '"big, far",colour,name,label,age\n1,red,q,bio,old\n2,red,r,bio,9\n')
    refused("table", place / "nodes.csv", place, "words in column 'age'", **options)
    (place / "made").rmdir()
    rewritten(place, '"big, far",colour,name,label,age\n1,red,q,tea,1\n2,red,r,bio,9\n')
    refused("table", place / "nodes.csv", place, "'tea', expected the classes of", **options)
    (place / "made").rmdir()
    options["like"] = str(place)
    refused("table", place / "nodes.csv", place, "features.json does not exist", **options)


def test_the_command_line(place, capsys):
    arguments = ["data", "import", "table", place / "nodes.csv", "--edges", place / "edges.csv"]
    arguments += ["--id", "name", "--features", "age,colour", "--split", "none"]
    assert cli.main([*map(str, arguments), "--out", str(place / "g")]) == 0
    said = capsys.readouterr().out
    assert "missing values: age 2 (mean 4.833), colour 1 (zeros)\n" in said
    assert f"3 classes, no split; to train on it: sgcn data split {place / 'g'} --out NEW" in said
    assert cli.main(["data", "split", str(place / "g"), "--out", str(place / "h")]) == 0
    for name in ("ids", "classes", "features"):
        assert beside(place, name, "h") == beside(place, name)
    capsys.readouterr()
    assert cli.main(["data", "info", str(place / "h")]) == 0
    assert "(art: 2, bio: 1, law: 1)" in capsys.readouterr().out
    other = ["data", "import", "scipy", "a.npz", "--out", str(place / "i"), "--edges", "e"]
    assert cli.main(other) == 2
    assert "scipy has no option 'edges'" in capsys.readouterr().err


BAD = {
    "no edges": ({"edges": None}, NODES, EDGES, ("expected the table of edges",)),
    "edges away": ({"edges": "no.csv"}, NODES, EDGES, ("no.csv does not exist",)),
    "no such id": ({"id": "nam"}, NODES, EDGES, ("no column 'nam'", "did you mean 'name'")),
    "twice": ({}, NODES + "ann,1,red,law,val,3\n", EDGES, ("several rows of node 'ann'",)),
    "no id": ({}, NODES + ",1,red,law,val,3\n", EDGES, ("nodes.csv has no id in row 5",)),
    "unknown": ({}, NODES, EDGES + "ann,max\n", ("edges.csv has 'max' in edge 4", "nodes.csv")),
    "header": ({}, NODES, "a,b\n" + EDGES, ("'a' in edge 0", "set header=true if")),
    "names": ({"id": None}, NODES, EDGES, ("'ann' in line 1", "set id to the column")),
    "beyond": ({"id": None}, NODES, "0,5\n", ("edges.csv has node 5 in edge 0",)),
    "too many": ({"most": 2}, NODES, EDGES, ("more than 2 words in column 'colour'", "features=")),
    "part": ({"split": "colour"}, NODES, EDGES, ("the part 'red'",)),
    "two parts": ({}, NODES.replace("val", "train"), EDGES, ("validation in", "names no node")),
    "no label": ({"kind": "numbers"}, NODES, EDGES, ("'law', expected numbers", "kind=classes")),
    "bare": ({"label": "x"}, "name,x\na,\nb,NA\n", "a,b\n", ("no label",)),
    "infinite": ({}, "name,x\na,1\nb,inf\n", "a,b\n", ("nodes.csv", "not finite in row 1")),
    "ragged": ({}, NODES + "x,1\n", EDGES, ("2 fields in line 7",)),
    "no rows": ({}, "name,x\n", EDGES, ("has no row",)),
    "columns": ({"features": 1.5}, NODES, EDGES, ("features is 1.5, expected names of columns",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(place, case):
    options, nodes, edges, words = BAD[case]
    rewritten(place, nodes)
    (place / "edges.csv").write_text(edges, encoding="utf-8")
    options = {"edges": str(place / "edges.csv"), "id": "name"} | options
    refused("table", place / "nodes.csv", place, *words, **options)


def test_parquet_without_pyarrow(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (place / "n.parquet").write_bytes(b"PAR1")
    options = {"edges": str(place / "edges.csv")}
    refused("table", place / "n.parquet", place, "pip install pyarrow", **options)
