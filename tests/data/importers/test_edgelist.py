"""Edge lists in text and Parquet, names of nodes, and tables beside them."""

from __future__ import annotations

import gzip
import json
import sys

import numpy as np
import pytest
import small_graph as small
from small_graph import imported, refused, same_edges, same_rows

from sgcn import Graph, SgcnError, cli
from sgcn.data.importers import import_graph

NAMES = np.array(["zoë", "b c", "d,e", "alpha", "x", "y", "z", "lonely"])
ENDS = np.stack((small.SRC, small.DST), 1).reshape(-1)
ORDER = np.array(list(dict.fromkeys(ENDS.tolist())))  # names are numbered as they appear
PLACE = np.argsort(ORDER)
TEXT = {".csv": ",", ".tsv": "\t", ".txt": "  ", ".edges": "\t"}


def lines(*columns, delimiter=",", header=None):
    rows = [delimiter.join(map(str, row)) for row in zip(*columns, strict=True)]
    return "\n".join([*([header] if header else []), *rows]) + "\n"


def quoted(names):
    return [f'"{name}"' for name in names]


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(lines(small.SRC, small.DST))
    return path


# -- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("suffix", TEXT)
def test_text(tmp_path, suffix, packed, directed):
    text = "# SNAP says hello\n\n% and so do others\n"
    text += lines(small.SRC, small.DST, delimiter=TEXT[suffix])
    path = tmp_path / f"e{suffix}{'.gz' * packed}"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    graph = imported("edgelist", path, tmp_path / "g", nodes=small.N, directed=directed)
    same_edges(graph, small.expected(directed=directed))
    same_rows(graph, x=None, y=None, split=None)


def test_the_largest_id_says_how_many_nodes(edges, tmp_path):
    assert len(imported("edgelist", edges, tmp_path / "g")) == 7


