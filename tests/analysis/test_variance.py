"""`sgcn variance` through the real command line: what it writes, says and refuses."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from learning import labelled
from sgcn import machine as memory
from sgcn.analysis import variance
from sgcn.cli import main

SMALL = ["--set", "model.widths=8", "--set", "training.batch_size=8"]
QUICK = ["--steps", "12", "--probes", "3", "--every", "4"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    graph, path = labelled(nodes=80), tmp_path_factory.mktemp("data") / "small.npz"
    np.savez(path, indptr=graph.indptr, indices=graph.indices, x=graph.x, y=graph.y,
             split=graph.split)  # fmt: skip
    return path


def run(data, *options) -> int:
    return main(["variance", str(data), *SMALL, *map(str, options)])


def refusal(capsys, code: int) -> str:
    """The one sentence of a refusal."""
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert re.fullmatch(r"sgcn: error: [^\n]+\n", said.err), said.err
    return said.err


def test_what_it_writes_and_says(data, tmp_path, capsys):
    out, picture = tmp_path / "v.json", tmp_path / "v.svg"
    code = run(data, "--sampler", "neighbor,ladies", "--estimators", "sgcn,anchored", *QUICK,
               "--seed", "3", "--out", out, "--picture", picture)  # fmt: skip
    assert code == 0
    found = json.loads(out.read_text())
    assert (found["steps"], found["probes"], found["every"], found["seed"]) == (12, 3, 4, 3)
    pairs = [(result["sampler"], result["estimator"]) for result in found["results"]]
    assert pairs == [(s, e) for s in ("neighbor", "ladies") for e in ("sgcn", "anchored")]
    for result in found["results"]:
        assert [step["step"] for step in result["steps"]] == [3, 7, 11]
        for part in (result, *result["steps"]):
            assert part["relative_mse"] > 0
            total = part["relative_bias2"] + part["relative_variance"]
            assert part["relative_mse"] == pytest.approx(total)
            assert all(part[f"relative_{name}_error"] > 0 for name in ("mse", "bias2", "variance"))
            assert [layer["layer"] for layer in part["by_layer"]] == ["1", "2", "head"]
            assert part["by_layer"][0]["layer_gradient_mse"] > 0
            assert [layer["embedding_mse"] is None for layer in part["by_layer"]] == [0, 0, 1]
    said = capsys.readouterr()
    assert said.err == ""
    heading, *rows = said.out.partition("\n\n")[0].splitlines()
    assert heading.split() == [
        "sampler", "estimator", "mse", "bias^2", "variance", "geometric", "mse",
    ]  # fmt: skip
    for row, result in zip(rows, found["results"], strict=True):
        cells = row.split()
        assert cells[:2] == [result["sampler"], result["estimator"]]
        numbers = [float(cell) for cell in cells[2:] if cell != "+-"]
        wanted = [
            result[f"relative_{name}{error}"]
            for name in ("mse", "bias2", "variance")
            for error in ("", "_error")
        ]
        each = [step["relative_mse"] for step in result["steps"]]
        assert numbers.pop() == pytest.approx(np.prod(each) ** (1 / 3), rel=0.01)
        assert numbers == pytest.approx(wanted, rel=0.51)  # an error bar has one digit
        assert numbers[::2] == pytest.approx(wanted[::2], rel=0.01)
    text = picture.read_text()
    assert text.startswith("<?xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.json", "v.svg"]


def test_errors_by_the_distance_from_the_snapshot(data, tmp_path, capsys):
    """Snapshots are steps 0 and 10: steps 3, 7 and 11 are 3, 7 and 1 steps after one."""
    out = tmp_path / "v.json"
    more = ["--set", "estimator.restart=never", "--out", out]
    assert run(data, "--estimators", "sgcn,anchored", *QUICK, *more) == 0
    plain, corrected = json.loads(out.read_text())["results"]
    assert plain["by_distance"] == []
    errors = dict(zip((3, 7, 1), corrected["steps"], strict=True))
    assert [step["since_snapshot"] for step in errors.values()] == [3, 7, 1]
    assert [(d["from"], d["to"], d["measured"]) for d in corrected["by_distance"]] == [
        (1, 1, 1), (3, 4, 1), (5, 8, 1),
    ]  # fmt: skip
    for d, since in zip(corrected["by_distance"], (1, 3, 7), strict=True):
        assert d["relative_mse"] == errors[since]["relative_mse"]
        assert d["relative_mse_error"] == errors[since]["relative_mse_error"]
    title, heading, *rows = capsys.readouterr().out.partition("\n\n")[2].splitlines()
    assert title == "geometric mse by steps since the last snapshot"
    assert heading.split() == ["sampler", "estimator", "1", "3-4", "5-8"]
    assert rows[0].split()[2:4] == ["no", "snapshots:"]
    assert float(rows[0].split()[4]) == pytest.approx(plain["geometric_relative_mse"], rel=0.01)
    shown = [float(cell) for cell in rows[1].split()[2:]]
    wanted = [errors[since]["relative_mse"] for since in (1, 3, 7)]
    assert shown == pytest.approx(wanted, rel=0.01)


def test_without_snapshots_there_are_no_distances(data, capsys):
    assert run(data, "--estimators", "sgcn", *QUICK) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_seed_is_a_result(data, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        options = ["--estimators", "sgcn", *QUICK, "--seed", seed]
        assert run(data, *options, "--out", tmp_path / f"{name}.json") == 0
    a, b, c = ((tmp_path / f"{name}.json").read_text() for name in "abc")
    assert a == b
    assert json.loads(a)["results"] != json.loads(c)["results"]


def test_options_of_samplers_and_estimators(data, tmp_path):
    """A larger sample has a smaller error; a file may hold the options."""
    file = tmp_path / "c.toml"
    file.write_text('[sampler]\nname = "neighbor"\nsizes = 1\n')
    errors = []
    for extra in ([], ["--set", "sampler.sizes=50"]):
        code = run(data, "--config", file, "--estimators", "sgcn", *QUICK, *extra,
                   "--set", "training.batch_size=100", "--out", tmp_path / "v.json")  # fmt: skip
        assert code == 0
        errors.append(json.loads((tmp_path / "v.json").read_text())["results"][0]["relative_mse"])
    assert errors[0] > 0.01
    assert errors[1] < 1e-9


def test_a_run_that_blows_up_does_not_end_the_others(data, tmp_path, capsys, monkeypatch):
    real = variance.fit

    def fit(*args, estimator, **options):
        if not estimator.forward.needs_snapshot:
            options["optimizer"], options["lr"] = "sgd", 1e38
        return real(*args, estimator=estimator, **options)

    monkeypatch.setattr(variance, "fit", fit)
    out, picture = tmp_path / "v.json", tmp_path / "v.png"
    options = [*QUICK, "--out", out, "--picture", picture]
    assert run(data, "--estimators", "sgcn,anchored", *options) == 0
    first, second = json.loads(out.read_text())["results"]
    assert "blew up" in first["failed"]
    assert first["relative_mse"] is None
    assert second["relative_mse"] > 0
    assert "failed: " in capsys.readouterr().out.splitlines()[1]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert run(data, "--estimators", "sgcn", *options) == 2
    assert "blew up" in capsys.readouterr().err


OPTIONS = {
    "an unknown sampler": (["--sampler", "neighbor,ladie"], "sampler is 'ladie'"),
    "an unknown estimator": (["--estimators", "sgcn,sgcn+++"], "estimator is 'sgcn+++'"),
    "no estimator": (["--estimators", ""], "estimator is ''"),
    "one probe": (["--probes", "1"], "probes is 1, expected a whole number >= 2"),
    "too many probes": (["--probes", "1000000000"], "take fewer probes"),
    "no steps": (["--steps", "4"], "steps is 4, expected a whole number >= 5"),
    "every 0": (["--every", "0"], "every is 0"),
    "a negative seed": (["--seed", "-1"], "seed is -1"),
    "nothing to measure": (["--estimators", "full"], "estimator full takes a snapshot at every"),
    "an option of another sampler": (
        ["--sampler", "saint", "--set", "sampler.sizes=3"], "saint has no option 'sizes'",
    ),
    "a sampler that does not fit": (
        ["--sampler", "neighbor,ladies", "--set", "model.layer=concat", "--set",
         "sampler.keep_destinations=false"],
        "neighbor has no option 'keep_destinations'",
    ),
    "no own rows": (
        ["--sampler", "ladies", "--set", "model.layer=concat", "--set", "sampler.sizes=1",
         "--set", "sampler.keep_destinations=false"],
        "keep_destinations to true",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(case, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(variance, "fit", None)  # no work starts
    options, words = OPTIONS[case]
    code = run(data, *options, "--out", tmp_path / "v.json", "--picture", tmp_path / "v.svg")
    assert words in refusal(capsys, code)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--out", "--picture"])
@pytest.mark.parametrize("place", ["", "no/v", "v.exe"])
def test_bad_places(option, place, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(variance, "fit", None)
    place = tmp_path / (f"{place}.json" if place == "no/v" and option == "--out" else place)
    assert f"{option} is '{place}', expected a file" in refusal(capsys, run(data, option, place))
    assert list(tmp_path.iterdir()) == []


def test_no_data(capsys):
    assert "names no data" in refusal(capsys, main(["variance"]))
    assert "data is 'ppi-lik'" in refusal(capsys, main(["variance", "ppi-lik"]))


def test_free_memory(tmp_path, monkeypatch):
    known = memory.available_memory()
    assert 1 << 20 < known < 1 << 50
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert memory.available_memory() >= known
