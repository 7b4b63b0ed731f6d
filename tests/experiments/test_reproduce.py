"""`sgcn reproduce`: every experiment end to end, the cache, the paper's numbers, bad input."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sgcn import Graph, SgcnError, data
from sgcn.cli import main
from sgcn.errors import TrainingDiverged
from sgcn.experiments import EXPERIMENTS, core, execute
from sgcn.experiments import data as datasets
from sgcn.experiments.core import PLANS, Plan, case
from sgcn.runs.config import make_config
from sgcn.training import loop as training

TINY = "synthetic:nodes=240,degree=6,features=6,classes=3,communities=3"
ENDS = (".csv", ".json", ".md", ".svg", ".png")


def reproduce(name: str, out: Path, *more: str) -> int:
    epochs = () if "--epochs" in more else ("--epochs", "1")
    return main(["reproduce", name, "--budget", "quick", "--quiet", "--out", str(out), *epochs,
                 *more])  # fmt: skip


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole list on a tiny graph, one run each."""
    out = tmp_path_factory.mktemp("reproduction")
    assert reproduce("all", out, "--data", TINY, "--runs", "1") == 0
    return out


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are half of the time, and `everything` has them."""
    monkeypatch.setattr("sgcn.experiments.figures.write", lambda *what: None)


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch, no_pictures: None) -> list[str]:
    """The names of the runs that are performed from here on."""
    names: list[str] = []
    perform = execute.perform

    def counted(job: execute.Job) -> None:
        perform(job)
        names.append(job.name)

    monkeypatch.setattr(execute, "perform", counted)
    return names


# -- every experiment ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_writes_all_its_files(name: str, everything: Path) -> None:
    files = {end: everything / f"{name}-code{end}" for end in ENDS}
    assert all(path.stat().st_size > 0 for path in files.values())
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in files[".svg"].read_text()
    facts = json.loads(files[".json"].read_text())
    assert facts["failed"] == []
    assert {entry["runs"] for entry in facts["results"]} == {1}
    for entry in facts["results"]:
        assert entry["mean"] is not None or entry["quantity"] == "device_mb", entry
    rows = rows_of(files[".csv"])
    assert {row["experiment"] for row in rows} == {name}
    assert {row["comparison"] for row in rows} == {"not in the paper"}
    assert not any(row["paper"] for row in rows)
    # Letters are drawn as shapes; what they say is in a comment.
    assert "not in the paper" in files[".svg"].read_text()
    assert f"{EXPERIMENTS[name].title}, reading code" in files[".svg"].read_text()
    page = files[".md"].read_text()
    assert page.startswith(f"# {EXPERIMENTS[name].title}, reading `code`\n")
    assert f"Reading `code`: {core.READINGS['code'].words}.\n" in page
    assert facts["command"] in page
    assert page.endswith(f"\n\n{facts['claim']}\n")
    assert "The paper" in facts["claim"]
    assert "nothing to compare" not in facts["claim"]


def test_numbers_are_those_of_the_runs(everything: Path) -> None:
    facts = json.loads((everything / "f1-table-code.json").read_text())
    by_name = {
        result["name"]: result["test"]["f1_micro"]
        for path in everything.glob("runs/*.json")
        if (result := json.loads(path.read_text()))["kind"] == "train"
    }
    found = [entry for entry in facts["results"] if entry["quantity"] == "test_f1"]
    assert len(found) == 12
    for entry in found:
        name = f"{entry['data']} {entry['sampler']} {entry['estimator']} seed 0 train"
        assert entry["mean"] == pytest.approx(100.0 * by_name[name])


def test_a_page_says_what_was_run(everything: Path) -> None:
    """Of the runs, not of the plan: `growing-gap` has no restarts."""
    pages = {name: (everything / f"{name}-code.md").read_text() for name in EXPERIMENTS}
    assert "epochs of 10 sampled steps: 1, width: 64, restarts: norm," in pages["convergence"]
    assert "restarts: never, runs: 1," in pages["growing-gap"]
    plan = Plan("paper", 200, 256, 3, 16, ("ladies",))
    (tiny,) = datasets.find([TINY], "paper", False)
    made = EXPERIMENTS["memory"].cases(plan, tiny)
    assert {core.Run(one, 0, {}).epochs for one in made} == {3}


def test_another_restart_rule(tmp_path: Path, performed: list[str]) -> None:
    """Runs that have no snapshots are the same under every rule."""
    few = ("--data", TINY, "--runs", "1", "--samplers", "ladies")
    assert reproduce("f1-table", tmp_path, *few) == 0
    assert len(performed) == 5
    assert reproduce("f1-table", tmp_path, *few, "--restart", "gradient") == 0
    assert [name.split()[-4] for name in performed[5:]] == ["sgcn+", "sgcn++", "anchored"]
    page = (tmp_path / "f1-table-code.md").read_text()
    assert "restarts: gradient," in page
    assert "--samplers ladies --restart gradient" in page


def test_the_five_parts_add_up(everything: Path) -> None:
    facts = json.loads((everything / "time-table-code.json").read_text())
    for estimator in ("sgcn", "sgcn++"):
        parts = {e["quantity"]: e["mean"] for e in facts["results"] if e["estimator"] == estimator}
        total = parts.pop("total")
        assert len(parts) == 5
        assert sum(parts.values()) == pytest.approx(total)
        assert parts["regular_sampling"] > 0


def test_only_variance_reduction_has_tables(everything: Path) -> None:
    facts = json.loads((everything / "memory-code.json").read_text())
    tables = {e["estimator"]: e["mean"] for e in facts["results"] if e["quantity"] == "tables_mb"}
    # Z in float32: layer 1 of all nodes, layer 2 of those that train or are scored.
    rows = 240 + 240 * 8 // 10
    assert tables == {"sgcn": 0.0, "sgcn++": pytest.approx(rows * 64 * 4 / 2**20)}


def test_a_curve_has_steps_seconds_and_values(everything: Path) -> None:
    rows = [
        row
        for row in rows_of(everything / "decomposition-code.csv")
        if row["quantity"] == "training_loss" and row["step"] and row["estimator"] == "sgcn"
    ]
    assert [int(row["step"]) for row in rows] == list(range(10))
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)


# -- the cache ----------------------------------------------------------------------------------


def test_nothing_is_run_twice_and_a_seed_costs_a_seed(tmp_path: Path, performed: list[str]) -> None:
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "1") == 0
    assert len(performed) == 2
    first = (tmp_path / "growing-gap-code.csv").read_bytes()
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "1") == 0
    assert len(performed) == 2
    assert (tmp_path / "growing-gap-code.csv").read_bytes() == first
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "2") == 0
    assert len(performed) == 4
    assert all("seed 1" in name for name in performed[2:])
    facts = json.loads((tmp_path / "growing-gap-code.json").read_text())
    assert all(entry["runs"] == 2 and entry["spread"] is not None for entry in facts["results"])


def test_experiments_share_runs(everything: Path, performed: list[str]) -> None:
    """All rows of `convergence` are rows of `f1-table`."""
    assert reproduce("convergence", everything, "--data", TINY, "--runs", "1") == 0
    assert performed == []


def test_a_stopped_reproduction_goes_on(
    tmp_path: Path, performed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped inside the second of two runs: the first is kept, the second ends as if alone."""
    tell, told = training._Run.report_step, [0]

    def stopped(self: Any, *args: Any) -> None:
        told[0] += 1
        if told[0] == 25:  # a run has 20 steps
            raise KeyboardInterrupt
        tell(self, *args)

    options = ("--data", TINY, "--runs", "1", "--epochs", "2")
    with monkeypatch.context() as patch:
        patch.setattr(training._Run, "report_step", stopped)
        assert reproduce("growing-gap", tmp_path / "a", *options) == 130
    assert len(performed) == 1
    assert not (tmp_path / "a" / "growing-gap-code.csv").exists()
    assert reproduce("growing-gap", tmp_path / "a", *options) == 0
    assert len(performed) == 2
    assert reproduce("growing-gap", tmp_path / "b", *options) == 0
    for row, other in zip(
        rows_of(tmp_path / "a" / "growing-gap-code.csv"),
        rows_of(tmp_path / "b" / "growing-gap-code.csv"),
        strict=True,
    ):
        if row["quantity"] != "cpu_seconds":
            assert row | {"seconds": ""} == other | {"seconds": ""}


