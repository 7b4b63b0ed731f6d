"""The commands that handle graphs, through the real command line: what they write, say, refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from learning import labelled
from sgcn import Graph
from sgcn.cli import main


@pytest.fixture
def saved(tmp_path) -> Path:
    labelled(normalization="row").save(tmp_path / "g")
    return tmp_path / "g"


def sgcn(*argv) -> int:
    return main(["data", *map(str, argv)])


def refusal(capsys, code: int) -> str:
    """The one sentence of a refusal."""
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert re.fullmatch(r"sgcn: error: [^\n]+\n", said.err), said.err
    return said.err


# -- info -----------------------------------------------------------------------------------------


def test_info_says_what_a_graph_is_like(saved, capsys):
    assert sgcn("info", saved) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "nodes      60"
    for name in ("edges", "degrees", "features", "labels", "split", "homophily", "memory"):
        assert sum(line.startswith(f"{name:<11}") for line in lines) == 1
    graph = Graph.open(saved)
    assert f"edges      {graph.edges // 2} undirected" in out
    assert "5 dense float32, 100.00% not zero" in out
    assert "split      30 train, 15 val, 15 test" in out
    bars = [line for line in lines if line.rstrip().endswith(tuple("0123456789")) and "#" in line]
    assert any("#" * 40 in bar for bar in bars)
    assert max(map(len, lines)) <= 100


def test_info_names_what_may_surprise(tmp_path, capsys):
    labelled(x=np.ones((60, 2)), y=np.arange(60) % 3).save(tmp_path / "g")
    assert sgcn("info", tmp_path / "g") == 0
    out = capsys.readouterr().out
    assert "note       2 of 2 features are the same for all nodes" in out
    assert "note       15 nodes of test with the very features of a training node" in out


def test_info_of_many_labels_and_of_none(tmp_path, capsys):
    labelled(y=np.arange(60) % 12, x=sp.csr_array(np.eye(60))).save(tmp_path / "many")
    assert sgcn("info", tmp_path / "many") == 0
    out = capsys.readouterr().out
    assert re.search(r"12 classes; 60 nodes \(0: 5, .*7: 5, 4 more\)", out)
    assert "60 sparse float64, 1.67% not zero, from 0 to 1" in out
    labelled(x=None, y=None, split=None).save(tmp_path / "bare")
    assert sgcn("info", tmp_path / "bare") == 0
    assert not re.search("features  |labels  |split  |homophily", capsys.readouterr().out)


def test_info_calls_labels_in_the_box_by_their_names(capsys):
    assert sgcn("info", "debian-tags") == 0
    out = capsys.readouterr().out
    assert out.startswith("about      packages of Debian 12, their tags\n")
    assert "29,966 nodes (devel::library: 10,274, " in out  # and 33,470 without any
    assert max(map(len, out.splitlines())) <= 100


def test_import_help_names_every_format():
    from sgcn.commands.data_import import FORMATS
    from sgcn.data.importers import IMPORTERS

    assert tuple(IMPORTERS) == FORMATS


def test_info_for_programs(saved, capsys):
    assert sgcn("info", saved, "--json") == 0
    read = json.loads(capsys.readouterr().out)
    assert read["nodes"] == 60
    assert read["split"] == {"train": 30, "val": 15, "test": 15, "none": 0}
    assert read["features"]["dtype"] == "float32"


@pytest.mark.parametrize("command", [["info"], ["verify"], ["split"], ["features"],
                                     ["export", "pyg"]])  # fmt: skip
def test_graphs_that_are_not_there(command, tmp_path, capsys):
    out = [] if command[0] in ("info", "verify") else ["--out", tmp_path / "new.pt"]
    assert "flickr-lik" in refusal(capsys, sgcn(*command, "flickr-lik", *out))
    assert list(tmp_path.iterdir()) == []


def test_half_of_a_file_is_said_to_be_truncated(saved, tmp_path, capsys):
    assert sgcn("export", "npz", saved, "--out", tmp_path / "g.npz") == 0
    capsys.readouterr()
    whole = (tmp_path / "g.npz").read_bytes()
    (tmp_path / "g.npz").write_bytes(whole[: len(whole) // 2])
    assert "truncated, fetch it again" in refusal(capsys, sgcn("info", tmp_path / "g.npz"))


# -- split ----------------------------------------------------------------------------------------


def test_split_writes_the_graph_again(saved, tmp_path, capsys):
    code = sgcn("split", saved, "--out", tmp_path / "new", "--train", 0.5, "--val", 0.3)
    assert code == 0
    assert "30 training, 18 validation and 12 test nodes" in capsys.readouterr().out
    made, old = Graph.open(tmp_path / "new", verify=True), Graph.open(saved)
    assert np.bincount(made.split).tolist() == [30, 18, 12]
    assert made.normalization == "row"  # as it was saved
    np.testing.assert_array_equal(made.x, old.x)
    np.testing.assert_array_equal(made.indices, old.indices)


@pytest.mark.parametrize("command", ["split", "features"])
def test_names_of_nodes_and_origin_are_carried_over(saved, tmp_path, command):
    for name in ("ids.json", "origin.json"):
        (saved / name).write_text(f'["{name}"]')
    assert sgcn(command, saved, "--out", tmp_path / "new") == 0
    for name in ("ids.json", "origin.json"):
        assert (tmp_path / "new" / name).read_text() == f'["{name}"]'
    Graph.open(tmp_path / "new", verify=True)


def test_split_by_class_and_seed(saved, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert sgcn("split", saved, "--out", tmp_path / name, "--how", "stratified", "--seed", seed,
                    ) == 0  # fmt: skip
    a, b, c = (Graph.open(tmp_path / name) for name in "abc")
    assert np.array_equal(a.split, b.split)
    assert not np.array_equal(a.split, c.split)
    shares = [np.mean(a.split[a.y == k] == 0) for k in range(4)]
    assert np.ptp(shares) < 0.15


def test_split_by_files(saved, tmp_path):
    for name, ids in (("train", "0\n1\n"), ("val", "2\n"), ("test", "3\n")):
        (tmp_path / name).write_text(ids)
    files = [tmp_path / name for name in ("train", "val", "test")]
    assert sgcn("split", saved, "--out", tmp_path / "new", "--files", *files) == 0
    assert Graph.open(tmp_path / "new").split[:5].tolist() == [0, 0, 1, 2, -1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--train", "0.9", "--val", "0.3"], "train and val are 0.9 and 0.3, expected shares"),
        (["--seed", "-1"], "seed is -1, expected"),
        (["--how", "files"], "--how files needs --files TRAIN VAL TEST"),
        (["--how", "random", "--files", "a", "b", "c"], "--files goes with --how files"),
        (["--files", "a", "b", "c", "--seed", "1"], "--files goes with --how files"),
        (["--files", "a", "b", "c"], "a does not exist, expected a node id in each line"),
    ],
)
def test_split_refuses(saved, tmp_path, capsys, options, message):
    code = sgcn("split", saved, "--out", tmp_path / "new", *options)
    assert message in refusal(capsys, code)
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.parametrize("command", [["split"], ["features"], ["export", "scipy"]])
def test_what_exists_is_not_replaced(saved, tmp_path, capsys, command):
    (tmp_path / "mine").write_text("mine")
    code = sgcn(*command, saved, "--out", tmp_path / "mine")
    assert "exists already, expected a new name" in refusal(capsys, code)
    assert (tmp_path / "mine").read_text() == "mine"


# -- features, verify, export ---------------------------------------------------------------------


def test_features(saved, tmp_path, capsys):
    code = sgcn("features", saved, "--out", tmp_path / "new", "--standardise", "--dtype", "float16")
    assert code == 0
    assert "60 rows of 5 float16 features" in capsys.readouterr().out
    made = Graph.open(tmp_path / "new", verify=True)
    assert made.x.dtype == np.float16
    assert abs(made.x[made.split == 0].astype(float).mean(0)).max() < 1e-3
    assert made.normalization == "row"


def test_features_refuse(tmp_path, capsys):
    labelled(x=sp.csr_array(np.eye(60))).save(tmp_path / "g")
    code = sgcn("features", tmp_path / "g", "--out", tmp_path / "new", "--standardise")
    assert "the features are sparse, expected dense ones" in refusal(capsys, code)
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


def test_verify(saved, capsys):
    assert sgcn("verify", saved) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert len(lines) == 11
    assert all(re.fullmatch(r".+ ok", line) for line in lines)


def test_verify_fails_with_a_sentence(saved, capsys):
    array = np.load(saved / "indices.npy")
    array[0] += 1
    np.save(saved / "indices.npy", array)
    assert "does not have the checksum" in refusal(capsys, sgcn("verify", saved))


@pytest.mark.parametrize(
    ("format", "name"),
    [("pyg", "g.pt"), ("npz", "g.npz"), ("scipy", "files"), ("graphsaint", "saint")],
)
def test_export(saved, tmp_path, capsys, format, name):
    assert sgcn("export", format, saved, "--out", tmp_path / "new" / name) == 0
    assert "60 nodes" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]
    if format == "pyg":
        assert "edge_index" in torch.load(tmp_path / "new" / name, weights_only=True)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["csv", "flickr-like", "--out", "a.csv"], "format is 'csv', expected one of pyg"),
        (["npz", "flickr-like", "--out", "a"], "expected a name ending in .npz for npz"),
    ],
)
def test_export_refuses_before_the_work(monkeypatch, capsys, tmp_path, argv, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sgcn.data.source.open_as_is", None)
    assert message in refusal(capsys, sgcn("export", *argv))
    assert list(tmp_path.iterdir()) == []
