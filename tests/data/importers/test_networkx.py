"""NetworkX: its objects, and its node-link JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import small_graph as small
from small_graph import imported, refused, same_edges, same_rows

from sgcn import SgcnError
from sgcn.data.importers.networkx import from_networkx

networkx = pytest.importorskip("networkx")
NAMES = [f"node {k}" for k in range(small.N)]
WORDS = ["train", "valid", "test", None]


def made(kind="MultiGraph", *, names=NAMES):
    graph = getattr(networkx, kind)()
    for k, name in enumerate(names):
        graph.add_node(
            name, x=small.X[k].tolist(), y=int(small.Y[k]), split=WORDS[small.SPLIT[k]],
            sets=small.SETS[k].tolist(), one=float(k),
        )  # fmt: skip
    for src, dst, weight in zip(small.SRC, small.DST, small.WEIGHTS, strict=True):
        graph.add_edge(names[src], names[dst], w=float(weight))
    return graph


def save(path, graph, **options):
    path.write_text(json.dumps(networkx.node_link_data(graph, **options)))
    return path


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_an_object_and_its_file(tmp_path, kind):
    graph = made(kind)
    wanted = small.expected(directed="Di" in kind)
    same_edges(from_networkx(graph), wanted)
    same_rows(from_networkx(graph))
    read = imported("networkx", save(tmp_path / "a.json", graph, edges="edges"), tmp_path / "g")
    same_edges(read, wanted)
    same_rows(read)
    assert json.loads((tmp_path / "g" / "ids.json").read_text()) == NAMES


@pytest.mark.parametrize("kind", ["MultiGraph", "MultiDiGraph"])
def test_weights(tmp_path, kind):
    graph = made(kind)
    wanted = small.expected(weighted=True, directed="Di" in kind)
    same_edges(from_networkx(graph, weight="w"), wanted)
    path = save(tmp_path / "a.json", graph, edges="links")  # as networkx called them before 3.4
    same_edges(imported("networkx", path, tmp_path / "g", weight="w"), wanted)


def test_attributes_by_name(tmp_path):
    path = save(tmp_path / "a.json", made(), edges="edges")
    graph = imported("networkx", path, tmp_path / "g", x="one", y="sets", split="nothing")
    same_rows(graph, x=np.arange(small.N)[:, None], y=small.SETS, split=None)
    bare = from_networkx(made(), x=None, y=None, split=None, normalization="row")
    same_rows(bare, x=None, y=None, split=None)
    assert bare.normalization == "row"


def test_the_example_of_the_docs():
    page = (Path(__file__).parents[3] / "docs" / "importing.md").read_text(encoding="utf-8")
    example = next(code for code in page.split("```") if "from_networkx(" in code)
    made = {}
    exec(example.removeprefix("python\n"), made)
    assert made["graph"].y.tolist().count(1) == 17  # half of the 34 went to the officer's club
    with pytest.raises(SgcnError, match=r"club of node 0 in the graph is 'Mr\. Hi', expected"):
        from_networkx(networkx.karate_club_graph(), y="club")


def test_objects_that_are_none():
    with pytest.raises(SgcnError, match="list has no nodes, expected a NetworkX graph"):
        from_networkx([])
    with pytest.raises(SgcnError, match="no node"):
        from_networkx(networkx.Graph())


def change_node(key, value):
    def change(data):
        if value is None:
            del data["nodes"][3][key]
        else:
            data["nodes"][3][key] = value

    return change


BAD = {
    "no nodes": (lambda d: d.pop("nodes"), ("has no list nodes, expected one",)),
    "no edges": (lambda d: d.pop("edges"), ("has no list links or edges, expected one",)),
    "empty": (lambda d: d.update(nodes=[], edges=[]), ("no node",)),
    "list nodes": (lambda d: d.update(nodes=[1, 2]), ("cannot be read",)),
    "no id": (change_node("id", None), ("cannot be read", "'id'")),
    "list id": (change_node("id", [1]), ("cannot be read",)),
    "id twice": (change_node("id", "node 4"), ("several nodes of one id",)),
    "unknown node": (lambda d: d["edges"][0].update(source="x"), ("edge to 'x'",)),
    "list end": (lambda d: d["edges"][0].update(source=[1]), ("cannot be read",)),
    "no source": (lambda d: d["edges"][0].pop("source"), ("link without source",)),
    "no features": (change_node("x", None), ("node 'node 3' without 'x'",)),
    "ragged": (change_node("x", [1.0]), ("x of the nodes", "several lengths")),
    "text features": (change_node("x", ["a", "b", "c"]), ("x of the nodes", "expected numbers")),
    "nan": (change_node("x", [1.0, float("nan"), 1.0]), ("not finite in row 3",)),
    "text class": (change_node("y", "A"), ("y of node 'node 3'", "is 'A'", "number the classes")),
    "class": (change_node("y", -4), ("label -4 for node 3",)),
    "part": (change_node("split", "dev"), ("part 'dev'",)),
    "list part": (change_node("split", [1]), ("part '[1]'",)),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_graphs(tmp_path, case):
    change, words = BAD[case]
    data = networkx.node_link_data(made(), edges="edges")
    change(data)
    (tmp_path / "a.json").write_text(json.dumps(data))
    refused("networkx", tmp_path / "a.json", tmp_path, "a.json", *words)


def test_nodes_and_edges_in_pieces(tmp_path, monkeypatch):
    """The same graph when only a few bytes pass at a time, also where attributes come late."""
    monkeypatch.setattr("sgcn.data.readers.jsontext._STEP", 64)
    data = networkx.node_link_data(made(), edges="edges")
    path = tmp_path / "a.json"
    path.write_text(json.dumps(data))
    read = imported("networkx", path, tmp_path / "g")
    same_edges(read, small.expected())
    same_rows(read)
    for node in data["nodes"][:-1]:
        del node["y"]
    path.write_text(json.dumps(data))
    refused("networkx", path, tmp_path, "the node 'node 0' without 'y'")


def test_an_empty_part(tmp_path):
    data = networkx.node_link_data(made(), edges="edges")
    for node in data["nodes"]:
        node["split"] = "train"
    (tmp_path / "a.json").write_text(json.dumps(data))
    refused("networkx", tmp_path / "a.json", tmp_path, "validation in split in", "no node")


def test_a_weight_that_is_missing(tmp_path):
    path = save(tmp_path / "a.json", made(), edges="edges")
    refused("networkx", path, tmp_path, "edge ('node 0', 'node 1') without 'v'", weight="v")


def test_bad_files(tmp_path):
    path = tmp_path / "a.json"
    refused("networkx", path, tmp_path, "a.json does not exist")
    whole = save(tmp_path / "whole.json", made(), edges="edges").read_bytes()
    for content, word in (
        (b"", "is empty"), (small.HTML, "HTML page"), (whole[:-10], "should be"),
        (b"[1]", "where '{'"), (b"[" * 100_000, "where '{'"), (b"\xff\xfe", "where '{'"),
    ):  # fmt: skip
        path.write_bytes(content)
        (tmp_path / "made").rmdir()
        refused("networkx", path, tmp_path, "a.json", word)
