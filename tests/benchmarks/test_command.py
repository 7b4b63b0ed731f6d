"""`python -m benchmarks`: help, exit codes, words for errors, and the layout of its files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import BENCHMARKS, cost, estimators
from benchmarks.__main__ import main
from benchmarks.report import layout, write
from sgcn import SgcnError
from sgcn.data.synthetic import Synthetic, synthetic
from sgcn.estimators import ESTIMATORS

HOME = Path(__file__).parents[2]


def run(capsys, *argv):
    """(exit code, stdout, stderr) of a command in this process."""
    try:
        code = main(argv)
    except SystemExit as end:
        code = end.code
    return (code, *capsys.readouterr())


def test_help_waits_for_nothing_heavy():
    code = (
        "import sys; from benchmarks.__main__ import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numba', 'torch', 'numpy', 'scipy'} & set(sys.modules); assert not heavy, heavy"
    )
    command = [sys.executable, "-c", code, "--help"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(re.findall(r"^    (\w+)", done.stdout, re.M)) >= set(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_help_with_examples(capsys, name):
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    assert BENCHMARKS[name] in out
    assert "examples:" in out
    assert f"python -m benchmarks {name}" in out


def test_the_package_is_a_command():
    command = [sys.executable, "-m", "benchmarks", "nonsense"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "usage: python -m benchmarks" in done.stderr


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["sampling", "--samplers", "neighbour"], "(did you mean 'neighbor'?)"),
        (["sampling", "--graph", "fickr-like"], "(did you mean 'flickr-like'?)"),
        (["sampling", "--graph", "a,,b"], "expected names with a comma between them"),
        (["sampling", "--batches", "0"], "--batches is 0, expected a whole number >= 1"),
        (["sampling", "--threads", "1,x"], "expected whole numbers >= 1, as in 1,2"),
        (["sampling", "--out", "/no/such/folder/f.json"], "directory that exists"),
        (["sampling", "--seed", "-1"], "seed is -1, expected a whole number from 0"),
        (["product", "--rounds", "0"], "--rounds is 0, expected a whole number >= 1"),
        (["cost", "debain"], "did you mean 'debian'"),
        (["estimators", "debian", "--samplers", "ladys"], "did you mean 'ladies'"),
        (["short", "--out", "/no/such/folder/f.json"], "directory that exists"),
        (["compare", "/no/such/file.json", "b.json"], "expected a JSON file of a benchmark"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, argv, message):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("benchmarks: error: ")
    assert err.count("\n") == 1
    assert message in err


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["sampling", "--batches", "many"]])
def test_unknown_words_exit_2_with_usage(capsys, argv):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert "usage: python -m benchmarks" in err
    assert "error:" in err


def test_compare_reads_what_was_written(tmp_path, capsys):
    for name, ratio in (("old", 2.0), ("new", 3.0)):
        write(tmp_path / f"{name}.json", {"ratios": {"a": ratio}})
    code, out, _ = run(capsys, "compare", str(tmp_path / "old.json"), str(tmp_path / "new.json"))
    assert code == 0
    assert "1.50" in out


# -- files ----------------------------------------------------------------------------------------


def test_a_row_is_a_line():
    report = {
        "results": {"full": {"seconds": 1.5, "each": [1, None], "note": ""}},
        "rows": [{"a": 1}, {"a": 2}],
        "ratios": {f"r{k}": k for k in range(21)},
        "none": {}, "threads": [1, 2],
    }  # fmt: skip
    text = layout(report)
    assert json.loads(text) == report
    lines = text.splitlines()
    assert '  "full": {"seconds": 1.5, "each": [1, null], "note": ""}' in lines
    assert '  {"a": 1},' in lines
    assert '  "r20": 20' in lines
    assert len(lines) == 2 + 3 + 4 + 23 + 2


@pytest.mark.parametrize("name", sorted(f.name for f in HOME.glob("benchmarks/*.json*")))
def test_kept_figures_are_summaries(name):
    text = (HOME / "benchmarks" / name).read_text()
    assert len(text.splitlines()) <= 300
    assert layout(json.loads(text)) + "\n" == text


# -- cost and estimators --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    spec = Synthetic(nodes=300, degree=8, features=6, classes=3, communities=3, hub=8.0, noise=0.2)
    folder = tmp_path_factory.mktemp("graphs") / "small"
    synthetic(spec).save(folder)
    return str(folder)


def test_cost(saved, capsys):
    code, out, err = run(capsys, "cost", saved, "--width", "8", "--rounds", "1")
    assert (code, err) == (0, "")
    for name in ESTIMATORS:
        assert name == "full" or f"  {name:<10}" in out
    assert "full-batch step" in out


def test_memory_of_a_training(saved):
    assert cost.peak({"data": saved, "estimator": "anchored", "width": 8})["mib"] > -1


def test_estimators(saved, capsys, tmp_path):
    raw, out = tmp_path / "runs" / "raw.jsonl", tmp_path / "summary.json"
    argv = ["estimators", saved, "--samplers", "neighbor", "--estimators", "full", "sgcn",
            "sgcn+", "--seeds", "0", "1", "--steps", "6", "--every", "2"]  # fmt: skip
    argv += ["--raw", str(raw), "--out", str(out)]
    assert run(capsys, *argv)[0] == 0
    runs = estimators.read_runs(raw)
    assert len(runs) == 6
    rows = {row["estimator"]: row for row in json.loads(out.read_text())["results"]}
    assert rows["full"]["error"] == 0.0
    assert rows["sgcn"]["seeds"] == [0, 1]
    losses = [one["loss"] for one in runs if one["estimator"] == "sgcn"]
    assert rows["sgcn"]["loss"] == pytest.approx(sum(losses) / 2)
    assert rows["sgcn"]["error"] > 0

    before = raw.read_bytes()
    code, printed, _ = run(capsys, *argv)  # all there: nothing is run again
    assert code == 0
    assert raw.read_bytes() == before
    assert "| neighbor | 0 / " in printed
    raw.write_text("{")
    with pytest.raises(SgcnError, match="expected a line of JSON a run"):
        estimators.read_runs(raw)