@pytest.mark.usefixtures("no_pictures")
def test_a_run_is_repeated_when_an_option_had_another_value(tmp_path: Path) -> None:
    plan = Plan("quick", 1, 4, 1, 2, ("ladies",))
    (graph,) = datasets.find([TINY], "quick", False)
    (done,) = execute.run_all([case(plan, graph, "ladies", "sgcn")], plan, tmp_path, quiet=True)
    (path,) = tmp_path.glob("runs/*.json")
    job = execute.Job("train", done.case.values, path)
    assert execute.read_result(job) is not None
    saved = json.loads(path.read_text())
    saved["config"]["sampler"]["weighting"] = "hajek"
    path.write_text(json.dumps(saved))
    assert execute.read_result(job) is None
    del saved["config"]["sampler"]["weighting"]  # an option that came later is no reason
    path.write_text(json.dumps(saved))
    assert execute.read_result(job) is not None


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "null"])
def test_a_damaged_result_is_no_result(text: str, tmp_path: Path) -> None:
    (tmp_path / "damaged.json").write_text(text)
    assert execute.read_result(execute.Job("train", {}, tmp_path / "damaged.json")) is None


def test_a_run_leaves_a_small_file_without_paths(tmp_path: Path, performed: list[str]) -> None:
    """Of 200 epochs as of one: curves are thinned. It can be committed, and found elsewhere."""
    here, there = tmp_path / "here", tmp_path / "there"
    data.load(TINY).save(tmp_path / "graph")
    options = ("--data", str(tmp_path / "graph"), "--runs", "1", "--epochs", "200")
    assert reproduce("growing-gap", here, *options) == 0
    files = [*here.glob("runs/*")]
    assert len(files) == 2
    for file in files:
        text = file.read_text()
        assert len(text) < 12_000
        assert str(tmp_path) not in text
        curves = json.loads(text)["curves"]
        assert {len(column) for curve in curves.values() for column in curve.values()} == {60}
        assert curves["training_loss"]["step"][-1] == 200 * 11 - 1
        seconds = curves["training_loss"]["seconds"]
        assert 0.0 == seconds[0] < seconds[-1] <= json.loads(text)["cpu_seconds"]
    shutil.copytree(here / "runs", there / "runs")
    shutil.move(tmp_path / "graph", tmp_path / "moved")
    moved = ("--data", str(tmp_path / "moved"), *options[2:])
    assert reproduce("growing-gap", there, *moved) == 0
    assert len(performed) == 2


