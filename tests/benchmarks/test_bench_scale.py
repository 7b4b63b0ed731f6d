"""`benchmarks scale` and `startup`, the files of `make bench`, and a quick start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from benchmarks import compare, scale, short, startup
from benchmarks.__main__ import main


def test_scale(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scale, "call", lambda module, order, out, threads: scale.one_size(order))
    out, picture = tmp_path / "scale.json", tmp_path / "scale.svg"
    argv = ["scale", "--edges", "1e4,2e4", "--rounds", "1", "--width", "8"]
    threads = torch.get_num_threads()
    try:
        assert main([*argv, "--out", str(out), "--picture", str(picture)]) == 0
    finally:
        torch.set_num_threads(threads)
    report = json.loads(out.read_text())
    assert [row["edges"] for row in report["results"]] == [10_000, 20_000]
    assert [row["nodes"] for row in report["results"]] == [1000, 2000]
    # Z of 8 floats: of all nodes in the first layer, of the training nodes (60 %) in the second.
    assert report["results"][1]["table_mb"] == pytest.approx((2000 + 1200) * 8 * 4 / 2**20)
    assert "<svg" in picture.read_text()
    assert "theory: 1" in capsys.readouterr().out


def test_the_exponent_of_a_power_law():
    rows = [{"edges": e, "x_seconds": 3e-9 * e**1.25} for e in (1e5, 1e6, 2e7)]
    assert scale.slope(rows, "x") == pytest.approx(1.25)
    assert scale.slope(rows[:1], "x") is None


def test_what_does_not_fit_is_skipped(monkeypatch):
    monkeypatch.setattr(scale, "available", lambda: 10)
    report = scale.measure([10**5], threads=1, width=8, sampler="neighbor", estimator="anchored",
                           batch_size=5, rounds=1, seed=0)  # fmt: skip
    assert report["results"] == []
    assert "GB" in report["skipped"]["1e+05"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["scale", "--edges", "1e5,many"], "--edges is '1e5,many', expected whole numbers"),
        (["scale", "--batch-size", "0"], "--batch-size is 0, expected"),
        (["scale", "--sampler", "neighbour"], "did you mean 'neighbor'"),
        (["scale", "--picture", "a.gif"], "expected a name that ends with"),
        (["startup", "--rounds", "0"], "--rounds is 0, expected"),
    ],
)
def test_refusals(capsys, argv, words):
    assert main(argv) == 2
    assert words in capsys.readouterr().err


def test_steps_are_read_from_a_file_that_grows(tmp_path):
    file = tmp_path / "metrics.jsonl"
    assert startup._steps(file) == []
    file.write_text('{"event": "score"}\n{"event": "step", "snapshot": true}\n{"event": "st')
    assert [step["snapshot"] for step in startup._steps(file)] == [True]


def test_startup_table():
    found = {"help_cpu": 0.1, "warm_first": 1.5, "warm_regular": 1.6, "warm_regular_cpu": 1.4}
    found |= {"cold_said": 1, "cold_regular": 20.0, "cold_regular_cpu": 19.0, "compiling": 17.6}
    words = startup.table({"results": found, "data": "debian", "threads": 1, "rounds": 3})
    assert "17.60 s of CPU" in words
    assert "compiling, told" in words


# -- a quick start --------------------------------------------------------------------------------


def python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | more, capture_output=True, text=True,
        check=True,
    )  # fmt: skip


# -- files of benchmarks --------------------------------------------------------------------------


def test_compare():
    old = {
        "sampling": {"ratios": {"g/ladies/numpy": 4.0, "g/x/numpy": 1.0}, "results": [
            {"graph": "g", "sampler": "ladies", "implementation": "sgcn", "ms": 2.0, "edges": 7}]},
        "scale": {"results": [{"edges": 100, "nodes": 10, "regular_seconds": 0.5}]},
        "startup": {"results": {"help_cpu": 0.1}},
    }  # fmt: skip
    new = json.loads(json.dumps(old))
    new["sampling"]["ratios"] = {"g/ladies/numpy": 8.0}
    new["sampling"]["results"][0]["ms"] = 1.0
    found = compare.figures(old)
    assert found == {
        "sampling: ratio g/ladies/numpy": 4.0, "sampling: ratio g/x/numpy": 1.0,
        "sampling: g/ladies/sgcn ms": 2.0, "scale: 100 regular_seconds": 0.5,
        "startup: help_cpu": 0.1,
    }  # fmt: skip
    lines = compare.changes(found, compare.figures(new), 1.1)
    assert lines[1].split()[-3:] == ["4", "8", "2.00"]
    assert lines[2].split()[-3:] == ["2", "1", "0.50"]
    assert lines[3:] == ["only in the old: 1", "2 of 4 figures changed by 1.1x or more"]


def test_short_table():
    words = short.table({
        "commands": {"step": "the step", "scale": "the scale"}, "failed": ["startup"],
        "step": {"ratios": {"g/1/full/torch": 1.5}},
        "scale": {"results": [{"edges": 1000, "regular_seconds": 0.01, "snapshot_seconds": 0.2,
                               "peak_mb": 50.0}]},
    })  # fmt: skip
    assert "| g/1/full/torch | 1.50 |" in words
    assert "| 1,000 | 10.0 | 0.200 | 50 |" in words
    assert "startup failed." in words
