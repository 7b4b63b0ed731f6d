"""`sgcn reproduce`: every experiment end to end, the cache, the paper's numbers, bad input."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from sgcn import Graph, SgcnError, data
from sgcn.cli import main
from sgcn.errors import TrainingDiverged
from sgcn.experiments import EXPERIMENTS, core, execute
from sgcn.experiments import data as datasets
from sgcn.experiments.core import PLANS, Plan, case
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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sgcn.runs.curves.draw", lambda runs: None)  # of every single run: slow
        assert reproduce("all", out, "--data", TINY, "--runs", "1") == 0
    return out


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are half of the time, and `everything` has them."""
    monkeypatch.setattr("sgcn.runs.curves.draw", lambda runs: None)
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
    files = {end: everything / f"{name}{end}" for end in ENDS}
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
    assert facts["command"] in files[".md"].read_text()


def test_numbers_are_those_of_the_runs(everything: Path) -> None:
    facts = json.loads((everything / "f1-table.json").read_text())
    by_name = {
        result["name"]: result["summary"]["test"]["f1_micro"]
        for path in everything.glob("runs/*/result.json")
        if (result := json.loads(path.read_text()))["kind"] == "train"
    }
    found = [entry for entry in facts["results"] if entry["quantity"] == "test_f1"]
    assert len(found) == 7
    for entry in found:
        name = f"{entry['data']} {entry['sampler']} {entry['estimator']} seed 0 train"
        assert entry["mean"] == pytest.approx(100.0 * by_name[name])


def test_a_page_says_what_was_run(everything: Path) -> None:
    """Of the runs, not of the plan: `growing-gap` has no restarts."""
    pages = {name: (everything / f"{name}.md").read_text() for name in EXPERIMENTS}
    assert "epochs of 10 batches: 1, width: 64, restarts: norm, runs: 1," in pages["f1-table"]
    assert "restarts: never, runs: 1," in pages["growing-gap"]
    plan = Plan("paper", 200, 256, 3, 16, ("ladies",))
    (tiny,) = datasets.find([TINY], "paper", False)
    made = EXPERIMENTS["memory"].cases(plan, tiny)
    assert {core.Run(one, 0, {}, {}).epochs for one in made} == {3}


def test_another_restart_rule(tmp_path: Path, performed: list[str]) -> None:
    """Runs that have no snapshots are the same under every rule."""
    few = ("--data", TINY, "--runs", "1", "--samplers", "ladies")
    assert reproduce("f1-table", tmp_path, *few) == 0
    assert len(performed) == 3
    assert reproduce("f1-table", tmp_path, *few, "--restart", "gradient") == 0
    assert [name.split()[-4] for name in performed[3:]] == ["sgcn+", "sgcn++"]
    page = (tmp_path / "f1-table.md").read_text()
    assert "restarts: gradient," in page
    assert "--samplers ladies --restart gradient" in page


def test_the_five_parts_add_up(everything: Path) -> None:
    facts = json.loads((everything / "time-table.json").read_text())
    for estimator in ("sgcn", "sgcn++"):
        parts = {e["quantity"]: e["mean"] for e in facts["results"] if e["estimator"] == estimator}
        total = parts.pop("total")
        assert len(parts) == 5
        assert sum(parts.values()) == pytest.approx(total)
        assert parts["regular_sampling"] > 0


def test_only_variance_reduction_has_tables(everything: Path) -> None:
    facts = json.loads((everything / "memory.json").read_text())
    tables = {e["estimator"]: e["mean"] for e in facts["results"] if e["quantity"] == "tables_mb"}
    # Z in float32: layer 1 of all nodes, layer 2 of those that train or are scored.
    rows = 240 + 240 * 8 // 10
    assert tables == {"sgcn": 0.0, "sgcn++": pytest.approx(rows * 64 * 4 / 2**20)}


def test_a_curve_has_steps_seconds_and_values(everything: Path) -> None:
    rows = [
        row
        for row in rows_of(everything / "decomposition.csv")
        if row["quantity"] == "training_loss" and row["step"] and row["estimator"] == "sgcn"
    ]
    assert [int(row["step"]) for row in rows] == list(range(10))
    seconds = [float(row["seconds"]) for row in rows]
    assert seconds == sorted(seconds)


# -- the cache ----------------------------------------------------------------------------------


def test_nothing_is_run_twice_and_a_seed_costs_a_seed(tmp_path: Path, performed: list[str]) -> None:
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "1") == 0
    assert len(performed) == 2
    first = (tmp_path / "growing-gap.csv").read_bytes()
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "1") == 0
    assert len(performed) == 2
    assert (tmp_path / "growing-gap.csv").read_bytes() == first
    assert reproduce("growing-gap", tmp_path, "--data", TINY, "--runs", "2") == 0
    assert len(performed) == 4
    assert all("seed 1" in name for name in performed[2:])
    facts = json.loads((tmp_path / "growing-gap.json").read_text())
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
    assert not (tmp_path / "a" / "growing-gap.csv").exists()
    assert reproduce("growing-gap", tmp_path / "a", *options) == 0
    assert len(performed) == 2
    assert reproduce("growing-gap", tmp_path / "b", *options) == 0
    for row, other in zip(
        rows_of(tmp_path / "a" / "growing-gap.csv"),
        rows_of(tmp_path / "b" / "growing-gap.csv"),
        strict=True,
    ):
        if row["quantity"] != "training_seconds":
            assert row | {"seconds": ""} == other | {"seconds": ""}


