"""GraphSAINT's layout, array by array."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from checks import assert_holds, brought, refused
from writers import FORMATS, make_truth, write_graphsaint, write_json

from sgcn import SgcnError
from sgcn.cli import main
from sgcn.data.importers import import_graph


@pytest.mark.parametrize("sets", [False, True])
def test_everything_arrives(tmp_path, sets):
    truth = make_truth(sets=sets)
    write_graphsaint(tmp_path, truth)
    assert_holds(brought("graphsaint", tmp_path, tmp_path / "out"), truth, truth.standardised())


def test_standardising_is_an_option(tmp_path):
    truth = make_truth()
    write_graphsaint(tmp_path, truth)
    assert_holds(brought("graphsaint", tmp_path, tmp_path / "out", standardise=False), truth)


def test_training_rows_alone_are_standardised(tmp_path):
    truth = make_truth()
    truth.x[truth.split != 0] += 100.0
    write_graphsaint(tmp_path, truth)
    graph = brought("graphsaint", tmp_path, tmp_path / "out")
    train = np.asarray(graph.x)[truth.split == 0]
    np.testing.assert_allclose(train.mean(0), 0.0, atol=1e-5)
    np.testing.assert_allclose(train.std(0)[1:], 1.0, rtol=1e-5)
    assert np.asarray(graph.x)[truth.split != 0].mean() > 10


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "<i4"])
def test_types_of_features(tmp_path, dtype):
    truth = make_truth()
    write_graphsaint(tmp_path, truth)
    np.save(tmp_path / "feats.npy", truth.x.astype(dtype))
    truth.x = truth.x.astype(dtype).astype(np.float64)
    assert_holds(brought("graphsaint", tmp_path, tmp_path / "out"), truth, truth.standardised())


def test_a_large_mean_does_not_spoil_the_deviation(tmp_path):
    truth = make_truth()
    truth.x = truth.x * 1e-3 + 1e5
    write_graphsaint(tmp_path, truth)
    graph = brought("graphsaint", tmp_path, tmp_path / "out")
    rows = np.asarray(graph.x)[truth.split == 0]
    np.testing.assert_allclose(rows.std(0)[1:], 1.0, rtol=1e-3)


def test_rows_that_are_not_sorted_or_not_symmetric(tmp_path):
    """Only one direction is stored, backwards, with a loop and a duplicate."""
    truth = make_truth()
    write_graphsaint(tmp_path, truth)
    n = len(truth)
    rows, cols = np.r_[truth.src, 3, truth.src[0]], np.r_[truth.dst, 3, truth.dst[0]]
    order = np.lexsort((-cols, rows))
    indptr = np.searchsorted(rows[order], np.arange(n + 1)).astype(np.int32)
    parts = (np.ones(len(rows)), cols[order].astype(np.int32), indptr)
    sp.save_npz(tmp_path / "adj_full.npz", sp.csr_matrix(parts, shape=(n, n)))
    assert_holds(
        brought("graphsaint", tmp_path, tmp_path / "out"), truth, truth.standardised()
    )


def test_parts_do_not_show(tmp_path, monkeypatch):
    """The same graph when only a few rows, edges or bytes pass at a time."""
    truth = make_truth(sets=True)
    write_graphsaint(tmp_path, truth)
    for module, name in (("sgcn.chunks.CHUNK", 7), ("sgcn.data.readers.jsontext._STEP", 5)):
        monkeypatch.setattr(module, name)
    assert_holds(brought("graphsaint", tmp_path, tmp_path / "out"), truth, truth.standardised())


def test_nodes_in_no_part(tmp_path):
    truth = make_truth()
    truth.split[truth.ids(0)[0]] = -1
    write_graphsaint(tmp_path, truth)
    assert_holds(brought("graphsaint", tmp_path, tmp_path / "out"), truth, truth.standardised())


def test_command(tmp_path, capsys):
    truth = make_truth()
    (tmp_path / "in").mkdir()
    write_graphsaint(tmp_path / "in", truth)
    argv = ["data", "import", "graphsaint", str(tmp_path / "in"), "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    said = capsys.readouterr()
    assert "40 nodes" in said.out
    assert said.err == ""  # no bar where there is no terminal
    assert main(argv) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*argv, "--force", "--set", "standardise=false"]) == 0


def test_a_place_that_cannot_be_written(tmp_path):
    write_graphsaint(tmp_path, make_truth())
    for out in (tmp_path / "role.json" / "out", tmp_path / ("x" * 300)):
        with pytest.raises(SgcnError, match=r"cannot be written .*, expected a place with"):
            import_graph("graphsaint", tmp_path, out)


def test_folders_made_for_a_graph_go_with_it(tmp_path):
    write_graphsaint(tmp_path, make_truth())
    out = tmp_path / "new" / "a" / "b" / "out"
    brought("graphsaint", tmp_path, out)
    (tmp_path / "role.json").unlink()
    with pytest.raises(SgcnError, match="does not exist"):
        import_graph("graphsaint", tmp_path, tmp_path / "new" / "a" / "c" / "d" / "out")
    assert [path.name for path in (tmp_path / "new" / "a").iterdir()] == ["b"]


def test_no_limit_is_a_limit_too(tmp_path):
    write_graphsaint(tmp_path, make_truth())
    assert len(brought("graphsaint", tmp_path, tmp_path / "out", limit_gb=float("inf"))) == 40


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"x": 1}, "labels 'x', expected a node of the graph"),
        ({"99": 1}, "has node 99 as key 99, expected ids from 0 to 39"),
        ({"1": 1.5}, "has label 1.5 for node 1, expected a class from 0 on"),
        ({"1": 1e999}, "has label inf for node 1, expected a class from 0 on"),
        ({"1": -1}, "has label -1 for node 1"),
        ({"1": "one"}, "mixes what it should not"),
        ({"1": [1, 0]}, "mixes what it should not"),
        ({"1": None}, "mixes what it should not"),
        ({" 1": 1, "1": 1}, None),
    ],
)
def test_odd_labels(tmp_path, labels, words):
    truth = make_truth()
    write_graphsaint(tmp_path, truth)
    given = {str(k): int(label) for k, label in enumerate(truth.y)}
    write_json(tmp_path / "class_map.json", given | labels)
    if words is None:  # said twice, but the same
        brought("graphsaint", tmp_path, tmp_path / "out")
        return
    message = refused(FORMATS["graphsaint"], tmp_path, tmp_path / "new" / "out")
    assert words in message
    assert "class_map.json" in message


def test_a_missing_label_is_named(tmp_path):
    truth = make_truth()
    write_graphsaint(tmp_path, truth)
    given = json.loads((tmp_path / "class_map.json").read_text())
    del given["7"]
    given["+6"] = 0
    write_json(tmp_path / "class_map.json", given)
    message = refused(FORMATS["graphsaint"], tmp_path, tmp_path / "new" / "out")
    assert "labels 39 nodes and not node 7, expected labels of all 40" in message
