"""`benchmarks step` on a small graph: its report, and that all contestants do the same work."""

from __future__ import annotations

import json
import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch

from benchmarks import contestants
from benchmarks.__main__ import main
from benchmarks.bound import Cost, Machine, Shape, step_cost
from benchmarks.contestants import PEERS, Ours, Published
from sgcn import Key, make_sampler
from sgcn.compute.buffers import Pool
from sgcn.data.synthetic import Synthetic, synthetic
from sgcn.estimators import make_estimator
from sgcn.task import train_nodes

SPEC = Synthetic(nodes=400, degree=10, features=6, classes=3, communities=4, hub=8.0)
PYG = pytest.mark.skipif(
    contestants.find_spec("torch_geometric") is None, reason="torch_geometric is not installed"
)
NAMES = [pytest.param(name, marks=[PYG] if name.startswith("pyg") else []) for name in PEERS]


@pytest.fixture(scope="module")
def graph():
    return synthetic(SPEC)


@pytest.fixture
def ours(graph):
    estimator = make_estimator("sgcn++", restart="never", gap=11)
    return Ours(graph, make_sampler("ladies"), estimator, seed=0)


def test_report(graph, tmp_path, capsys):
    graph.save(tmp_path / "small")
    out = tmp_path / "step.json"
    argv = ["step", "--graph", str(tmp_path / "small"), "--rounds", "2"]
    argv += ["--batch-size", "32", "--threads", "1", "--out", str(out)]
    threads = torch.get_num_threads()
    assert main(argv) == 0
    assert torch.get_num_threads() == threads
    printed, errors = capsys.readouterr()
    assert errors == ""
    report = json.loads(out.read_text())
    wanted = {"small/1/full/torch", "small/1/minibatch/torch", "small/1/snapshot+10/published"}
    wanted |= {f"small/1/{what}/bound" for what in ("full", "minibatch", "snapshot+10")}
    for peer in ("pyg-csr", "pyg-edge"):
        if f"small/{peer}" not in report["skipped"]:
            wanted |= {f"small/1/full/{peer}", f"small/1/minibatch/{peer}"}
    assert set(report["ratios"]) == wanted
    seconds = {(row["what"], row["who"]): row["seconds"] for row in report["results"]}
    for key, ratio in report["ratios"].items():
        _, _, what, peer = key.split("/")
        pair = seconds[what, peer], seconds[what, "sgcn"]
        assert ratio == pytest.approx(pair[1] / pair[0] if peer == "bound" else pair[0] / pair[1])
        assert f"{ratio:.2f}" in printed
    for who in ("sgcn", "published"):
        found = report["categories"][f"small/1/{who}"]
        assert tuple(found) == contestants.CATEGORIES
        assert found["regular_sampling"] > 0
        assert found["compute"] > 0
    assert str(tmp_path) not in out.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_full_batch_steps_are_the_same(graph, ours, name):
    """Three steps of gradient descent: the losses agree, and so did all weights before them."""
    peer = PEERS[name](graph, 0)
    for _ in range(3):
        assert peer.full() == pytest.approx(ours.full(), rel=1e-4)


def test_mini_batch_steps_are_the_same(graph, ours):
    peer = PEERS["torch"](graph, 0)
    for step in range(3):
        seeds = np.arange(step, 300, 7, dtype=np.int32)
        batch = ours.plain[0].sampler.sample(graph, seeds, Key(0, 0, step), 2)
        assert len(batch.nodes) == len(seeds)
        key = Key(0, 0, step)
        assert peer.minibatch(seeds, key) == pytest.approx(ours.minibatch(seeds, key), rel=1e-4)


@PYG
@pytest.mark.parametrize("name", ["pyg-csr", "pyg-edge"])
def test_pyg_on_all_neighbours_is_exact(graph, ours, name):
    """On unsampled batches PyG's subgraph gives what blocks give."""
    peer = PEERS[name](graph, 0)
    peer.sampler = make_sampler("exact")
    ours.plain[0].sampler = make_sampler("exact")
    seeds, key = np.arange(0, 300, 7, dtype=np.int32), Key(0)
    for _ in range(2):
        assert peer.minibatch(seeds, key) == pytest.approx(ours.minibatch(seeds, key), rel=1e-4)