def test_columns_by_name_and_number(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(
        lines(small.WEIGHTS, small.DST, small.SRC, header="# before\nweight,target,source")
    )
    options = {"directed": True, "nodes": small.N}
    names = {"source_column": "source", "target_column": "target"}
    same_edges(imported("edgelist", path, tmp_path / "a", **names, **options),
               small.expected(directed=True))  # fmt: skip
    numbers = {"source_column": 2, "target_column": 1, "weight_column": 0}
    same_edges(imported("edgelist", path, tmp_path / "b", **numbers, **options),
               small.expected(directed=True, weighted=True))  # fmt: skip
    refused("edgelist", path, tmp_path, "e.csv", "'sauce'", "did you mean 'source'",
            source_column="sauce")  # fmt: skip
    (tmp_path / "made").rmdir()
    refused("edgelist", path, tmp_path, "3 columns", "column 3", source_column=3)


def test_a_column_of_words_is_passed_over(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(lines(small.SRC, small.DST, ["likes"] * 10))
    same_edges(imported("edgelist", path, tmp_path / "g", nodes=small.N), small.expected())


@pytest.mark.parametrize("delimiter", [";", "|", "tab", "blank"])
def test_other_delimiters(tmp_path, delimiter):
    sign = {"tab": "\t", "blank": "   "}.get(delimiter, delimiter)
    path = tmp_path / "e.csv"
    path.write_text(lines(small.SRC, small.DST, delimiter=sign, header=f"from{sign}to"))
    graph = imported("edgelist", path, tmp_path / "g", nodes=small.N, delimiter=delimiter)
    same_edges(graph, small.expected())


def test_ids_with_gaps_are_renumbered(tmp_path):
    far = np.array([5, 17, 10**12, 4, 3 * 10**9, 99, 2**40, 6])
    path = tmp_path / "e.csv"
    path.write_text(lines(far[small.SRC], far[small.DST]))
    graph = imported("edgelist", path, tmp_path / "g", ids="compact")
    assert json.loads((tmp_path / "g" / "ids.json").read_text()) == far[ORDER].tolist()
    same_edges(graph, Graph.from_edges(PLACE[small.SRC], PLACE[small.DST]))
    refused("edgelist", path, tmp_path, "e.csv", "has node 1000000000000 in edge 3")


def test_names(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text(lines(quoted(NAMES[small.SRC]), quoted(NAMES[small.DST])))
    graph = imported("edgelist", path, tmp_path / "g", ids="text", directed=True)
    names = json.loads((tmp_path / "g" / "ids.json").read_text(encoding="utf-8"))
    assert names == NAMES[ORDER].tolist()
    same_edges(graph, Graph.from_edges(PLACE[small.SRC], PLACE[small.DST], directed=True))


@pytest.mark.parametrize("quotes", [False, True])
def test_many_names(tmp_path, quotes):
    """Tables grow, blocks change, and the numbers stay those of first appearance."""
    ends = np.random.default_rng(0).integers(0, 30_000, (40_000, 2))
    names = [f"n{k % 7}{'x' * (k % 23)}{k}" for k in range(30_000)]
    path = tmp_path / "e.csv"
    path.write_text(lines(*([names[k] for k in side] for side in ends.T)))
    if quotes:
        path.write_text(path.read_text() + '"last, not least",n00\n')
    graph = imported("edgelist", path, tmp_path / "g", ids="text")
    order = list(dict.fromkeys(ends.reshape(-1).tolist()))
    found = json.loads((tmp_path / "g" / "ids.json").read_text())
    assert found[: len(order)] == [names[k] for k in order]
    assert found[len(order) :] == (["last, not least"] if quotes else [])
    place = np.empty(30_000, np.int64)
    place[order] = np.arange(len(order))
    src, dst = place[ends.T]
    extra = ([len(order)], [place[0]]) if quotes else ([], [])
    wanted = Graph.from_edges(np.r_[src, extra[0]].astype(int), np.r_[dst, extra[1]].astype(int))
    same_edges(graph, wanted)


def test_many_blocks(tmp_path, monkeypatch):
    """Nothing depends on where the text is cut."""
    monkeypatch.setattr("sgcn.data.readers.tables._TEXT", 16)
    path = tmp_path / "e.csv"
    path.write_text(lines(quoted(NAMES[small.SRC]), quoted(NAMES[small.DST]), header="# a\n\n#b"))
    graph = imported("edgelist", path, tmp_path / "g", ids="text")
    same_edges(graph, Graph.from_edges(PLACE[small.SRC], PLACE[small.DST]))
    path.write_text(lines(small.SRC, small.DST, header="# comment\nsource,target"))
    same_edges(imported("edgelist", path, tmp_path / "h", nodes=small.N), small.expected())


# -- nodes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numbers", "text"])
@pytest.mark.parametrize("ids", ["in order", "shuffled"])
def test_tables_beside(tmp_path, ids, kind):
    """All three tables, without ids in the order of nodes, with ids in any order."""
    names = NAMES if kind == "text" else np.arange(small.N)
    rows = np.random.default_rng(0).permutation(small.N) if ids == "shuffled" else np.arange(8)
    with_ids = ids == "shuffled" or kind == "text"
    key = [quoted(names[rows])] if with_ids else []
    first = ["id"] if with_ids else []
    words = np.array(["train", "valid", "test", "none"])
    tables = {
        "features": (["a", "b", "c"], [*small.X[rows].T]),
        "labels": (["label"], [small.Y[rows]]),
        "split": (["split"], [words[small.SPLIT[rows]]]),
    }
    options = {"ids": kind, **({"id_column": "id"} if with_ids else {})}
    if kind == "numbers" and with_ids:
        options["nodes"] = small.N  # the last has no edge
    for name, (titles, columns) in tables.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(lines(*key, *columns, header=",".join([*first, *titles])))
        options[name] = str(path)
    path = tmp_path / "e.csv"
    path.write_text(lines(quoted(names[small.SRC]), quoted(names[small.DST])))
    graph = imported("edgelist", path, tmp_path / "g", **options)
    order = rows if kind == "text" else np.arange(small.N)  # names of tables come first
    place = np.argsort(order)
    same_edges(graph, Graph.from_edges(place[small.SRC], place[small.DST], nodes=small.N))
    same_rows(graph, x=small.X[order], y=small.Y[order], split=small.SPLIT[order])


def test_arrays_beside(edges, tmp_path):
    np.save(tmp_path / "x.npy", small.X)
    (tmp_path / "y.txt").write_text(lines(*small.SETS.T, delimiter=" "))
    (tmp_path / "s.json").write_text(json.dumps({"tr": [0, 1, 2], "va": [3, 4], "te": [5, 6]}))
    options = {"features": "x.npy", "labels": "y.txt", "split": "s.json"}
    options = {key: str(tmp_path / name) for key, name in options.items()}
    graph = imported("edgelist", edges, tmp_path / "g", **options)
    same_edges(graph, small.expected())
    same_rows(graph, y=small.SETS)


def test_who_is_not_in_the_tables_has_no_label_and_no_part(edges, tmp_path):
    (tmp_path / "y.csv").write_text("id,label\n5,2\n0,1\n")
    (tmp_path / "s.csv").write_text("id,part\n5,test\n0,train\n6,val\n")
    options = {"labels": str(tmp_path / "y.csv"), "split": str(tmp_path / "s.csv")}
    graph = imported("edgelist", edges, tmp_path / "g", id_column=0, **options)
    same_rows(graph, x=None, y=[1, -1, -1, -1, -1, 2, -1], split=[0, -1, -1, -1, -1, 2, 1])


@pytest.mark.parametrize(
    ("key", "name"), [("features", "x.npy"), ("labels", "y.npy"), ("split", "s.json")]
)
def test_names_need_ids_in_the_tables(edges, tmp_path, key, name):
    words = f"{name} does not say which node is which"
    refused("edgelist", edges, tmp_path, words, key, ids="text", **{key: str(tmp_path / name)})


# -- parquet ------------------------------------------------------------------------------------


def parquet(path, **columns):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    tables = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    tables.write_table(arrow.table(columns), path)
    return path


def test_parquet(tmp_path):
    path = parquet(tmp_path / "e.parquet", w=small.WEIGHTS, s=small.SRC, t=small.DST)
    features = parquet(tmp_path / "x.parquet", a=small.X[:, 0], b=small.X[:, 1], c=small.X[:, 2])
    labels = parquet(tmp_path / "y.parquet", y=small.Y)
    options = {"source_column": "s", "target_column": "t", "features": str(features),
               "labels": str(labels)}  # fmt: skip
    graph = imported("edgelist", path, tmp_path / "g", **options)
    same_edges(graph, small.expected())
    same_rows(graph, split=None)
    graph = imported("edgelist", path, tmp_path / "h", weight_column="w", **options)
    same_edges(graph, small.expected(weighted=True))


def test_names_in_parquet(tmp_path):
    path = parquet(tmp_path / "e.parquet", s=NAMES[small.SRC].tolist(), t=NAMES[small.DST].tolist())
    graph = imported("edgelist", path, tmp_path / "g", ids="text")
    same_edges(graph, Graph.from_edges(PLACE[small.SRC], PLACE[small.DST]))
    refused("edgelist", path, tmp_path, "e.parquet", "number in column 's'; set ids=")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"s": [0, 1], "t": [1, None]}, ("the id nan",)),
        ({"s": [0, 1], "t": [1, 9]}, ("node 9 in edge 1",)),
        ({"s": [0.5, 1], "t": [1, 1]}, ("the id 0.5", "whole numbers")),
        ({"s": [[0], [1]], "t": [1, 1]}, ("cannot be read",)),
        ({"s": [0, 1]}, ("1 column",)),
        ({"s": np.empty(0, int), "t": np.empty(0, int)}, ("no row",)),
    ],
    ids=["null", "unknown node", "real", "lists", "one column", "empty"],
)
def test_bad_parquet(tmp_path, columns, words):
    path = parquet(tmp_path / "e.parquet", **columns)
    refused("edgelist", path, tmp_path, "e.parquet", *words, nodes=small.N)