def test_pages_of_the_runs_that_are_there(
    tmp_path: Path, performed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--data", TINY, "--runs", "1")
    assert reproduce("f1-table", tmp_path, *few, "--known") == 2
    assert "no finished run of these" in capsys.readouterr().err
    assert reproduce("f1-table", tmp_path, *few, "--samplers", "full") == 0
    assert reproduce("f1-table", tmp_path, *few, "--known") == 0
    assert len(performed) == 1
    facts = json.loads((tmp_path / "f1-table-code.json").read_text())
    assert {entry["sampler"] for entry in facts["results"]} == {"full"}


def test_the_content_of_a_file_decides_not_its_place(tmp_path: Path) -> None:
    graph = data.load(TINY)
    graph.save(tmp_path / "a")
    graph.save(tmp_path / "b")
    data.load(f"{TINY},seed=1").save(tmp_path / "c")
    a, b, c = (datasets.fingerprint(str(tmp_path / name)) for name in "abc")
    assert a == b != c


@pytest.mark.usefixtures("no_pictures")
def test_training_that_blows_up_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = training._Run.apply

    def breaking(self: Any, outcome: Any) -> None:
        if self.result.steps == 3 and self.engine.estimator.schedule.growth > 0:
            raise TrainingDiverged("training blew up")
        apply(self, outcome)

    monkeypatch.setattr(training._Run, "apply", breaking)
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "2") == 0
    facts = json.loads((tmp_path / "growing-gap-code.json").read_text())
    assert [failure["why"] for failure in facts["failed"]] == ["training blew up"] * 2
    means = {e["setting"]: e["mean"] for e in facts["results"] if e["quantity"] == "test_f1"}
    assert means["K=5"] is not None
    assert means["K=5+0.5s"] is None
    assert "(2 diverged)" in (tmp_path / "growing-gap-code.md").read_text()


