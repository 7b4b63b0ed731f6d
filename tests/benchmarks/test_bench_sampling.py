"""`benchmarks sampling` on a small graph: the layout of its report, and baselines worth beating."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import baselines, sampling
from benchmarks.__main__ import main
from sgcn import Key
from sgcn.data.synthetic import Synthetic, synthetic

SPEC = Synthetic(nodes=400, degree=10, features=2, classes=2, communities=4, hub=8.0)


@pytest.fixture(scope="module")
def graph():
    return synthetic(SPEC)


def test_report(graph, tmp_path, capsys):
    graph.save(tmp_path / "small")
    out = tmp_path / "bench.json"
    argv = ["sampling", "--graph", str(tmp_path / "small"), "--samplers", "neighbor,saint"]
    argv += ["--batches", "2", "--batch-size", "32", "--threads", "1,2", "--out", str(out)]
    assert main(argv) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""  # no bar where there is no terminal
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == ["bench.json"]

    report = json.loads(out.read_text())
    ours = [row for row in report["results"] if row["implementation"] == "sgcn"]
    assert [(row["graph"], row["sampler"]) for row in ours] == [
        ("small", "neighbor"), ("small", "saint"),
    ]  # fmt: skip
    for row in report["results"]:
        assert set(row) == {"graph", "sampler", "implementation", "ms", "edges"}
        assert row["ms"] > 0
        assert row["edges"] > 0
        assert row["implementation"] in printed
    assert {"small/neighbor/numpy", "small/saint/numpy", "small/saint/numpy-tuned"} <= set(
        report["ratios"]
    )
    assert all(ratio > 0 for ratio in report["ratios"].values())
    assert set(report["prefetch"]) == {
        f"small/{name}/threads2" for name in ("neighbor", "saint", "(machine)")
    }
    assert report["versions"]["numpy"] == np.__version__
    assert str(tmp_path) not in out.read_text()


@pytest.mark.parametrize("name", sampling.CASES)
def test_baselines_draw_blocks_of_the_same_shape_and_size(graph, name):
    """The published way and ours do the same work: as many edges, within their noise."""
    case, rng = sampling.CASES[name], np.random.default_rng(0)
    data, pool = baselines.Published(graph), np.arange(300)
    seeds = rng.choice(pool, 40, replace=False).astype(np.int32)
    theirs, ours = [], []
    for step in range(20):
        blocks = case.published(data, seeds, rng)
        theirs.append(sum(block.nnz for block in blocks))
        nodes = pool if case.sampler.draws_nodes else seeds
        batch = case.sampler.sample(graph, nodes, Key(0, 0, step), sampling.DEPTH)
        ours.append(sampling._edges(batch, case.sampler))
        assert all(np.isfinite(block.data).all() for block in blocks)
    # Published layer-wise code draws without replacement, ours with: up to all nodes here.
    assert 0.5 < np.mean(theirs) / np.mean(ours) < 2.0


@pytest.mark.parametrize("draw", [baselines.neighbor(3), baselines.labor(3), baselines.exact])
def test_node_wise_baselines_are_unbiased(graph, draw):
    data, rng = baselines.Published(graph), np.random.default_rng(1)
    seeds = np.arange(40, dtype=np.int32)
    sums = np.array([draw(data, seeds, rng)[0].sum(axis=1) for _ in range(400)])
    error = sums.mean(axis=0) - data.row_sums[seeds]
    assert (np.abs(error) <= 5 * sums.std(axis=0) / 20 + 1e-5).all()


def test_bound_counts_less_than_any_implementation_touches(graph):
    batch = sampling.CASES["exact"].sampler.sample(graph, np.arange(50), Key(0), 2)
    least = sum(12 * block.edges for block in batch.blocks)  # id read; place and weight written
    touched = sampling.bytes_touched(graph, batch, sampling.CASES["exact"])
    assert least < touched < 4 * least


def test_bandwidth_is_a_plausible_number():
    assert 1e8 < sampling.memory_bandwidth(16) < 1e13
