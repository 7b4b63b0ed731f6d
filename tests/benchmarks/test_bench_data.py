"""`benchmarks data` on a small graph: the layout of its report, and that both ways do the work."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import data
from benchmarks.__main__ import main
from sgcn.data.importers import import_graph
from sgcn.data.synthetic import Synthetic, synthetic

SPEC = Synthetic(nodes=400, degree=10, features=6, classes=2, communities=4, hub=8.0)


@pytest.fixture(scope="module")
def graph():
    return synthetic(SPEC)


def test_report(graph, tmp_path, capsys):
    graph.save(tmp_path / "small")
    out = tmp_path / "bench.json"
    argv = ["data", "--graph", str(tmp_path / "small"), "--rounds", "2"]
    assert main([*argv, "--out", str(out)]) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""
    report = json.loads(out.read_text())
    assert [row["way"] for row in report["results"]] == ["read", "import"]
    for row in report["results"]:
        assert row["seconds"] > 0
        assert row["peak_bytes"] > 0
        assert row["bytes_per_second"] == pytest.approx(report["source_bytes"] / row["seconds"])
    times = [row["seconds"] for row in report["results"]]
    assert report["ratio"] == pytest.approx(times[1] / times[0])
    assert report["source_bytes"] > 400 * 6 * 8
    assert f"{report['ratio']:.2f} x" in printed
    assert str(tmp_path) not in out.read_text()


def test_the_written_folder_is_the_graph(graph, tmp_path):
    data.write_graphsaint(tmp_path, graph)
    again = import_graph("graphsaint", tmp_path, tmp_path / "out", standardise=False)
    for name in ("indptr", "indices", "x", "y", "split"):
        np.testing.assert_array_equal(getattr(again, name), getattr(graph, name))
    matrix, features, labels, roles = data.read_graphsaint(tmp_path)
    assert matrix.nnz == graph.edges
    assert features.dtype == np.float64
    assert len(labels) == sum(map(len, roles.values())) == 400


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--rounds", "0"], "--rounds is 0, expected a whole number >= 1"),
        (["--out", "nowhere/bench.json"], "expected a file in a directory that exists"),
        (["--graph", "redit-like"], "did you mean 'reddit-like'"),
    ],
)
def test_refusals(capsys, argv, words):
    assert main(["data", *argv]) == 2
    assert words in capsys.readouterr().err