@pytest.mark.usefixtures("no_pictures")
def test_another_error_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The type tells them apart, whatever the message says."""

    def full(self: Any, outcome: Any) -> None:
        raise SgcnError("the disk is full, and training blew up")

    monkeypatch.setattr(training._Run, "apply", full)
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "1") == 2
    assert "the disk is full" in capsys.readouterr().err
    assert not (tmp_path / "growing-gap-code.json").exists()


def test_a_process_of_its_own_gives_the_same_numbers(everything: Path) -> None:
    """Memory is measured in other processes, for runs that `f1-table` has too.

    With another number of threads dense products round differently, by 1e-7 at each of some steps.
    """
    scores: dict[str, dict[str, float]] = {"memory": {}, "train": {}}
    for path in everything.glob("runs/*.json"):
        result = json.loads(path.read_text())
        if result["kind"] in scores:
            name = result["name"].removesuffix(result["kind"])
            scores[result["kind"]][name] = result["test"]["loss"]
    assert len(scores["memory"]) == 2
    for name, loss in scores["memory"].items():
        assert loss == pytest.approx(scores["train"][name], rel=1e-4)


def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    with execute._threads(3):
        assert [os.environ[f"{name}_NUM_THREADS"] for name in ("OMP", "NUMBA")] == ["3", "3"]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


# -- the paper's numbers ------------------------------------------------------------------------


@pytest.fixture
def ppi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A graph directory `ppi` here, as if it were the paper's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(datasets.paper()["datasets"]["ppi"], "nodes", 240)
    graph = data.load(TINY)
    graph.save(tmp_path / "ppi")
    return graph


@pytest.mark.parametrize(
    ("name", "paper", "note"),
    [
        (
            "ppi-large-go2016",
            "ppi-large",
            "labels of 2016: the paper's ppi-large, but not its labels",
        ),
        ("ppi-go2016", "ppi", "labels of 2016: the paper's ppi, but not its labels"),
        ("flickr-social", None, "not in the paper"),
    ],
)
def test_graphs_with_other_labels_say_so(
    name: str, paper: str | None, note: str, tmp_path: Path
) -> None:
    data.load(TINY).save(tmp_path / name)
    (found,) = datasets.find([str(tmp_path / name)], "paper", False)
    assert (found.paper, found.same, found.note) == (paper, False, note)
    assert found.title == f"{name} ({note.partition(':')[0]})"


@pytest.mark.usefixtures("ppi", "no_pictures")
def test_the_papers_numbers_stand_beside_the_papers_dataset() -> None:
    """The graph with the paper's name; the same by its path, which anyone may have made."""
    differs = "not the same labels/graph"
    for name, note, heading in (
        ("ppi", "the paper's dataset", "| paper |"),
        ("./ppi", f"not the paper's ppi: {differs}", f"| paper ({differs}) |"),
    ):
        assert reproduce("f1-table", Path("out"), "--data", name, "--runs", "1") == 0
        found = rows_of(Path("out/f1-table-code.csv"))
        assert {row["comparison"] for row in found} == {note}
        rows = [row for row in found if row["quantity"] == "test_f1"]
        ours = (*core.OURS, core.DEFAULT)
        assert all(bool(row["paper"]) == (row["estimator"] not in ours) for row in rows)
        ladies = next(r for r in rows if (r["sampler"], r["estimator"]) == ("ladies", "sgcn++"))
        assert (ladies["paper"], ladies["paper_spread"]) == ("82.1", "0.15")
        assert Path("out/f1-table-code.md").read_text().count(heading) == 1


def test_a_stand_in_is_named_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = "synthetic:ppi-like,nodes=240,degree=4,communities=3"
    monkeypatch.setitem(datasets.STAND_INS["quick"], "ppi", small)
    assert reproduce("growing-gap", Path("out"), "--stand-in", "--runs", "1") == 0
    note = "stand-in for ppi: not the same labels/graph"
    assert {row["comparison"] for row in rows_of(Path("out/growing-gap-code.csv"))} == {note}
    facts = json.loads(Path("out/growing-gap-code.json").read_text())
    assert facts["data"] == {small.removeprefix("synthetic:"): note}
    assert note in Path("out/growing-gap-code.md").read_text()
    assert note in Path("out/growing-gap-code.svg").read_text()
    assert "--stand-in" in facts["command"]


