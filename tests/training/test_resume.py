"""Contract 5, training: a run that is killed and resumed ends as the run that was never killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from learning import labelled
from sgcn.cli import main
from sgcn.training.events import EpochEvent
from sgcn.training.sinks import JsonLines

# What is trained, and how it is stopped, one signal after the other: before the first checkpoint
# (None), or so many steps after the last one.
RUNS: dict[str, tuple[list[str], list[tuple[int, tuple[int, int] | None]]]] = {
    "anchored": (["--set", "training.probe_every=9"], 2 * [(signal.SIGKILL, (1, 120))]),
    "large batch": (
        ["--set", "estimator.snapshot_nodes=0.5", "--set", "model.dropout=0.3",
         "--set", "estimator.growth=0.5", "--set", "estimator.table_storage=disk"],
        2 * [(signal.SIGKILL, (1, 120))],
    ),
    "sgcn": (
        ["--estimator", "sgcn", "--set", "optimizer.name=sgd", "--set", "optimizer.momentum=0.9"],
        [(signal.SIGKILL, None), (signal.SIGINT, (1, 120))],
    ),
    # Stopped in order, at any step: between snapshots histories are in the checkpoint.
    **{
        f"{name}, by signals": (
            ["--estimator", name, "--set", "training.checkpoint_seconds=1e9", *more],
            [(signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGINT, None)],
        )
        for name, more in {
            "sgcn++": ["--set", "estimator.layer_gradients=true", "--set", "optimizer.name=muon"],
            "anchored++": ["--set", "estimator.snapshot_nodes=0.5", "--set", "estimator.gap=50"],
            "vrgcn++": ["--set", "estimator.table_dtype=bfloat16",
                        "--set", "optimizer.schedule=plateau", "--set", "optimizer.wait=20"],
        }.items()
    },
}  # fmt: skip
FIXED = [
    "--quiet", "--epochs", "40", "--set", "training.patience=none", "--batch-size", "16",
    "--set", "model.widths=8", "--set", "training.checkpoint_seconds=0",
]  # fmt: skip
STEPS = 40 * 7


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    graph = labelled(nodes=200)
    path = tmp_path_factory.mktemp("data") / "graph.npz"
    names = ("indptr", "indices", "x", "y", "split")
    np.savez(path, **{name: getattr(graph, name) for name in names})
    return path


def start(*arguments: str | Path) -> subprocess.Popen:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "sgcn", "train", *map(str, arguments)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen) -> None:
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    assert out == ""


def checkpoint(run: Path) -> int:
    """The step of the last checkpoint."""
    try:
        return int((run / "state" / "current").read_text().removeprefix("step-"))
    except FileNotFoundError:
        return 0


def stop(process: subprocess.Popen, run: Path, how: int, steps: int | None) -> None:
    """Send signal ``how`` once ``steps`` more are in a checkpoint, or before there is one."""
    first, lines = checkpoint(run), written(run)
    while (
        # The first step is always slow: some lines say that training is under way.
        written(run) < lines + 10 if steps is None else checkpoint(run) < first + steps
    ):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)
    process.send_signal(how)
    _, error = process.communicate(timeout=60)
    if how == signal.SIGKILL:
        assert process.returncode == -how, error
        return
    assert process.returncode == 128 + how, error
    assert error.endswith(f"go on with: sgcn train --resume {run}\n")
    assert error.count("\n") == 1
    assert checkpoint(run) > first  # whatever checkpoint_seconds says


def written(run: Path) -> int:
    """Lines of the metrics so far."""
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def events(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def timeless(event: dict) -> dict:
    times = ("seconds", "sampling", "transfer", "compute", "evaluation")
    return {key: value for key, value in event.items() if key not in times}


def check_same(run: Path, whole: Path) -> None:
    assert (run / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert [timeless(e) for e in events(run)] == [timeless(e) for e in events(whole)]
    assert [e["step"] for e in events(run) if e["event"] == "step"] == list(range(STEPS))
    ours, theirs = (json.loads((r / "summary.json").read_text()) for r in (run, whole))
    for name in ("test", "validation", "best_step", "steps", "snapshots", "restarts"):
        assert ours[name] == theirs[name]
    left = [{path.name for path in folder.iterdir()} - {"state"} for folder in (run, whole)]
    assert left[0] == left[1]


def test_metrics_go_on_where_the_checkpoint_was(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("kept\ndropped\ncut sho")
    sink = JsonLines(path)
    sink.resume({"bytes": 5})
    sink.start(1, 1)
    assert sink.state() == {"bytes": 5}
    sink.emit(EpochEvent(0, 0, 0.5, None, 1.0))
    sink.close()
    kept, event = path.read_text().splitlines()
    assert kept == "kept"
    assert json.loads(event)["loss"] == 0.5


@pytest.mark.parametrize("name", RUNS)
def test_stopped_and_resumed(name, data, tmp_path):
    """By a real process, at random moments that a seed fixes; the whole run in this process."""
    options, stops = RUNS[name]
    chance = random.Random(name)
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert main(["train", str(data), "--out", str(whole), *FIXED, *options]) == 0

    process = start(data, "--out", run, *FIXED, *options)
    for how, steps in stops:
        stop(process, run, how, None if steps is None else chance.randint(*steps))
        assert not (run / "summary.json").exists()
        process = start("--resume", run, "--quiet")
    finish(process)
    check_same(run, whole)