def test_the_published_procedure(graph, ours, monkeypatch):
    """Its snapshot is ours; with every node drawn, its regular steps are full-batch steps."""
    published = Published(graph, 0)
    spent = dict.fromkeys(contestants.CATEGORIES, 0.0)
    assert published.snapshot(spent) == pytest.approx(ours.full(), rel=1e-4)
    assert published.tables.shape == (2, len(graph), contestants.WIDTH)
    assert torch.equal(published.first, published.tables)
    seeds = np.arange(0, 300, 7, dtype=np.int32)
    assert np.isfinite(published.regular(seeds, spent))
    changed = (published.tables[1] != published.first[1]).any(1).nonzero().ravel()
    assert changed.tolist() == seeds.tolist()
    away = (published.tables - published.first).abs().mean()
    assert published.distance == pytest.approx(float(away))
    everyone = np.arange(len(graph))

    def all_layers(data, seeds, size, rng):
        return [(data.P[seeds, :], seeds, everyone), (data.P, everyone, everyone)]

    monkeypatch.setattr(contestants.baselines, "ladies_layers", all_layers)
    again, train = Published(graph, 0), train_nodes(graph)
    full = PEERS["torch"](graph, 0)
    for step in range(3):
        loss = again.regular(train, spent) if step else again.snapshot(spent)
        assert loss == pytest.approx(full.full(), rel=1e-4)


def test_step_cost_by_hand():
    """One layer of 4 rows, 5 columns and 6 edges, 2 features, width 3, 1 class."""
    cost = step_cost([Shape(4, 5, 6)], [2, 3, 1])
    # Sum of 2 columns, then two products with W; the head has three, the activation five tables.
    sums, products, head = 2 * 6 * 2, 2 * (2 * 4 * 2 * 3), 3 * (2 * 4 * 3 * 1)
    assert cost.flops == sums + products + head
    moved = (6 * 3 + 4 * 2) + 2 * 4 * (2 + 3) + 3 * 4 * (3 + 1) + 5 * 4 * 3
    assert cost.bytes == 4 * moved
    assert Machine(flops=2.0, bandwidth=4.0).seconds(Cost(2.0, 8.0)) == 3.0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--rounds", "0"], "--rounds is 0, expected a whole number >= 1"),
        (["--threads", "0"], "--threads is '0', expected whole numbers from 1"),
        (["--threads", "99999"], "--threads is '99999', expected"),
        (["--sampler", "saint"], "expected one that takes seeds"),
        (["--estimator", "sgcn+++"], "did you mean"),
        (["--out", "nowhere/step.json"], "expected a file in a directory that exists"),
        (["--graph", "redit-like"], "did you mean 'reddit-like'"),
    ],
)
def test_refusals(capsys, argv, words):
    assert main(["step", *argv]) == 2
    assert words in capsys.readouterr().err


def largest_allocations(run) -> tuple[int, int]:
    """Bytes of the largest single allocation of torch and of NumPy (of what is still held)."""
    tracemalloc.start()
    try:
        with torch.profiler.profile(profile_memory=True) as profile:
            held = run()
        traces = tracemalloc.take_snapshot().traces
    finally:
        tracemalloc.stop()
    assert held is not None
    theirs = max(event.self_cpu_memory_usage for event in profile.events())
    return theirs, max(trace.size for trace in traces)


@pytest.mark.parametrize("name", ["sgcn", "sgcn++", "anchored"])
@pytest.mark.parametrize("sampler", ["ladies", "neighbor"])
def test_a_regular_step_allocates_no_megabyte(sampler, name, monkeypatch):
    """Once the buffers are there, with 500 features, where P X alone is two megabytes."""
    spec = Synthetic(nodes=4000, degree=20, features=500, classes=4, communities=4, hub=8.0)
    graph = synthetic(spec)
    estimator = make_estimator(name, restart="never", gap=100)
    ours = Ours(graph, make_sampler(sampler), estimator, seed=0)
    train = train_nodes(graph)
    steps = [(train[512 * k : 512 * (k + 1)], Key(0, 0, k)) for k in range(4)]
    ours.cycle(steps[:3])
    engine, _ = ours.reduced
    batch = engine.draw(*steps[3])
    assert len(batch.blocks[0].dst) * 500 * 4 > 1.5 * 2**20
    run = partial(engine.regular, batch, steps[3][1])
    theirs, numpys = largest_allocations(run)
    assert 0 < theirs <= 2**20
    assert 500 * 256 * 4 <= numpys <= 2**20  # the gradient by W of the first layer
    monkeypatch.setattr(Pool, "least", 2**30)  # the counter sees what the pool saves
    assert largest_allocations(run)[1] > 1.5 * 2**20