@pytest.mark.usefixtures("no_pictures")
def test_a_large_batch_snapshot_is_sampled(tmp_path: Path) -> None:
    small = "synthetic:reddit-like,nodes=240,degree=4,communities=3,classes=3"
    assert reproduce("time-table", tmp_path, "--data", small, "--runs", "1") == 0
    facts = json.loads((tmp_path / "time-table-code.json").read_text())
    parts = {e["quantity"]: e for e in facts["results"] if e["estimator"] == "sgcn++"}
    assert parts["snapshot_sampling"]["mean"] > 0
    assert parts["snapshot_transfer"]["mean"] == 0
    assert parts["snapshot_sampling"]["paper"] == 18.446
    assert not parts["snapshot_sampling"]["same_data"]


def test_names_with_commas_stay_whole() -> None:
    assert datasets.split_names("debian,a=b/ppi.npz") == ["debian", "a=b/ppi.npz"]
    assert datasets.split_names("synthetic:flickr-like,nodes=9,wordnet,x/ppi.npz") == [
        "synthetic:flickr-like,nodes=9", "wordnet", "x/ppi.npz",
    ]  # fmt: skip


@pytest.mark.parametrize("name", datasets.PAPER_DATA)
def test_every_row_of_the_table_has_a_number_of_the_paper(name: str) -> None:
    table = EXPERIMENTS["f1-table"]
    rows = table.cases(PLANS["paper"], datasets.Dataset(name, name, same=True))
    theirs = [row for row in rows if row.estimator not in (*core.OURS, core.DEFAULT)]
    assert (len(rows), len(theirs)) == (26, 17)
    for row in rows:
        assert (row in theirs) == bool(table.reference(name, row, "test_f1"))
    rows = theirs
    for row in rows:
        mean, spread = table.reference(name, row, "test_f1") or (0.0, 0.0)
        assert 38 < mean < 96
        assert 0 < spread < 1


@pytest.fixture
def reddit() -> datasets.Dataset:
    return datasets.Dataset("reddit", "reddit", same=True)


def test_settings_of_the_papers_text(reddit: datasets.Dataset) -> None:
    plan = replace(PLANS["paper"], reading="text")
    row = case(plan, reddit, "ladies", "sgcn++").values
    assert "graph" not in row
    assert row["task"] == {}
    assert row["model"] == {"layers": 2, "widths": 256, "activation": "elu", "head": True}
    assert row["sampler"] == {"name": "ladies", "sizes": 512}
    assert row["optimizer"] == {"name": "adam", "lr": 0.01}
    assert row["training"] == {
        "epochs": 200, "batches_per_epoch": 10, "batch_size": 512, "preaggregate": False,
        "average": 0.0, "patience": None, "evaluate_every": 10,
    }  # fmt: skip
    assert row["estimator"] == {
        "name": "sgcn++", "gap": 10, "restart": "norm", "alpha": 1.1, "beta": 1.1,
        "snapshot_nodes": 0.5,
    }  # fmt: skip
    assert case(plan, reddit, "saint", "sgcn").values["training"]["batch_size"] == 2048


def test_settings_of_the_authors_code(reddit: datasets.Dataset) -> None:
    """Beside the text: learning rate, features, score, weights, bias, a snapshot more an epoch."""
    assert PLANS["paper"].reading == "code"
    row = case(PLANS["paper"], reddit, "ladies", "sgcn++").values
    assert row["graph"] == {"features": "standard"}
    assert row["task"] == {"best_by": "loss"}
    assert row["model"]["bias"]
    assert row["sampler"] == {"name": "ladies", "sizes": 512, "weighting": "row"}
    assert row["optimizer"] == {"name": "adam", "lr": 0.001}
    assert (row["estimator"]["gap"], row["training"]["batches_per_epoch"]) == (11, 11)
    assert row["training"]["evaluate_every"] == 11
    plain = case(PLANS["paper"], reddit, "ladies", "sgcn").values
    assert plain["training"]["batches_per_epoch"] == 10
    assert "weighting" not in case(PLANS["paper"], reddit, "exact", "sgcn").values["sampler"]
    ours = case(PLANS["paper"], reddit, "ladies", "anchored").values
    assert ours["estimator"]["gap"] == 11
    assert "weighting" not in ours["sampler"]
    assert "bias" not in ours["model"]
    gaps = EXPERIMENTS["snapshot-gap"].cases(PLANS["paper"], reddit)
    assert [one.values["estimator"]["gap"] for one in gaps[:4]] == [6, 11, 16, 21]


