"""OGB's two layouts, array by array."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from checks import assert_holds, brought, refused
from writers import FORMATS, csv, make_truth, write_gz, write_ogb, write_ogb_binary

WRITERS = {"tables": write_ogb, "arrays": write_ogb_binary}


@pytest.fixture(params=WRITERS)
def write(request):
    return WRITERS[request.param]


@pytest.mark.parametrize("sets", [False, True])
def test_everything_arrives(tmp_path, write, sets):
    truth = make_truth(sets=sets)
    write(tmp_path, truth)
    assert_holds(brought("ogb", tmp_path, tmp_path / "out"), truth)


def test_parts_do_not_show(tmp_path, write, monkeypatch):
    truth = make_truth(sets=True)
    write(tmp_path, truth)
    monkeypatch.setattr("sgcn.chunks.CHUNK", 7)
    monkeypatch.setattr("sgcn.data.readers.tables._TEXT", 64)
    assert_holds(brought("ogb", tmp_path, tmp_path / "out"), truth)


def test_directions_can_be_kept(tmp_path, write):
    truth = make_truth()
    write(tmp_path, truth)
    graph = brought("ogb", tmp_path, tmp_path / "out", directed=True)
    assert graph.directed
    np.testing.assert_array_equal(graph.degrees, np.bincount(truth.dst, minlength=40))


def test_nan_is_no_label(tmp_path, write):
    truth = make_truth()
    labels = truth.y.astype(np.float64)
    labels[[3, 17]] = np.nan
    truth.y = labels
    write(tmp_path, truth)
    truth.y = np.where(np.isnan(labels), -1, labels).astype(np.int64)
    assert_holds(brought("ogb", tmp_path, tmp_path / "out"), truth)


def test_features_may_be_missing(tmp_path, write):
    truth = make_truth()
    write(tmp_path, truth)
    if write is write_ogb:
        (tmp_path / "raw" / "node-feat.csv.gz").unlink()
    else:
        data = dict(np.load(tmp_path / "raw" / "data.npz"))
        del data["node_feat"]
        np.savez(tmp_path / "raw" / "data.npz", **data)
    graph = brought("ogb", tmp_path, tmp_path / "out")
    assert graph.x is None
    np.testing.assert_array_equal(graph.y, truth.y)


def test_tables_may_be_unpacked(tmp_path):
    truth = make_truth()
    write_ogb(tmp_path, truth)
    for path in tmp_path.rglob("*.csv.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert_holds(brought("ogb", tmp_path, tmp_path / "out"), truth)


def test_edges_stored_pair_by_pair(tmp_path):
    truth = make_truth()
    write_ogb_binary(tmp_path, truth)
    data = dict(np.load(tmp_path / "raw" / "data.npz"))
    data["edge_index"] = np.asfortranarray(data["edge_index"])
    np.savez(tmp_path / "raw" / "data.npz", **data)
    assert_holds(brought("ogb", tmp_path, tmp_path / "out"), truth)


def test_the_split_is_found_or_asked_for(tmp_path, write):
    truth = make_truth()
    write(tmp_path, truth)
    (tmp_path / "split" / "random").mkdir()
    message = refused(FORMATS["ogb"], tmp_path, tmp_path / "new" / "out")
    assert "split has 2 folders, expected one with train, valid and test" in message
    assert "set split to one of random, time" in message
    assert_holds(brought("ogb", tmp_path, tmp_path / "out", split="time"), truth)


def test_several_graphs_are_refused(tmp_path):
    write_ogb(tmp_path, make_truth())
    write_gz(tmp_path / "raw" / "num-node-list.csv.gz", csv([[20], [20]]))
    message = refused(FORMATS["ogb"], tmp_path, tmp_path / "new" / "out")
    assert "num-node-list.csv.gz counts 2 graphs, expected one" in message
