"""The commands of training through the real command line: what they write, say and refuse."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import load_file

from learning import labelled
from sgcn.cli import main
from sgcn.data.synthetic import NAMED
from sgcn.runs import directory as runs
from sgcn.runs.config import assign, make_config, read_toml
from sgcn.training import checkpoints as checkpoint
from sgcn.training import loop as training

SMALL = ["--set", "model.widths=8", "--set", "training.batch_size=16"]


def write_npz(path: Path, **changed) -> Path:
    graph = labelled(nodes=80)
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "x": graph.x, "y": graph.y,
              "split": graph.split} | changed  # fmt: skip
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_npz(tmp_path_factory.mktemp("data") / "small.npz")


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory) -> Path:
    """A run that several tests look at; none of them changes it."""
    out = tmp_path_factory.mktemp("runs") / "a"
    assert train(data, out, "--epochs", "3", "--seed", "2") == 0
    return out


def train(data, out, *options) -> int:
    return main(["train", str(data), "--out", str(out), "--quiet", *SMALL, *map(str, options)])


def refusal(capsys, code: int, expected: int = 2) -> str:
    """The one sentence of a refusal."""
    said = capsys.readouterr()
    assert code == expected
    assert said.out == ""
    assert re.fullmatch(r"sgcn: error: [^\n]+\n", said.err), said.err
    return said.err


# -- a run --------------------------------------------------------------------------------------


def test_what_a_run_directory_holds(finished):
    wanted = {"config.toml", "metrics.jsonl", "summary.json", "model.safetensors", "curves.png",
              "scaling.safetensors"}  # fmt: skip
    assert {path.name for path in finished.iterdir()} - {"state"} == wanted
    assert (finished / "curves.png").read_bytes().startswith(b"\x89PNG")

    summary = json.loads((finished / "summary.json").read_text())
    assert {"test", "validation", "best_step", "steps", "snapshots", "seconds", "peak_rss_mb",
            "seed", "versions"} <= set(summary)  # fmt: skip
    for part in ("test", "validation"):
        assert set(summary[part]) == {"f1_micro", "loss"}
    assert {"total", "sampling", "compute", "snapshot", "evaluation"} <= set(summary["seconds"])
    assert summary["seed"] == 2
    assert summary["steps"] == 3 * 3
    assert {"sgcn", "python", "torch", "numpy"} <= set(summary["versions"])

    events = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    steps = [event for event in events if event["event"] == "step"]
    assert [event["step"] for event in steps] == list(range(9))
    for name in ("loss", "gradient_norm", "norm_growth", "sampling", "transfer", "compute"):
        assert all(np.isfinite(event[name]) for event in steps)
    assert sum(event["snapshot"] for event in steps) == summary["snapshots"]
    spent = sum(e["sampling"] + e["transfer"] + e["compute"] for e in steps)
    assert spent <= summary["seconds"]["total"]
    assert [e["epoch"] for e in events if e["event"] == "epoch"] == [0, 1, 2]


def test_the_configuration_comes_back(finished, data):
    values = read_toml(finished / "config.toml")
    config = make_config(values)
    assert config.to_toml() == (finished / "config.toml").read_text()
    assert values["model"]["widths"] == 8
    assert values["training"]["preaggregate"] is True  # what was decided, not "none"
    assert values["model"]["layer"] == "mean"  # what auto stood for
    assert values["estimator"]["snapshot_nodes"] == "none"
    assert config.training.estimator.snapshot_nodes is None
    assert values["estimator"]["restart"] == "never"
    assert set(values) == {"data", *config.training.tables()}


def test_a_run_is_its_configuration(finished, tmp_path, data):
    """The file alone makes the same run again."""
    code = main(["train", "--config", str(finished / "config.toml"), "--out", str(tmp_path / "b"),
                 "--quiet"])  # fmt: skip
    assert code == 0
    for name in ("model.safetensors", "config.toml"):
        assert (tmp_path / "b" / name).read_bytes() == (finished / name).read_bytes()


def test_every_option_survives_the_file(tmp_path):
    odd = {
        "data": 'with "quotes" and \\ in it.npz',
        "sampler": {"name": "ladies", "sizes": [3, 4], "weighting": "row"},
        "estimator": {"name": "sgcn++", "restart": "norm", "snapshot_nodes": 0.5, "alpha": 1e300},
        "model": {"widths": [5, 6], "dropout": 1e-5},
        "optimizer": {"name": "sgd", "lr": 1e-7},
        "training": {"patience": 3},
        "task": {"best_by": "loss", "metrics": ["accuracy"], "class_weight": [1.0, 2]},
    }
    config = make_config(odd)
    again = make_config(tomllib.loads(config.to_toml()))
    assert again == config
    assert again.training.estimator.schedule.restart.alpha == 1e300


def test_the_file_the_names_and_set(tmp_path, data):
    """A file first, then names, then --set; options of another sampler are left behind."""
    file = tmp_path / "c.toml"
    sections = ("[sampler]\nsizes = 3", '[estimator]\nname = "sgcn"', "[training]\nseed = 5")
    file.write_text("\n".join(['data = "x"', *sections]))
    out = tmp_path / "run"
    assert train(data, out, "--config", file, "--sampler", "neighbor", "--estimator", "sgcn+",
                 "--set", "estimator.gap=4", "--epochs", 1) == 0  # fmt: skip
    values = read_toml(out / "config.toml")
    assert values["data"] == str(data)
    assert (values["sampler"]["sizes"], values["training"]["seed"]) == (3, 5)
    assert (values["estimator"]["name"], values["estimator"]["gap"]) == ("sgcn+", 4)
    assert values["estimator"]["forward"] == "recursive"
    assert train(data, out, "--config", file, "--sampler", "labor", "--epochs", 1, "--force") == 0
    assert read_toml(out / "config.toml")["sampler"]["sizes"] != 3


@pytest.mark.parametrize("source", ["npz", "sparse npz", "directory", "multi-label npz"])
def test_where_data_comes_from(source, tmp_path):
    x = labelled(nodes=80).x
    if source == "directory":
        path = tmp_path / "graph"
        labelled(nodes=80).save(path)
    elif source == "sparse npz":
        s = sp.csr_array(np.where(x > 0.5, x, 0))
        path = write_npz(tmp_path / "g.npz", x=None, x_indptr=s.indptr, x_indices=s.indices,
                         x_data=s.data, x_shape=np.array(s.shape))  # fmt: skip
    else:
        y = labelled(multi_label=source != "npz", nodes=80).y
        path = write_npz(tmp_path / "g.npz", y=y)
    assert train(path, tmp_path / "run", "--epochs", 1) == 0
    layer = read_toml(tmp_path / "run" / "config.toml")["model"]["layer"]
    assert layer == ("concat" if source.startswith("multi") else "mean")


def test_the_default_place(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(data), "--quiet", "--epochs", "1", *SMALL]) == 0
    assert (tmp_path / "runs" / "small-neighbor-anchored++-0" / "summary.json").is_file()


def test_default_places_do_not_collide(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        shutil.copy(data, Path(folder) / "g.npz")
    runs = tmp_path / "runs"
    for source, options in (("a", []), ("b", []), ("a", ["--set", "model.widths=9"])):
        assert main(["train", f"{source}/g.npz", "--quiet", "--epochs", "1", *SMALL, *options]) == 0
    name = "g-neighbor-anchored++-0"
    assert {path.name for path in runs.iterdir()} == {name, f"{name}-run2", f"{name}-run3"}
    assert str(Path("b").resolve()) in (runs / f"{name}-run2" / "config.toml").read_text()
    assert main(["train", "a/g.npz", "--quiet", "--force", "--epochs", "1", *SMALL]) == 0
    assert len([*runs.iterdir()]) == 3  # --force replaces the first
    for place in ("compare", "compare-run2"):
        code = main(["compare", "a/g.npz", "--vary", "estimator=sgcn", "--quiet", "--epochs", "1",
                     *SMALL])  # fmt: skip
        assert code == 0
        assert (runs / place / "sgcn" / "summary.json").is_file()


def test_a_stopped_run_says_where_it_is(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    taken = Path("runs/small-neighbor-anchored++-0")
    taken.mkdir(parents=True)

    class Stopped(training.StopRequest):
        signal = property(lambda self: 2, lambda self, value: None)

    monkeypatch.setattr(training, "StopRequest", Stopped)
    assert main(["train", str(data), "--quiet", "--epochs", "1", *SMALL]) == 130
    assert f"sgcn train --resume {taken}-run2" in capsys.readouterr().err


def test_progress_and_quiet(data, tmp_path, capsys):
    assert main(["train", str(data), "--out", str(tmp_path / "a"), "--epochs", "2", *SMALL]) == 0
    said = capsys.readouterr()
    line = r"step \d+ of 6, epoch \d: loss [\d.]+, validation F1 [\d.]+, [\d.]+ s\n"
    _, first, second, third, rest = said.err.split("\n", 4)  # too short for trials
    assert re.fullmatch(rf"{re.escape(str(data))}: \d+ nodes, .*features, \d classes, .*", first)
    count = sum(p.numel() for p in runs.open_run(tmp_path / "a")[2].parameters())
    assert re.fullmatch(
        rf"mean, 2 layers, widths \d+, {count:,} parameters; sampler neighbor, estimator "
        r"anchored\+\+, gap 2, warmup 2, optimizer muon, lr 0.02; cpu, \d+ threads", second,
    )  # fmt: skip
    assert third == f"into {tmp_path / 'a'}"
    assert re.fullmatch(rf"({line})+", rest)
    wanted = (
        r"test F1 [\d.]+, loss [\d.]+; validation F1 ([\d.]+), loss [\d.]+ at step (\d+), the "
        r"best; [\d.]+ s; curves in .*curves.png\n"
    )
    found = re.fullmatch(wanted, said.out)
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    best = f"{summary['validation']['f1_micro']:.4f}", str(summary["best_step"])
    assert found is not None
    assert found.groups() == best
    assert train(data, tmp_path / "b", "--epochs", 1) == 0
    assert capsys.readouterr() == ("", "")


def test_no_run_waits_for_the_compiler_of_torch(data, tmp_path):
    code = (
        "import sys; from sgcn.cli import main; code = main(sys.argv[1:])\n"
        "sys.exit(code or 'torch._dynamo' in sys.modules)"
    )
    arguments = ["train", data, "--out", tmp_path / "run", "--quiet", "--epochs", 1, *SMALL]
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=False)
    assert done.returncode == 0


# -- evaluate, predict, compare, data list ------------------------------------------------------


def test_evaluate(finished, capsys):
    assert main(["evaluate", str(finished)]) == 0
    scores = json.loads(capsys.readouterr().out)
    summary = json.loads((finished / "summary.json").read_text())
    assert set(scores) == {"train", "validation", "test"}
    assert scores["test"] == summary["test"]
    assert scores["validation"] == summary["validation"]


def test_an_unfinished_run_says_so(finished, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "summary.json").unlink()
    for command in (["evaluate"], ["predict", "--out", str(tmp_path / "p.csv")]):
        assert main([*command, str(finished)]) == 0
        assert capsys.readouterr().err == ""
        assert main([*command, str(run)]) == 0
        said = capsys.readouterr().err
        assert re.fullmatch(rf"{run} is not finished, [^\n]*sgcn train --resume {run}\n", said)


def test_widths_with_commas(data, tmp_path):
    for at, options in enumerate((["--widths", "6,4"], ["--set", "model.widths=6,4"])):
        out = ["--out", str(tmp_path / f"{at}"), "--quiet"]
        assert main(["train", str(data), *out, "--epochs", "1", *SMALL[2:], *options]) == 0
        assert read_toml(tmp_path / f"{at}" / "config.toml")["model"]["widths"] == [6, 4]


def test_predict(finished, tmp_path, capsys):
    arrays = {}
    for name, flags in {"logits": [], "p": ["--probabilities"], "h": ["--embeddings"]}.items():
        out = tmp_path / f"{name}.npy"
        assert main(["predict", str(finished), "--out", str(out), *flags]) == 0
        arrays[name] = np.load(out)
    assert arrays["logits"].shape == arrays["p"].shape == (80, 4)
    assert arrays["h"].shape == (80, 8)
    np.testing.assert_allclose(arrays["p"].sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        arrays["p"], torch.from_numpy(arrays["logits"]).softmax(1), rtol=1e-5, atol=1e-7
    )
    weights = load_file(finished / "model.safetensors")
    np.testing.assert_allclose(
        arrays["h"] @ weights["head.weight"].numpy().T + weights["head.bias"].numpy(),
        arrays["logits"], rtol=1e-4, atol=1e-5,
    )  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"logits.npy", "p.npy", "h.npy"}


def test_predict_multi_label(tmp_path):
    data = write_npz(tmp_path / "g.npz", y=labelled(multi_label=True, nodes=80).y)
    assert train(data, tmp_path / "run", "--epochs", 1) == 0
    out = tmp_path / "p.npy"
    assert main(["predict", str(tmp_path / "run"), "--out", str(out), "--probabilities"]) == 0
    p = np.load(out)
    assert ((p > 0) & (p < 1)).all()
    assert not np.allclose(p.sum(1), 1)


def test_compare(data, tmp_path, capsys):
    out = tmp_path / "c"
    arguments = ["compare", str(data), "--vary", "estimator=full,sgcn++", "--out", str(out),
                 "--epochs", "2", "--quiet", *SMALL]  # fmt: skip
    assert main(arguments) == 0
    said = capsys.readouterr().out
    for name in ("full", "sgcn++"):
        test = json.loads((out / name / "summary.json").read_text())["test"]["f1_micro"]
        assert re.search(rf"^{re.escape(name)} +{test:.4f}", said, re.M)
    assert str(out / "curves.png") in said
    assert (out / "curves.png").is_file()
    assert "is a run already" in refusal(capsys, main(arguments))
    assert main([*arguments, "--force"]) == 0


def test_compare_varies_any_keys_with_several_seeds(data, tmp_path, capsys):
    """Every combination, means over seeds and their spread, against the summaries."""
    code = main(["compare", str(data), "--vary", "sampler=neighbor,ladies", "--vary",
                 "optimizer.lr=0.003,0.01", "--vary", "sampler.sizes=[3,2]", "--seeds", "1,4-5",
                 "--out", str(tmp_path), "--epochs", "1", "--quiet", *SMALL])  # fmt: skip
    assert code == 0
    said = capsys.readouterr().out
    tests = []
    for seed in (1, 4, 5):
        run = tmp_path / "sampler=ladies-optimizer.lr=0.003-sampler.sizes=-3-2-" / f"seed-{seed}"
        config = tomllib.loads((run / "config.toml").read_text())
        assert (config["training"]["seed"], config["optimizer"]["lr"]) == (seed, 0.003)
        assert (config["sampler"]["name"], config["sampler"]["sizes"]) == ("ladies", [3, 2])
        tests.append(json.loads((run / "summary.json").read_text())["test"]["f1_micro"])
    line = next(line for line in said.splitlines() if line.startswith("sampler=ladies, optimizer"))
    assert f"{np.mean(tests):.4f} ± {np.std(tests, ddof=1):.4f}" in line
    assert len(said.strip().split("\n\n")[0].splitlines()) == 1 + 4


def test_what_is_given_beside_what_varies_stays(data, tmp_path):
    """In whatever order, with the options of --set and the flags."""
    args = ["compare", str(data), "--vary", "sampler.sizes=3,7", "--vary", "sampler=neighbor,labor",
            "--vary", "optimizer=adam,sgd,adam", "--lr", "0.003", "--set", "estimator.gap=7",
            "--estimator", "anchored", "--epochs", "1", "--quiet", *SMALL]  # fmt: skip
    assert main([*args, "--out", str(tmp_path)]) == 0
    runs = sorted(tmp_path.glob("*/config.toml"))
    assert len(runs) == 2 * 2 * 2
    for run in runs:
        config = tomllib.loads(run.read_text())
        shown = run.parent.name
        assert f"sampler.sizes={config['sampler']['sizes']}-" in shown
        assert f"sampler={config['sampler']['name']}-" in shown
        assert shown.endswith(f"optimizer={config['optimizer']['name']}")
        assert (config["optimizer"]["lr"], config["estimator"]["gap"]) == (0.003, 7)


def test_a_setting_that_diverges_does_not_end_the_others(data, tmp_path, capsys):
    code = main(["compare", str(data), "--vary", "optimizer.lr=0.01,1e30", "--epochs", "1",
                 "--vary", "optimizer=sgd", "--out", str(tmp_path), "--quiet", *SMALL])  # fmt: skip
    said = capsys.readouterr()
    assert code == 0
    assert "blew up" in said.err
    assert "optimizer.lr=0.01" in said.out
    assert "1e30" not in said.out


def test_train_with_several_seeds(data, tmp_path, capsys):
    assert train(data, tmp_path / "run", "--seeds", "0-1", "--epochs", 1) == 0
    assert re.search(r"^neighbor, anchored\+\+ .*±", capsys.readouterr().out, re.M)
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert written == {"seed-0", "seed-1", "curves.png"}


def test_what_the_first_seed_chose_holds_for_the_others(data, tmp_path, monkeypatch):
    asked = []

    def decide(config, *_):
        asked.append(config.training.loop.seed)
        section = config.training.model.with_options(layer="concat", dropout=0.25)
        return replace(config, training=replace(config.training, model=section))

    monkeypatch.setattr(runs, "decide", decide)
    assert train(data, tmp_path, "--seeds", "3,5", "--epochs", 1) == 0
    assert asked == [3]
    for seed in (3, 5):
        values = read_toml(tmp_path / f"seed-{seed}" / "config.toml")
        assert (values["model"]["layer"], values["model"]["dropout"]) == ("concat", 0.25)
        assert values["training"]["seed"] == seed


@pytest.mark.parametrize("where", ["in a run", "between runs"])
def test_a_stopped_comparison_goes_on(where, data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["compare", str(data), "--vary", "estimator=sgcn,full,sgcn+", "--epochs", "2",
               "--quiet", *SMALL]  # fmt: skip
    real = runs.train

    def stop(config, out, **options):
        if out.name == "full":
            if where == "between runs":
                raise KeyboardInterrupt
            signals = property(lambda self: 2, lambda self, value: None)
            monkeypatch.setattr(training, "StopRequest", type(
                "Stopped", (training.StopRequest,), {"signal": signals}))  # fmt: skip
        return real(config, out, **options)

    with monkeypatch.context() as patch:
        patch.setattr(runs, "train", stop)
        before = training.StopRequest
        said = refusal(capsys, main(command), 130)
        monkeypatch.setattr(training, "StopRequest", before)
    assert "after 1 of 3 runs; go on with the same command and --resume --out runs/compare" in said
    kept = Path("runs/compare/sgcn/summary.json").read_bytes()
    code = main([*command, "--resume", "--set", "estimator.gap=3"])
    assert "with estimator.gap = 10, expected 3" in refusal(capsys, code)
    code = main(["compare", "debian", *command[2:], "--resume"])
    assert f"was begun on {data.resolve()}, expected debian" in refusal(capsys, code)
    assert main([*command, "--resume"]) == 0
    assert len(capsys.readouterr().out.split("\n\n")[0].splitlines()) == 1 + 3
    assert Path("runs/compare/sgcn/summary.json").read_bytes() == kept
    assert {path.name for path in Path("runs").iterdir()} == {"compare"}
    shutil.rmtree("runs")
    assert "does not exist" in refusal(capsys, main([*command, "--resume"]))


def test_stopped_seeds_go_on(data, tmp_path, capsys):
    command = ["--seeds", "0-1", "--epochs", 1]
    assert train(data, tmp_path / "a", *command) == 0
    shutil.rmtree(tmp_path / "a" / "seed-1")
    first = capsys.readouterr().out
    code = main(["train", str(data), "--quiet", *SMALL, *map(str, command), "--resume",
                 str(tmp_path / "a")])  # fmt: skip
    assert code == 0
    assert capsys.readouterr().out.split()[:13] == first.split()[:13]  # with its mean and spread
    assert (tmp_path / "a" / "seed-1" / "summary.json").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--vary", "lr=0.1"], "--vary got 'lr=0.1', expected a key and its values"),
        (["--vary", "lr=0.1,1"], "did you mean optimizer.lr=0.1,1?"),
        (["--vary", "optimizer.lr="], "--vary got 'optimizer.lr='"),
        (["--vary", "optimizer.lr=x"], "lr is 'x', expected a number > 0"),
        (["--seeds", "3-1"], "--seeds got '3-1', expected seeds like 0-4"),
        (["--seeds", "a"], "--seeds got 'a'"),
        (["--seeds", "0-1", "--seed", "7"], "--seed 7 stands beside --seeds 0-1"),
    ],
)
def test_what_cannot_be_varied(data, tmp_path, capsys, options, words):
    code = main(["compare", str(data), *options, "--out", str(tmp_path / "c"), "--quiet"])
    assert words in refusal(capsys, code)
    assert not (tmp_path / "c").exists()


def test_data_list(capsys):
    assert main(["data", "list"]) == 0
    said = capsys.readouterr().out
    assert all(re.search(rf"^{re.escape(name)} ", said, re.M) for name in NAMED)


# -- resume -------------------------------------------------------------------------------------


def test_resuming_a_finished_run(finished, capsys):
    before = {path: path.stat().st_mtime_ns for path in finished.iterdir()}
    assert main(["train", "--resume", str(finished)]) == 0
    assert "is finished" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in finished.iterdir()} == before


STOPPED = ["--epochs", 3, "--set", "training.checkpoint_seconds=0", "--set", "estimator.gap=2"]


@pytest.fixture
def stopped(data, tmp_path, monkeypatch) -> Path:
    """A run that was interrupted after a checkpoint."""
    out = tmp_path / "run"

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_tensors", interrupted)
        assert train(data, out, *STOPPED) == 130
    assert (out / "state" / "current").is_file()
    return out


def test_resume(stopped, data, tmp_path, monkeypatch):
    first, saved = int((stopped / "state" / "current").read_text().removeprefix("step-")), []

    def save_state(folder, step, *rest):
        saved.append(step)
        checkpoint.save_state(folder, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(training, "save_state", save_state)
        assert main(["train", "--resume", str(stopped), "--quiet"]) == 0
    # The checkpoint that a run came from is not written again: a kill would find neither.
    assert all(step > first for step in saved)
    assert train(data, tmp_path / "whole", *STOPPED) == 0
    name = "model.safetensors"
    assert (stopped / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_checkpoint_of_another_model(stopped, capsys):
    text = (stopped / "config.toml").read_text()
    (stopped / "config.toml").write_text(text.replace("widths = 8", "widths = 9"))
    said = refusal(capsys, main(["train", "--resume", str(stopped), "--quiet"]))
    assert "does not fit this model" in said


@pytest.mark.parametrize("name", ["facts.json", "tensors.safetensors"])
def test_a_checkpoint_that_is_cut_short(stopped, capsys, name):
    here = stopped / "state" / (stopped / "state" / "current").read_text() / name
    here.write_bytes(here.read_bytes()[:50])
    said = refusal(capsys, main(["train", "--resume", str(stopped), "--quiet"]))
    assert "cannot be read" in said


def test_unfinished_runs_cannot_be_used(stopped, tmp_path, capsys):
    for command in (["evaluate"], ["predict", "--out", str(tmp_path / "p.npy")]):
        assert "sgcn train --resume" in refusal(capsys, main([*command, str(stopped)]))


def test_weights_of_another_model(finished, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace("widths = 8", "widths = 9"))
    assert "does not fit" in refusal(capsys, main(["evaluate", str(run)]))


# -- what is refused ----------------------------------------------------------------------------

OPTIONS = {
    "an unknown sampler": (["--sampler", "ladis"], "did you mean 'ladies'"),
    "an unknown estimator": (["--estimator", "sgcn+++"], "did you mean 'sgcn++'"),
    "an unknown option": (["--set", "sampler.size=3"], "did you mean 'sizes'"),
    "an unknown key": (["--set", "training.epoch=3"], "did you mean 'epochs'"),
    "an unknown estimator option": (["--set", "estimator.gapp=3"], "did you mean 'gap'"),
    "an unknown section": (["--set", "modle.widths=3"], "did you mean 'model'"),
    "an unknown layer": (["--set", "model.layer=gat"], "layer is 'gat'"),
    "an unknown optimiser": (["--set", "optimizer.name=adamm"], "name is 'adamm'"),
    "an unknown activation": (["--set", "model.activation=rel"], "activation is 'rel'"),
    "a file that is not there": (["--config", "nowhere.toml"], "nowhere.toml does not exist"),
    "no assignment": (["--set", "training"], "expected section.key=value"),
    "no section": (["--set", "layer=gin"], "did you mean model.layer=gin?"),
    "no section of a sampler": (["--set", "sizes=3"], "did you mean sampler.sizes=3?"),
    "zero epochs": (["--epochs", "0"], "epochs is 0"),
    "a batch of zero": (["--set", "training.batch_size=0"], "batch_size is 0"),
    "a width of zero": (["--set", "model.widths=0"], "widths is 0"),
    "zero layers": (["--set", "model.layers=0"], "layers is 0"),
    "a size of zero": (["--set", "sampler.sizes=0"], "sizes is 0"),
    "a gap of zero": (["--set", "estimator.gap=0"], "gap is 0"),
    "a learning rate of zero": (["--set", "optimizer.lr=0"], "lr is 0"),
    "a negative seed": (["--seed", "-1"], "seed is -1"),
    "full dropout": (["--set", "model.dropout=1.0"], "dropout is 1.0"),
    "sizes that do not fit": (["--set", "sampler.sizes=[3, 4, 5]"], "sizes has 3 entries"),
    "widths that do not fit": (
        ["--layers", "2", "--set", "model.widths=[3, 4, 5]"], "widths has 3 entries",
    ),
    "nothing to sample": (
        ["--set", "training.preaggregate=true", "--set", "model.layers=1"], "at least two layers",
    ),
    "attention before": (
        ["--set", "training.preaggregate=true", "--set", "model.layer=attention"],
        "switch preaggregate off",
    ),
    "no own rows": (
        ["--sampler", "ladies", "--set", "sampler.keep_destinations=false", "--set",
         "sampler.sizes=1", "--set", "model.layer=concat"],
        "keep_destinations to true",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(case, data, tmp_path, capsys):
    options, words = OPTIONS[case]
    assert words in refusal(capsys, train(data, tmp_path / "run", *options))
    assert list(tmp_path.iterdir()) == []


def bad(array, value):
    array = np.array(array)
    array[0] = value
    return array


BASE = labelled(nodes=80)
DATA = {
    "labels below": ({"y": bad(BASE.y, -2)}, "y holds -2"),
    "classes as floats": ({"y": BASE.y + 0.0}, "y holds whole numbers as float64"),
    "numbers without end": ({"y": BASE.y + np.inf}, "y holds infinite numbers"),
    "labels that are words": ({"y": BASE.y.astype(str)}, "expected whole class numbers"),
    "multi-labels": ({"y": np.full((80, 3), 2)}, "values other than 0 and 1"),
    "no labels": ({"y": None}, "no labels"),
    "nobody labelled": ({"y": np.full(80, -1)}, "labels no node"),
    "labels of fewer nodes": ({"y": BASE.y[:-1]}, "79"),
    "no training nodes": ({"split": np.ones(80, np.int8)}, "no labelled training nodes"),
    "training nodes without labels": (
        {"y": np.where(BASE.split == 0, -1, BASE.y)}, "no labelled training nodes",
    ),
    "no split": ({"split": None}, "no split"),
    "NaN": ({"x": bad(BASE.x, np.nan)}, "NaN or infinite"),
    "infinite": ({"x": bad(BASE.x, np.inf)}, "NaN or infinite"),
    "no features": ({"x": None}, "no features"),
    "features of fewer nodes": ({"x": BASE.x[:-1]}, "79"),
    "an edge to nowhere": ({"indices": bad(BASE.indices, 80)}, "80"),
}  # fmt: skip


@pytest.mark.parametrize("case", DATA)
def test_bad_data(case, tmp_path, capsys):
    changed, words = DATA[case]
    path = write_npz(tmp_path / "g.npz", **changed)
    assert words in refusal(capsys, train(path, tmp_path / "run"))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["name", "npz", "directory", "pickle", "no zip"])
def test_data_that_is_none(kind, tmp_path, capsys):
    path: str | Path = "flickr-lik"
    if kind == "npz":
        path = tmp_path / "no.npz"
    elif kind == "directory":
        path = tmp_path / "d"
        path.mkdir()
    elif kind == "pickle":
        path = write_npz(tmp_path / "g.npz", y=np.array([{}] * 80))
    elif kind == "no zip":
        path = tmp_path / "g.npz"
        path.write_text("hello")
    refusal(capsys, train(path, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pubmed.pt", "`sgcn data import pyg pubmed.pt --out pubmed`"),
        ("g.json", "`sgcn data import networkx g.json --out g`"),
        ("edges.csv.gz", "`sgcn data import edgelist edges.csv.gz --out edges`"),
        ("graph.gml", "`sgcn data import --formats`"),
        ("graph.pkl", "`sgcn data import --formats`"),
        ("folder", "`sgcn data import --formats`"),
        ("no.npz", "no.npz does not exist"),
        ("debain", "did you mean 'debian'"),
    ],
)
def test_what_is_wrong_is_the_data_and_not_the_place(name, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "folder":
        Path(name).mkdir()
    elif name.startswith("graph"):
        Path(name).touch()
    taken = Path("runs")
    taken.mkdir()
    (taken / "config.toml").touch()
    assert words in refusal(capsys, main(["train", name, "--out", str(taken)]))
    assert words in refusal(capsys, main(["compare", name, "--out", "."]))


def test_no_data(tmp_path, capsys):
    assert "names no data" in refusal(capsys, main(["train", "--out", str(tmp_path / "run")]))


def test_a_section_that_is_no_table(tmp_path, data, capsys):
    file = tmp_path / "c.toml"
    file.write_text('sampler = "ladies"\n')
    for options in (["--sampler", "ladies"], ["--set", "sampler.sizes=3"], []):
        code = train(data, tmp_path / "run", "--config", file, *options)
        assert "expected a table of options" in refusal(capsys, code)


def test_an_existing_run(finished, data, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    before = (run / "summary.json").read_bytes()
    assert "--force or --resume" in refusal(capsys, train(data, run))
    # What is refused destroys nothing, --force or not.
    for options in (["--set", "sampler.sizes=[1, 2, 3]"], ["--sampler", "no"]):
        refusal(capsys, train(data, run, "--force", *options))
    refusal(capsys, train(tmp_path / "no.npz", run, "--force"))
    assert (run / "summary.json").read_bytes() == before
    (run / "old").write_text("gone with the old run")
    assert train(data, run, "--force", "--epochs", 1) == 0
    assert not (run / "old").exists()


def test_a_place_that_is_taken(data, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    (tmp_path / "file").write_text("x")
    for options in ([], ["--force"]):
        assert "is not a run" in refusal(capsys, train(data, tmp_path / "full", *options))
        assert "is not a run" in refusal(capsys, train(data, tmp_path / "file", *options))
        assert "cannot be made" in refusal(capsys, train(data, tmp_path / "file" / "x", *options))
    assert (tmp_path / "full" / "thesis.tex").read_text() == "x"


def test_compare_destroys_nothing_that_it_cannot_replace(data, tmp_path, capsys):
    arguments = ["compare", str(data), "--out", str(tmp_path), "--epochs", "1", "--quiet", *SMALL]
    assert main([*arguments, "--vary", "estimator=sgcn"]) == 0
    capsys.readouterr()
    before = (tmp_path / "sgcn" / "summary.json").read_bytes()
    code = main([*arguments, "--vary", "estimator=sgcn,no", "--force"])
    assert "estimator is 'no'" in refusal(capsys, code)
    assert (tmp_path / "sgcn" / "summary.json").read_bytes() == before


def test_a_full_disk(data, tmp_path, capsys, monkeypatch):
    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 1000))
        patch.setattr(runs, "decide", lambda *_: pytest.fail("trials ran before"))
        assert "free" in refusal(capsys, train(data, tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = refusal(capsys, train(data, tmp_path / "run"))
    assert "No space left on device" in said


@pytest.mark.parametrize(
    "option", [["--epochs", "3"], ["--set", "a.b=1"], ["--out", "x"], ["DATA"]]
)
def test_resume_takes_no_options(finished, capsys, option):
    code = main(["train", "--resume", str(finished), *option])
    assert "--resume takes a run as it is" in refusal(capsys, code)


def test_what_is_no_run(tmp_path, capsys):
    for command in (["evaluate"], ["predict", "--out", "x.npy"], ["train", "--resume"]):
        assert "is not a run directory" in refusal(capsys, main([*command, str(tmp_path)]))


@pytest.mark.parametrize("out", ["p.txt", "nowhere/p.npy"])
def test_predict_needs_a_place(finished, tmp_path, capsys, out):
    code = main(["predict", str(finished), "--out", str(tmp_path / out)])
    wanted = "expected a file .npy or .csv or .parquet in a directory that exists"
    assert wanted in refusal(capsys, code)


def test_training_that_blows_up(data, tmp_path, capsys):
    options = ["--set", "optimizer.name=sgd", "--set", "optimizer.lr=1e30"]
    code = train(data, tmp_path / "run", *options)
    assert "blew up" in refusal(capsys, code, 3)
    assert not (tmp_path / "run" / "summary.json").exists()


def test_a_loss_that_grew_is_no_success(data, tmp_path, capsys):
    """Finite, but far above where it began: exit code 3, and the best weights are kept."""
    options = ["--set", "optimizer.name=sgd", "--lr", "300", "--epochs", "6", "--estimator", "sgcn",
               "--set", "training.evaluate_every=1", "--set", "training.average=0"]  # fmt: skip
    said = refusal(capsys, train(data, tmp_path / "run", *options), 3)
    assert re.search(r"training diverged: the loss went from \S+ to \S+; lower the learning", said)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "training diverged" in summary["diverged"]
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["validation"]["f1_micro"] == pytest.approx(summary["validation"]["f1_micro"])
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert "is finished" in capsys.readouterr().out


def test_a_saved_graph_keeps_its_own_propagation_matrix(tmp_path):
    """What the config does not say is left as it was saved."""
    graph = labelled().with_propagation("row", self_loops=False)
    graph.save(tmp_path / "graph")
    for settings, wanted in (
        ([], ("row", False)),
        (["--set", "graph.normalization=sym"], ("sym", False)),
        (["--set", "graph.self_loops=true"], ("row", True)),
    ):
        values = {"data": str(tmp_path / "graph")}
        assign(values, settings[1:])
        _, opened, _ = runs.prepare(make_config(values))
        assert (opened.normalization, opened.self_loops) == wanted