def test_an_epoch_is_a_snapshot_and_ten_sampled_steps(tmp_path: Path) -> None:
    plan = Plan("quick", 3, 4, 1, 2, ("ladies",), restart="never")
    (tiny,) = datasets.find([TINY], "quick", False)
    rows = [case(plan, tiny, "ladies", name) for name in ("sgcn", "sgcn++")]
    plain, corrected = execute.run_all(rows, plan, tmp_path, quiet=True)
    assert (plain.trained["steps"], plain.trained["snapshots"]) == (30, 0)
    assert (corrected.trained["steps"], corrected.trained["snapshots"]) == (33, 3)


def test_the_default_row_is_what_training_does_without_options() -> None:
    plan = replace(PLANS["paper"], reading="text", samplers=("neighbor",))
    (tiny,) = datasets.find([TINY], "paper", False)
    *_, row = EXPERIMENTS["f1-table"].cases(plan, tiny)
    assert row.estimator == core.DEFAULT
    tables = make_config(row.values).training.tables()
    usual = make_config({"data": TINY}).training.tables()
    changed = {
        (section, key)
        for section, options in tables.items()
        for key, value in options.items()
        if value != usual[section].get(key)
    }
    assert changed == {
        ("model", "widths"), ("model", "dropout"), ("optimizer", "name"), ("training", "epochs"),
        ("training", "batches_per_epoch"), ("training", "patience"), ("training", "evaluate_every"),
    }  # fmt: skip
    assert tables["optimizer"]["name"] == "muon"


