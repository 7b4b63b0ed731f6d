"""The page of finished and unfinished runs: its data, what it may not hold, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import Parts, lines, make_run, read_page, step

from sgcn.cli import main
from sgcn.runs.config import read_toml
from sgcn.runs.layout import read_events


def report(out: Path, *folders: Path) -> Path:
    assert main(["report", *map(str, folders), "--out", str(out)]) == 0
    return out


def refusal(capsys, *argv) -> str:
    """The one sentence of a refusal."""
    code = main(["report", *map(str, argv)])
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert re.fullmatch(r"sgcn: error: [^\n]+\n", said.err), said.err
    return said.err


# -- what it says ---------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_summaries(folder, tmp_path, capsys):
    made = report(tmp_path / "page.html", folder)
    assert capsys.readouterr().out == f"{made}: 3 runs\n"
    shown = {run["name"]: run for run in read_page(made)["runs"]}
    assert set(shown) == {"sgcn", "sgcn++", "anchored"}
    for name, run in shown.items():
        assert run["finished"]
        assert run["summary"] == json.loads((folder / name / "summary.json").read_text())


def test_the_curves_are_those_of_the_events(folder, tmp_path):
    (run,) = read_page(report(tmp_path / "page.html", folder / "anchored"))["runs"]
    events = read_events(folder / "anchored")
    steps = [event for event in events if event["event"] == "step"]
    scores = [event for event in events if event["event"] == "score"]
    for name in ("loss", "gradient_norm", "norm_growth"):
        curve = run["curves"][name]
        assert curve["step"] == [event["step"] for event in steps]
        assert curve["value"] == pytest.approx([event[name] for event in steps], rel=1e-5)
        assert curve["seconds"] == pytest.approx([event["seconds"] for event in steps], rel=1e-5)
    for key in ("f1_micro", "loss"):
        expected = [event["validation"][key] for event in scores]
        assert run["curves"][f"validation_{key}"]["value"] == pytest.approx(expected, rel=1e-5)
    assert run["snapshots"]["step"] == [event["step"] for event in steps if event["snapshot"]]
    restarts = [float(event["restart"]) for event in steps if event["snapshot"]]
    assert run["snapshots"]["value"] == restarts
    assert "gradient_error" not in run["curves"]


def test_the_configuration_is_flat_words(folder, tmp_path):
    (run,) = read_page(report(tmp_path / "page.html", folder / "sgcn++"))["runs"]
    assert run["config"]["estimator.name"] == "sgcn++"
    assert run["config"]["model.widths"] == "8"
    assert run["config"]["model.head"] == "true"
    assert len(run["config"]) == sum(
        len(part) if isinstance(part, dict) else 1
        for part in read_toml(folder / "sgcn++" / "config.toml").values()
    )


def test_an_unfinished_run_counts_what_it_has(tmp_path):
    score = {"event": "score", "epoch": 1, "step": 12, "seconds": 0.2, "best": True,
             "evaluation": 0.03, "validation": {"f1_micro": 0.75, "loss": 0.5}}  # fmt: skip
    folder = make_run(tmp_path / "run", [*(step(k) for k in range(12)), score])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 0, "step": 12, "lo')  # being written
    (run,) = read_page(report(tmp_path / "page.html", folder))["runs"]
    assert not run["finished"]
    summary = run["summary"]
    assert {key: summary[key] for key in ("data", "sampler", "estimator", "seed")} == {
        "data": "a graph", "sampler": "neighbor", "estimator": "sgcn", "seed": 7,
    }  # fmt: skip
    assert (summary["steps"], summary["snapshots"], summary["restarts"]) == (12, 2, 0)
    assert (summary["validation"], summary["best_step"]) == (score["validation"], score["step"])
    assert "test" not in summary
    assert summary["seconds"] == pytest.approx(
        {"total": 0.2, "sampling": 0.012, "transfer": 0.024, "compute": 0.06, "snapshot": 0.012,
         "evaluation": 0.03}
    )  # fmt: skip


def test_gradient_errors_of_a_run_that_looked_at_them(folder, tmp_path):
    """Probes find an error, and leave the run as it is."""
    run = tmp_path / "run"
    options = ["--quiet", "--estimator", "anchored", "--epochs", "4", "--seed", "3", "--out", run,
               "--set", "model.widths=8", "--set", "training.batch_size=16",
               "--set", "training.probe_every=5"]  # fmt: skip
    assert main(["train", str(folder.parent / "small.npz"), *map(str, options)]) == 0
    weights = [(one / "model.safetensors").read_bytes() for one in (run, folder / "anchored")]
    assert weights[0] == weights[1]
    probes = [event for event in read_events(run) if event["event"] == "probe"]
    (shown,) = read_page(report(tmp_path / "page.html", run))["runs"]
    curve = shown["curves"]["gradient_error"]
    assert curve["step"] == [event["step"] for event in probes]
    assert len(curve["step"]) >= 2
    assert all(seconds > 0 for seconds in curve["seconds"])
    assert curve["value"] == pytest.approx([event["relative_mse"] for event in probes], rel=1e-5)
    assert all(value > 0 for value in curve["value"])


def test_missing_numbers_are_null(tmp_path):
    folder = make_run(
        tmp_path / "run",
        [step(0, loss=None), step(1, loss="much"), step(2, loss=10**400), step(3)],
        test={"f1_micro": float("nan")},
    )
    (run,) = read_page(report(tmp_path / "page.html", folder))["runs"]
    assert run["curves"]["loss"]["value"] == [None, None, 0.25]
    assert run["curves"]["loss"]["step"] == [1, 2, 3]
    assert run["summary"]["test"] == {"f1_micro": None}


def test_runs_of_the_same_name_are_told_apart(tmp_path):
    first, second = (make_run(tmp_path / name / "run", [step(0)]) for name in ("a", "b"))
    data = read_page(report(tmp_path / "page.html", first, second, first / "." / ".." / "run"))
    assert [run["name"] for run in data["runs"]] == ["a/run", "b/run"]


def test_runs_are_found_at_any_depth_and_named_by_their_path(tmp_path):
    names = ["compare/ladies/seed-0", "compare/ladies/seed-1", "compare/sgcn++/seed-0", "single"]
    for name in names:
        make_run(tmp_path / "runs" / name, [step(0)])
    (tmp_path / "runs" / "tool").mkdir()
    (tmp_path / "runs" / "tool" / "config.toml").write_text("this is another program's")

    def named(*paths):
        return [run["name"] for run in read_page(report(tmp_path / "page.html", *paths))["runs"]]

    runs = tmp_path / "runs"
    assert named(runs) == names
    assert named(runs / "compare" / "sgcn++") == ["seed-0"]
    assert named(runs / "single", runs / "compare") == ["single", *(n[8:] for n in names[:3])]
    assert named(runs / "compare" / "ladies", runs / "compare" / "sgcn++") == [
        "ladies/seed-0", "ladies/seed-1", "sgcn++/seed-0",
    ]  # fmt: skip


def test_it_reads_what_training_writes_without_waiting_for_torch():
    code = (
        "import sys; import sgcn.report.page, sgcn.report.live\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- one file that needs nothing and trusts nothing -----------------------------------------------


def test_it_needs_nothing_from_elsewhere(folder, tmp_path):
    text = report(tmp_path / "page.html", folder).read_text("utf-8")
    assert not re.search(r"//[\w.-]+\.\w|https?:|@import|\bimport\b *[({'\"]", text)
    for tag, attributes in Parts(text).elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "connect-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


def test_hostile_names_stay_text(tmp_path):
    bad = "</script><img src=x onerror=alert(1)><!--<script>{{script}}&amp;"
    one = make_run(tmp_path / "<" / "script><img src=x>", [step(0)], data=bad, sampler=bad)
    two = make_run(tmp_path / "b" / "script><img src=x>", [step(0)])
    made = report(tmp_path / "page.html", one, two)
    parts = Parts(made.read_text("utf-8"))
    assert [tag for tag, _ in parts.elements].count("script") == 2
    assert "img" not in [tag for tag, _ in parts.elements]
    run = parts.data["runs"][0]
    assert run["name"] == "</script><img src=x>"
    assert (run["config"]["data"], run["summary"]["sampler"]) == (bad, bad)


@pytest.mark.skipif(os.name != "posix", reason="names that are no text are for POSIX")
def test_a_name_that_is_no_text(tmp_path):
    name = os.fsdecode(b"r\xff")
    folder = make_run(tmp_path / name, [step(0)])
    assert read_page(report(tmp_path / "page.html", folder))["runs"][0]["name"] == name


# -- what is refused -------------------------------------------------------------------------------


def test_what_is_no_run(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    out = tmp_path / "page.html"
    for bad in ("empty", "file", "absent"):
        said = refusal(capsys, tmp_path / bad, "--out", out)
        assert f"{tmp_path / bad} is not a run directory, expected one that sgcn train" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


@pytest.mark.parametrize("content", [None, "", '{"event": "st', '{"event": "epoch", "step": 1}\n'])
def test_a_run_without_a_step(tmp_path, capsys, content):
    folder = make_run(tmp_path / "run", [])
    (folder / "metrics.jsonl").unlink()
    if content is not None:
        (folder / "metrics.jsonl").write_text(content)
    assert "is still empty, expected" in refusal(capsys, folder, "--out", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.jsonl", lines([step(0)]) + "nonsense\n" + lines([step(1)]), "line 2 that is no"),
        ("metrics.jsonl", "[1]\n", "line 1 that is no JSON object, expected an event"),
        ("summary.json", '{"test"', "no JSON object that can be read"),
        ("summary.json", "[]", "expected a run's summary"),
        ("config.toml", "data = ", "is not a TOML file that can be read"),
    ],
)
def test_broken_files(tmp_path, capsys, file, content, message):
    folder = make_run(tmp_path / "run", [step(0)])
    (folder / file).write_text(content)
    said = refusal(capsys, folder, "--out", tmp_path / "page.html")
    assert str(folder / file) in said
    assert message in said
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_places_that_cannot_be_written(tmp_path, capsys):
    folder = make_run(tmp_path / "run", [step(0)])
    (tmp_path / "place.html").mkdir()
    before = (folder / "metrics.jsonl").read_text()
    absent = tmp_path / "no" / "page.html"
    for out in (tmp_path, tmp_path / "place.html", absent, folder / "metrics.jsonl"):
        said = refusal(capsys, folder, "--out", out)
        assert f"--out is '{out}', expected a file .html in a directory that exists" in said
    assert (folder / "metrics.jsonl").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["place.html", "run"]


def test_a_full_disk_leaves_the_old_page(tmp_path, capsys, monkeypatch):
    folder = make_run(tmp_path / "run", [step(0)])
    (tmp_path / "page.html").write_text("the old one")

    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    said = refusal(capsys, folder, "--out", tmp_path / "page.html")
    assert "cannot be written (No space left on device)" in said
    assert (tmp_path / "page.html").read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run"]


def test_pages_of_other_runs_stay(folder, tmp_path, monkeypatch):
    place = tmp_path / "runs"
    shutil.copytree(folder, place)
    monkeypatch.chdir(tmp_path)
    runs = sorted(path for path in place.iterdir() if path.is_dir())[:2]
    for paths in (runs[:1], runs[1:], runs, [place]):
        assert main(["report", *map(str, paths)]) == 0
    wanted = [tmp_path / "report.html", place / "report.html", *(r / "report.html" for r in runs)]
    assert sorted(tmp_path.rglob("report.html")) == sorted(wanted)


def test_options_that_do_not_go_together(tmp_path, capsys):
    folder = make_run(tmp_path / "run", [step(0)])
    assert "expected no --out beside it" in refusal(capsys, folder, "--live", "--out", "a.html")
    assert "expected --live beside it" in refusal(capsys, folder, "--port", "8000")
    assert "--port is 70000" in refusal(capsys, folder, "--live", "--port", "70000")