def test_broken_parquet(tmp_path):
    path = parquet(tmp_path / "e.parquet", s=small.SRC, t=small.DST)
    whole = path.read_bytes()
    for content, word in (
        (whole[:-20], "cannot be read"), (b"PAR1", "cannot be read"), (small.HTML, "HTML page"),
        (whole[:10] + b"\xff" * 40 + whole[50:], "cannot be read"),
    ):  # fmt: skip
        path.write_bytes(content)
        refused("edgelist", path, tmp_path, "e.parquet", word)
        (tmp_path / "made").rmdir()
    path.write_bytes(whole)
    refused("edgelist", path, tmp_path, "unpacks to", limit_gb=0)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "e.parquet").write_bytes(b"PAR1")
    refused("edgelist", tmp_path / "e.parquet", tmp_path, "pip install pyarrow")


# -- what is refused ----------------------------------------------------------------------------

BAD = {
    "unknown node": ("0,1\n0,9\n", {"nodes": 8}, ("node 9 in edge 1", "0 to 7")),
    "negative node": ("0,1\n-1,2\n", {}, ("node -1 in edge 1",)),
    "huge node": ("0,99999999999\n", {}, ("node 99999999999",)),
    "gaps": ("0,1000000000\n", {}, ("1 edges and names node 1000000000", "ids=compact")),
    "weighted gaps": ("0,1000000000,2\n", {"weight_column": 2}, ("ids=compact",)),
    "half a node": ("0,1,2\n0.5,1,2\n", {}, ("the id 0.5", "whole numbers")),
    "words": ("0,1\n0,a\n", {}, ("'a' in line 2", "; set ids=text if nodes have names")),
    "words only": ("a,b\nb,c\n", {}, ("'a' in line 1", "number in field 1; set ids=text")),
    "words later": ("#\n0,1,x\n0,a,x\n", {}, ("'a' in line 3", "number in field 2; set ids=text")),
    "quoted words": ('0,1,"x"\n#\n0,"a",x\n', {}, ("'a' in line 3", "number in field 2")),
    "ragged": ("0,1\n0,1,2\n", {}, ("3 fields in line 2",)),
    "ragged names": ("a,b\nc\n", {"ids": "text"}, ("1 fields in line 2", "expected 2")),
    "one column": ("0 1\n1 2\n", {}, ("1 column", "delimiter")),
    "comments only": ("# nothing\n", {}, ("no row",)),
    "header only": ("source,target\n", {}, ("no row",)),
    "binary": ("a,b\0\n", {"ids": "text"}, ("is binary",)),
    "not utf-8": (b"\xff\xfe,b\n", {"ids": "text"}, ("cannot be read", "UTF-8")),
    "open quote": ('"a,b\nc,d\n', {"ids": "text"}, ("one row a line",)),
    "bad weight": ("0,1,x\n", {"weight_column": 2}, ("'x'", "a real number in field 3")),
    "negative weight": ("0,1,-1\n", {"weight_column": 2}, ("weight -1",)),
    "no header": ("0,1\n", {"source_column": "a"}, ("no line with names", "'a'")),
    "other count": ("a,b\n", {"ids": "text", "nodes": 5}, ("names 2 nodes", "nodes = 5")),
    "page": (small.HTML, {}, ("HTML page",)),
    "nothing": (b"", {}, ("is empty",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_edges(tmp_path, case):
    content, options, words = BAD[case]
    path = tmp_path / "e.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    refused("edgelist", path, tmp_path, "e.csv", *words, **options)


def test_hints_are_about_the_column(tmp_path):
    """Text that is no name of a node and no class."""
    for text in ("0,1,x\n", "0,1,2\n0,1,x\n"):
        (tmp_path / "e.csv").write_text(text)
        with pytest.raises(SgcnError, match=r"'x' in line \d, expected [^;]*$"):
            import_graph("edgelist", tmp_path / "e.csv", tmp_path / "g", weight_column=2)


TABLES = {
    "short features": ("features", "1,2\n" * 3, {"nodes": 8}, ("3 rows", "expected 8")),
    "nan": ("features", "1,2\n" * 6 + ",2\n3,4\n", {}, ("not finite in row 6",)),
    "words": ("features", "1,2\n" * 7 + "a,2\n", {}, ("'a' in line 8",)),
    "missing node": ("features", "0,1.5\n1,2.5\n", {"id_column": 0}, ("2 rows", "expected 7")),
    "text label": ("labels", "A\nB\n" * 4, {}, ("'A' in line 1", "; number the classes")),
    "text label by id": (
        "labels",
        "id,label\n0,1\n1,B\n",
        {"id_column": 0},
        ("'B' in line 3", "; number the class"),
    ),
    "text label later": ("labels", "1\n" * 7 + "B\n", {}, ("'B' in line 8", "; number the class")),
    "text ids": ("labels", "id,label\nx,1\n", {"id_column": 0}, ("'x' in line 2", "set ids=text")),
    "far label": (
        "labels",
        "0,1\n999,1\n",
        {"id_column": 0},
        ("names node 999, expected ids from 0 to 6 as in", "edges.csv: set nodes=1000"),
    ),
    "far part": ("split", "0,0\n7,1\n", {"id_column": 0}, ("names node 7", "set nodes=8")),
    "class": ("labels", "0\n" * 7 + "-2\n", {}, ("label -2.0 for node 7",)),
    "twice": ("labels", "0,1\n3,1\n3,2\n", {"id_column": 0}, ("several rows of node 3",)),
    "twice by name": ("labels", "x,1\ny,1\nx,2\n", {"ids": "text"}, ("rows of node 'x'",)),
    "unknown": ("labels", "0,1\n9,1\n", {"id_column": 0, "nodes": 8}, ("node 9 in row 1",)),
    "ids only": ("labels", "0\n1\n", {"id_column": 0}, ("nothing beside the ids",)),
    "part": ("split", "train\n" * 7 + "dev\n", {"nodes": 8}, ("part 'dev'",)),
    "empty part": ("split", "train\n" * 8, {"nodes": 8}, ("validation in", "no node")),
    "two columns": ("split", "0,1\n" * 8, {"nodes": 8}, ("2 columns, expected 1",)),
}


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(edges, tmp_path, case):
    key, content, options, words = TABLES[case]
    (tmp_path / "t.csv").write_text(content)
    options = options | {key: str(tmp_path / "t.csv")}
    refused("edgelist", edges, tmp_path, "t.csv", *words, **options)


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_bad_gzip(tmp_path, ids):
    path = tmp_path / "e.csv.gz"
    whole = gzip.compress(lines(small.SRC, small.DST).encode() * 500)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    for content in (b"0,1\n", whole[:-30], bytes(flipped)):
        path.write_bytes(content)
        refused("edgelist", path, tmp_path, "e.csv.gz cannot be read", ids=ids)
        (tmp_path / "made").rmdir()
    path.write_bytes(gzip.compress(b"0,1\n" * 500_000))
    refused("edgelist", path, tmp_path, "e.csv.gz unpacks to", ids=ids, limit_gb=0.001)


def test_the_command(edges, tmp_path, capsys):
    np.save(tmp_path / "x.npy", small.X)
    options = [f"features={tmp_path / 'x.npy'}", "directed=true", "header=false"]
    argv = ["data", "import", "edgelist", str(edges), "--out", str(tmp_path / "g")]
    assert cli.main([*argv, "--set", *options]) == 0
    assert "8 nodes" in capsys.readouterr().out
    same_edges(Graph.open(tmp_path / "g"), small.expected(directed=True))
    assert cli.main([*argv[:-1], str(tmp_path / "h"), "--set", "delimiter=;"]) == 2
    assert "1 column" in capsys.readouterr().err
    assert not (tmp_path / "h").exists()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("0,1\n1,2\n", [], "3 nodes, 4 stored edges, no features, no labels, no split\n"),
        ("0,1\n1,2\n", ["directed=true"], "3 nodes, 2 stored edges (directed), no features"),
        ("0,9\n", [], "8 nodes without an edge: ids=compact numbers nodes without gaps\n"),
        ("0,9\n", ["directed=true"], "no split; 8 nodes without an edge: ids=compact"),
        ("0,9\n", ["ids=compact"], "2 nodes, 2 stored edges, no features, no labels, no split\n"),
    ],
)
def test_the_last_line_says_what_was_found(tmp_path, capsys, text, options, words):
    (tmp_path / "e.csv").write_text(text)
    argv = ["data", "import", "edgelist", str(tmp_path / "e.csv"), "--out", str(tmp_path / "g")]
    assert cli.main([*argv, *(["--set", *options] if options else [])]) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "words"),
    [(small.Y, "3 classes, split 3 train / 2 val / 2 test"), (small.SETS, "sets of 3 labels")],
)
def test_the_last_line_of_a_whole_graph(edges, tmp_path, capsys, labels, words):
    options = []
    for key, array in (("features", small.X), ("labels", labels), ("split", small.SPLIT)):
        np.save(tmp_path / f"{key}.npy", array)
        options.append(f"{key}={tmp_path / key}.npy")
    argv = ["data", "import", "edgelist", str(edges), "--out", str(tmp_path / "g"), "--set"]
    assert cli.main([*argv, *options]) == 0
    assert f"stored edges, 3 features, {words}" in capsys.readouterr().out
    assert cli.main([*argv, *options]) == 2
    assert "replace an older graph with --force" in capsys.readouterr().err


def test_bad_options(edges, tmp_path):
    for options, words in (
        ({"delimiter": "ab"}, "delimiter is 'ab'"), ({"ids": "names"}, "numbers, compact, text"),
        ({"source_column": -1}, "source_column is -1"), ({"nodes": 0}, "nodes is 0"),
        ({"features": ""}, "features is ''"), ({"labels": "none.npy"}, "none.npy does not exist"),
    ):  # fmt: skip
        refused("edgelist", edges, tmp_path, words, **options)
        (tmp_path / "made").rmdir()


@pytest.mark.parametrize("text", ["0,1\n1,2\n2,0\n", "0,1\n1,2\n2,0\n1,0\n2,1\n0,2\n"])
def test_a_circle_in_one_direction_and_in_both(tmp_path, text):
    """As many edges in as out at each node, and only the second lists both directions."""
    (tmp_path / "e.csv").write_text(text)
    graph = imported("edgelist", tmp_path / "e.csv", tmp_path / "g")
    assert graph.adjacency().toarray().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