def test_the_best_reading_takes_the_rate_of_the_lowest_validation_loss(
    tmp_path: Path, performed: list[str]
) -> None:
    few = ("--data", TINY, "--samplers", "ladies", "--reading", "best", "--runs", "2")
    assert reproduce("f1-table", tmp_path, *few) == 0
    assert len(performed) == 5 * 4 + 5  # four rates of five rows, and the second seed
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/*.json")]
    rows = rows_of(tmp_path / "f1-table-best.csv")
    for estimator in ("sgcn", "sgcn+", "sgcn++", "anchored", "anchored++"):
        first = [r for r in results if f" {estimator} seed 0 " in r["name"]]
        assert sorted(r["lr"] for r in first) == [0.001, 0.003, 0.01, 0.03]
        best = min(first, key=lambda r: r["lowest_validation_loss"])["lr"]
        (second,) = (r for r in results if f" {estimator} seed 1 " in r["name"])
        assert second["lr"] == best
        shown = [r for r in rows if (r["estimator"], r["quantity"]) == (estimator, "lr")]
        assert [float(r["value"]) for r in shown] == [best] * 2


def test_a_rate_that_diverges_is_not_taken(tmp_path: Path) -> None:
    (tiny,) = datasets.find([TINY], "quick", False)
    plan = Plan("quick", 1, 4, 1, 2, ("ladies",), reading="best")
    one = case(plan, tiny, "ladies", "sgcn")
    trials = [(one.at(lr), execute.Job("train", {}, tmp_path / str(lr))) for lr in (0.1, 0.2, 0.3)]
    found = dict(zip([job.file for _, job in trials], [
        {"failed": "blew up"}, {"lowest_validation_loss": 2.0}, {"lowest_validation_loss": 1.0},
    ], strict=True))  # fmt: skip
    assert execute._best(trials, found) is trials[2][0]
    found.popitem()
    assert execute._best(trials, found) is None


# -- what the paper says ------------------------------------------------------------------------


def made(tiny: datasets.Dataset, sampler: str, estimator: str, f1: float | None, setting: str = "",
         **more: float) -> core.Run:  # fmt: skip
    found = {"failed": None if f1 else "blew up", "test": {"f1_micro": f1}, **more}
    one = core.Case(tiny, sampler, estimator, {}, setting)
    return core.Run(one, 0, {"train": found})


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ((0.5, 0.75, 0.25, 0.5), "was seen; points of F1: g ladies +25, g saint +25."),
        ((0.5, 0.25, 0.25, 0.5), "was seen in 1 of 2 cases; points of F1: g ladies -25, g saint"),
        ((0.5, 0.25, 0.5, 0.5), "was not seen; points of F1: g ladies -25, g saint +0."),
        ((0.5, None, 0.5, 0.75), "was seen in 1 of 2 cases; points of F1: g ladies diverged"),
        ((0.5,), "was not put to the test; points of F1: nothing to compare."),
    ],
)
def test_a_claim_is_judged_by_the_runs(scores: tuple[float | None, ...], words: str) -> None:
    tiny = datasets.Dataset("g")
    names = [(s, e) for s in ("ladies", "saint") for e in ("sgcn", "sgcn++")]
    runs = [made(tiny, *name, f1) for name, f1 in zip(names, scores, strict=False)]
    sentence = EXPERIMENTS["f1-table"].claim.sentence(runs)
    assert words in sentence
    assert sentence.startswith("The paper's claim that SGCN++ has a higher test F1")
    assert sentence.endswith(".")


def test_a_claim_over_settings_compares_the_ends() -> None:
    tiny = datasets.Dataset("g")
    runs = [
        made(tiny, "ladies", "sgcn++", f1, f"K={k}") for k, f1 in ((5, 0.75), (9, 0.1), (20, 0.5))
    ]
    claim = EXPERIMENTS["snapshot-gap"].claim
    assert "was seen" in claim.sentence(runs)
    assert "g ladies sgcn++ +25." in claim.sentence(runs)
    assert "was not seen" in claim.sentence(runs[::-1])


def test_a_claim_of_little_time_is_about_a_share() -> None:
    tiny = datasets.Dataset("g")
    for seconds, verdict in ((95.0, "was seen"), (85.0, "was not seen")):
        runs = [made(tiny, "ladies", "sgcn++", 0.5, words, cpu_seconds=s)
                for words, s in (("K=10", 100.0), ("K=10+s", seconds))]  # fmt: skip
        assert verdict in EXPERIMENTS["growing-gap"].claim.sentence(runs)


def test_smaller_subgraphs_are_judged_by_what_they_cost() -> None:
    tiny = datasets.Dataset("g")
    f1 = {
        ("sgcn", "B=1"): 0.25,
        ("sgcn", "B=2"): 0.5,
        ("sgcn++", "B=1"): 0.5,
        ("sgcn++", "B=2"): 0.625,
    }
    runs = [made(tiny, "saint", e, score, b) for (e, b), score in f1.items()]
    assert "was seen; " in (sentence := EXPERIMENTS["saint-batch-size"].claim.sentence(runs))
    assert "g saint +12.5." in sentence


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["f1-tabel"], "experiment is 'f1-tabel'.*did you mean 'f1-table'"),
        (["decomposition"], "flickr is not here.*download flickr --import.*--stand-in takes"),
        (["memory", "--data", "debain"], "data is 'debain'.*did you mean 'debian'"),
        (["memory", "--data", "absent.npz"], "absent.npz.*that exists"),
        (["memory", "--data", "ppi-like,synthetic:ppi-like"], "two graphs are called ppi-like"),
        (["memory", "--data", "synthetic:nodes=0"], "nodes is 0"),
        (["memory", "--data", "debian", "--runs", "0"], "--runs is 0"),
        (["memory", "--data", "debian", "--epochs", "0"], "--epochs is 0"),
        (["memory", "--data", "debian", "--jobs", "0"], "--jobs is 0"),
        (["f1-table", "--samplers", "ladeis"], "--samplers has .ladeis.*did you mean .ladies"),
        (["memory", "--data", "debian", "--out", "file"], "--out is 'file'"),
    ],
)
def test_bad_input_is_one_sentence(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    assert main(["reproduce", *words]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("ppi")
def test_another_graph_of_the_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(datasets.paper()["datasets"]["ppi"], "nodes", 14_755)
    assert reproduce("f1-table", Path("out"), "--data", "ppi") == 2
    assert "ppi has 240 nodes, expected the 14,755" in capsys.readouterr().err


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "list"]) == 0
    listed = capsys.readouterr().out
    assert len(EXPERIMENTS) == 13
    assert all(name in listed for name in EXPERIMENTS)
    assert "--budget quick" in listed
