"""GraphSAGE's layout, array by array, and the many ways in which its JSON is written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from checks import assert_holds, brought, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from writers import FORMATS, make_truth, node_link, write_graphsage, write_graphsage_as

import twins
from sgcn import SgcnError
from sgcn.data.readers import jsontext
from sgcn.kernels import text

NAMES = [f'c"{k}}}' for k in range(40)]  # a quote and a bracket in every id
SHUFFLED = np.random.default_rng(3).permutation(40).tolist()


@pytest.mark.parametrize("sets", [False, True])
def test_everything_arrives(tmp_path, sets):
    truth = make_truth(sets=sets)
    write_graphsage(tmp_path, truth)
    assert_holds(brought("graphsage", tmp_path, tmp_path / "out"), truth, truth.standardised())


@pytest.mark.parametrize(
    ("names", "by", "options"),
    [
        (NAMES, "index", {}),  # networkx 1, as Reddit was published
        (NAMES, "id", {}),  # networkx 2
        (NAMES, "id", {"links": "id"}),
        ([f"\ud800{k}" for k in range(40)], "id", {}),  # JSON can say what is no text
        (list(range(39, -1, -1)), "index", {}),  # node k of the list has id k: both are the same
        (list(range(100, 140)), "index", {}),  # only one reading fits
        (list(range(100, 140)), "id", {}),
        (SHUFFLED, "index", {"links": "index"}),
        (SHUFFLED, "id", {"links": "id"}),
    ],
)
def test_ids_and_places(tmp_path, names, by, options):
    truth = make_truth()
    write_graphsage_as(tmp_path, truth, names, node_link(truth, names, by=by))
    graph = brought("graphsage", tmp_path, tmp_path / "out", **options)
    assert_holds(graph, truth, truth.standardised())


def test_what_may_be_read_in_two_ways_is_asked_about(tmp_path):
    truth = make_truth()
    write_graphsage_as(tmp_path, truth, SHUFFLED, node_link(truth, SHUFFLED))
    message = refused(FORMATS["graphsage"], tmp_path, tmp_path / "new" / "out")
    assert "toy-G.json" in message
    assert "set links=id or links=index" in message


@pytest.mark.parametrize("step", [1, 3, 50, 1000])
@pytest.mark.parametrize("style", [{"indent": 1}, {"separators": (",", ":")}, {"sort_keys": True}])
def test_pieces_blanks_and_order_do_not_show(tmp_path, monkeypatch, step, style):
    truth = make_truth(12)
    graph = node_link(truth, NAMES)
    graph["edges"] = graph.pop("links")  # as networkx 3.4 calls them
    write_graphsage_as(tmp_path, truth, NAMES[:12], graph)
    (tmp_path / "toy-G.json").write_text(json.dumps(graph, **style) + "\n ")
    monkeypatch.setattr(jsontext, "_STEP", step)
    assert_holds(brought("graphsage", tmp_path, tmp_path / "out"), truth, truth.standardised())


def test_features_may_be_missing(tmp_path):
    truth = make_truth()
    write_graphsage(tmp_path, truth)
    (tmp_path / "toy-feats.npy").unlink()
    graph = brought("graphsage", tmp_path, tmp_path / "out")
    assert graph.x is None
    np.testing.assert_array_equal(graph.y, truth.y)


def test_directions_can_be_kept(tmp_path):
    truth = make_truth()
    write_graphsage(tmp_path, truth)
    graph = brought("graphsage", tmp_path, tmp_path / "out", directed=True)
    assert graph.directed
    assert graph.edges == len(truth.src)
    np.testing.assert_array_equal(graph.degrees, np.bincount(truth.dst, minlength=40))


def test_nodes_without_val_and_test_are_in_no_part(tmp_path):
    truth = make_truth()
    graph = node_link(truth, NAMES)
    first = graph["nodes"][0]
    del first["val"], first["test"]
    write_graphsage_as(tmp_path, truth, NAMES, graph)
    truth.split[39] = -1
    assert_holds(brought("graphsage", tmp_path, tmp_path / "out"), truth, truth.standardised())


def test_the_prefix_is_found_or_asked_for(tmp_path):
    truth = make_truth()
    write_graphsage(tmp_path, truth)
    (tmp_path / "ppi-G.json").write_text("{}")
    message = refused(FORMATS["graphsage"], tmp_path, tmp_path / "new" / "out", prefix=None)
    assert "2 files named PREFIX-G.json" in message
    assert "set prefix to one of ppi, toy" in message
    brought("graphsage", tmp_path, tmp_path / "out", prefix="toy")


def odd(change):
    """A graph after ``change``."""
    graph = node_link(make_truth(), NAMES)
    return change(graph) or graph


ODD = {
    "no nodes": (lambda g: g.pop("nodes") and None, "has no list nodes, expected one"),
    "empty nodes": (lambda g: g["nodes"].clear(), "has no nodes, expected at least one"),
    "no links": (lambda g: g.pop("links") and None, "has no list links or edges, expected one"),
    "both": (lambda g: g.update(edges=[]), "has 2 lists links or edges, expected one"),
    "nodes an object": (lambda g: g.update(nodes={}), "where 'a list' should be"),
    "node a number": (lambda g: g["nodes"].append(7), "node without an id"),
    "node without id": (lambda g: g["nodes"][5].pop("id") and None, "node without an id"),
    "unknown node": (lambda g: g["nodes"][5].update(id="zz"), "has the node 'zz', expected only"),
    "node twice": (lambda g: g["nodes"].append(g["nodes"][0]), "lists a node twice"),
    "val a text": (lambda g: g["nodes"][5].update(val="no"), "whose val is odd, expected true or"),
    "in two parts": (lambda g: g["nodes"][5].update(val=True, test=True), "do not overlap"),
    "link a list": (lambda g: g["links"].append([1, 2]), "link without source and target"),
    "link without end": (lambda g: g["links"].append({"source": 1}), "link without source and"),
    "link too far": (lambda g: g["links"].append({"source": 1, "target": 40}), "has index 40 as"),
    "link below": (lambda g: g["links"].append({"source": -1, "target": 4}), "has index -1 as the"),
    "link half": (lambda g: g["links"].append({"source": 0.5, "target": 4}), "no whole number"),
    "link a list inside": (lambda g: g["links"].append({"source": [1], "target": 4}), "no whole"),
    "link a huge one": (lambda g: g["links"].append({"source": 2**70, "target": 4}), "no whole"),
    "a list on top": (lambda g: [g], "where '{' should be"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_graphs(tmp_path, case):
    change, words = ODD[case]
    write_graphsage_as(tmp_path, make_truth(), NAMES, odd(change))
    message = refused(FORMATS["graphsage"], tmp_path, tmp_path / "new" / "out")
    assert words in message
    assert "toy-G.json" in message


@pytest.mark.parametrize("rows", [[0, 1, 1], [0, 1, 3], [0, 1, "2"], [0, 1, 2.0], [0, 1, [2]]])
def test_odd_id_maps(tmp_path, rows):
    truth = make_truth(3)
    write_graphsage_as(tmp_path, truth, NAMES[:3], node_link(truth, NAMES))
    (tmp_path / "toy-id_map.json").write_text(json.dumps(dict(zip(NAMES, rows, strict=False))))
    message = refused(FORMATS["graphsage"], tmp_path, tmp_path / "new" / "out")
    assert "toy-id_map.json does not give each row from 0 to 2 once, expected" in message


# -- JSON in pieces -----------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
broken = st.text('[]{}",\\: a1', max_size=30)


class Chunks:
    """A stream that gives its text in reads of any length."""

    def __init__(self, content: str) -> None:
        self.data = content.encode()

    def read(self, size: int = -1, /) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        return taken


def read_in_pieces(content: str, step: int, monkeypatch) -> dict:
    monkeypatch.setattr(jsontext, "_STEP", step)
    cursor = jsontext.JsonText(Chunks(content), "file.json", "JSON", lambda size: None)
    found = {}
    for key in cursor.members():
        if cursor._peek() == b"[":
            found[key] = [item for items in cursor.items() for item in items]
        else:
            found[key] = cursor.value()
    cursor.end()
    return found


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=4), json_values), st.integers(1, 40), st.booleans())
def test_pieces_make_the_whole(monkeypatch, value, step, ascii_only):
    content = json.dumps(value, indent=step % 3 or None, ensure_ascii=ascii_only)
    assert read_in_pieces(content, step, monkeypatch) == value


@given(broken, st.integers(1, 40))
def test_broken_text_is_refused_as_json_refuses_it(monkeypatch, content, step):
    try:
        wanted = json.loads(content)
    except ValueError:
        wanted = None
    if isinstance(wanted, dict):
        assert read_in_pieces(content, step, monkeypatch) == wanted
    else:
        with pytest.raises(SgcnError, match="expected JSON"):
            read_in_pieces(content, step, monkeypatch)


sound = st.dictionaries(st.text(max_size=4), json_values).map(json.dumps)


@given(broken | sound, st.integers(0, 9))
def test_json_items(content, at):
    data = np.frombuffer(content.encode() + b" " * 10, np.uint8)
    assert text.json_items(data, at) == twins.text.json_items(data, at)


def test_an_item_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(jsontext, "_ITEM", 1000)
    for content in ('{"a": [{"b": "' + "x" * 5000, '{"' + "x" * 5000, '{"a": {"b": [' + "1," * 900):
        with pytest.raises(SgcnError, match="an item of more than 0 MiB at byte"):
            read_in_pieces(content, 100, monkeypatch)