@pytest.mark.usefixtures("no_pictures")
def test_a_run_is_repeated_when_an_option_had_another_value(tmp_path: Path) -> None:
    plan = Plan("quick", 1, 4, 1, 2, ("ladies",))
    (graph,) = datasets.find([TINY], "quick", False)
    (done,) = execute.run_all([case(plan, graph, "ladies", "sgcn")], plan, tmp_path, quiet=True)
    path = done.folders["train"] / execute.RESULT
    job = execute.Job("train", done.case.values, path.parent)
    assert execute.read_result(job) is not None
    saved = json.loads(path.read_text())
    saved["config"]["sampler"]["weighting"] = "row"
    path.write_text(json.dumps(saved))
    assert execute.read_result(job) is None
    del saved["config"]["sampler"]["weighting"]  # an option that came later is no reason
    path.write_text(json.dumps(saved))
    assert execute.read_result(job) is not None


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "null"])
def test_a_damaged_result_is_no_result(text: str, tmp_path: Path) -> None:
    (tmp_path / execute.RESULT).write_text(text)
    assert execute.read_result(execute.Job("train", {}, tmp_path)) is None


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
    facts = json.loads((tmp_path / "growing-gap.json").read_text())
    assert [failure["why"] for failure in facts["failed"]] == ["training blew up"] * 2
    means = {e["setting"]: e["mean"] for e in facts["results"] if e["quantity"] == "test_f1"}
    assert means["K=5"] is not None
    assert means["K=5+0.5s"] is None
    assert "(2 diverged)" in (tmp_path / "growing-gap.md").read_text()


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
    assert not (tmp_path / "growing-gap.json").exists()


def test_a_process_of_its_own_gives_the_same_numbers(everything: Path) -> None:
    """Memory is measured in other processes, for runs that `f1-table` has too.

    With another number of threads dense products round differently, by 1e-7 at each of some steps.
    """
    scores: dict[str, dict[str, float]] = {"memory": {}, "train": {}}
    for path in everything.glob("runs/*/result.json"):
        result = json.loads(path.read_text())
        if result["kind"] in scores:
            name = result["name"].removesuffix(result["kind"])
            scores[result["kind"]][name] = result["summary"]["test"]["loss"]
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


@pytest.mark.usefixtures("ppi", "no_pictures")
def test_the_papers_numbers_stand_beside_the_papers_dataset() -> None:
    """The graph with the paper's name; the same by its path, which anyone may have made."""
    differs = "not the same labels/graph"
    for name, note, heading in (
        ("ppi", "the paper's dataset", "| paper |"),
        ("./ppi", f"not the paper's ppi: {differs}", f"| paper ({differs}) |"),
    ):
        assert reproduce("f1-table", Path("out"), "--data", name, "--runs", "1") == 0
        found = rows_of(Path("out/f1-table.csv"))
        assert {row["comparison"] for row in found} == {note}
        rows = [row for row in found if row["quantity"] == "test_f1"]
        assert all(row["paper"] for row in rows)
        ladies = next(r for r in rows if (r["sampler"], r["estimator"]) == ("ladies", "sgcn++"))
        assert (ladies["paper"], ladies["paper_spread"]) == ("82.1", "0.15")
        assert Path("out/f1-table.md").read_text().count(heading) == 1


def test_a_stand_in_is_named_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sgcn.runs.curves.draw", lambda runs: None)
    small = "synthetic:ppi-like,nodes=240,degree=4,communities=3"
    monkeypatch.setitem(datasets.STAND_INS["quick"], "ppi", small)
    assert reproduce("growing-gap", Path("out"), "--stand-in", "--runs", "1") == 0
    note = "stand-in for ppi: not the same labels/graph"
    assert {row["comparison"] for row in rows_of(Path("out/growing-gap.csv"))} == {note}
    facts = json.loads(Path("out/growing-gap.json").read_text())
    assert facts["data"] == {small.removeprefix("synthetic:"): note}
    assert note in Path("out/growing-gap.md").read_text()
    assert note in Path("out/growing-gap.svg").read_text()
    assert "--stand-in" in facts["command"]


@pytest.mark.usefixtures("no_pictures")
def test_a_large_batch_snapshot_is_sampled(tmp_path: Path) -> None:
    small = "synthetic:reddit-like,nodes=240,degree=4,communities=3,classes=3"
    assert reproduce("time-table", tmp_path, "--data", small, "--runs", "1") == 0
    facts = json.loads((tmp_path / "time-table.json").read_text())
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
    assert len(rows) == 17
    for row in rows:
        mean, spread = table.reference(name, row, "test_f1") or (0.0, 0.0)
        assert 38 < mean < 96
        assert 0 < spread < 1


def test_paper_settings() -> None:
    reddit = datasets.Dataset("reddit", "reddit", same=True)
    row = case(PLANS["paper"], reddit, "ladies", "sgcn++").values
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
    assert case(PLANS["paper"], reddit, "saint", "sgcn").values["training"]["batch_size"] == 2048


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
