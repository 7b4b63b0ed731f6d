"""`benchmarks convergence`: the rules of the contest, and that PyG trains the same model."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
import torch

from benchmarks import convergence, convergence_peers, convergence_runs
from benchmarks.__main__ import main
from benchmarks.convergence_runs import Contestant, Enough, Spec, Watch, fresh_model
from sgcn import fit
from sgcn.compute.exact import predict
from sgcn.data.synthetic import Synthetic, synthetic
from sgcn.errors import SgcnError
from sgcn.rows import store_of
from sgcn.samplers import make_sampler
from sgcn.task import Task, train_nodes
from sgcn.training.events import StepEvent
from sgcn.training.sinks import Memory

PYG = pytest.mark.skipif(
    find_spec("torch_geometric") is None, reason="torch_geometric is not installed"
)
SPEC = Synthetic(nodes=300, degree=8, features=6, classes=3, communities=3, hub=8.0, noise=0.2)


def spec(contestant: str = "full", **changes) -> Spec:
    return Spec(
        **{
            "data": "", "contestant": contestant, "lr": 0.01, "gap": None, "seed": 0,
            "target": None, "limit": 1e9, "width": 8, "batch_size": 64, "threads": 1,
            "clock": "wall", **changes,
        }
    )  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["single", "multi"])
def graph(request):
    return synthetic(
        Synthetic(nodes=300, degree=8, features=6, classes=3, communities=3, hub=8.0,
                  multi_label=request.param, label_density=0.5)
    )  # fmt: skip


def steps_of(count: int):
    def watch(*_):
        nonlocal count
        if count == 0:
            raise Enough
        count -= 1

    return watch


@PYG
@pytest.mark.parametrize("form", ["csr", "edge"])
def test_pyg_full_batch_is_our_full_batch(graph, form):
    """The losses of four steps agree, and so does that of the weights that PyG gave back."""
    ours, theirs = (fresh_model(spec(), graph) for _ in range(2))
    heard = Memory()
    with pytest.raises(Enough):
        fit(ours, graph, estimator="full", optimizer="adam", epochs=9, callbacks=[steps_of(4)],
            sinks=[heard], threads=0)  # fmt: skip
    losses = [event.loss for event in heard.events if isinstance(event, StepEvent)]
    trainer = convergence_peers.Trainer(graph, theirs, csr=form == "csr", lr=0.01)
    whole = trainer.whole()
    assert [trainer.step(whole) for _ in range(4)] == pytest.approx(losses, rel=1e-4)
    assert losses[3] < losses[0]
    trainer.publish()
    nodes = torch.from_numpy(train_nodes(graph)).long()
    after = [
        Task.of(graph).loss(predict(model, graph, store_of(graph.x))[nodes], nodes).item()
        for model in (ours, theirs)
    ]
    assert after[1] == pytest.approx(after[0], rel=1e-4)
    assert after[0] < losses[3]


@PYG
def test_pyg_mini_batches_train(graph):
    losses = []
    trainer = convergence_peers.Trainer(graph, fresh_model(spec(), graph), csr=False, lr=0.01)
    batches = trainer.batches(64, 0)
    for _ in range(60):
        batch = next(batches)
        assert len(batch[3]) == len(batch[4])
        losses.append(trainer.step(batch))
    assert sum(losses[-10:]) < sum(losses[:10])


class AllNeighbours:
    """Stands in for PyG's NeighborLoader, which needs compiled parts: seeds first, then all."""

    def __init__(self, data, sizes, nodes, *, batch_size, shuffle) -> None:
        assert len(sizes) == 2
        assert shuffle
        self.data, self.seeds = data, nodes[:batch_size]

    def __iter__(self):
        from torch_geometric.data import Data

        rest = torch.ones(self.data.num_nodes, dtype=torch.bool)
        rest[self.seeds] = False
        order = torch.cat([self.seeds, rest.nonzero().ravel()])
        place = torch.argsort(order)
        yield Data(x=self.data.x[order], edge_index=place[self.data.edge_index], n_id=order,
                   batch_size=len(self.seeds))  # fmt: skip


@PYG
@pytest.mark.parametrize("csr", [False, True])
def test_batches_of_pygs_loader(graph, monkeypatch, csr):
    """With all neighbours in the batch, the loss is that of the exact pass."""
    import torch_geometric.loader

    monkeypatch.setattr(torch_geometric.loader, "NeighborLoader", AllNeighbours)
    monkeypatch.setattr(convergence_peers, "own_loader", lambda: True)
    model = fresh_model(spec(), graph)
    logits = predict(model, graph, store_of(graph.x))
    trainer = convergence_peers.Trainer(graph, model, csr=csr)
    batch = next(trainer.batches(64, 0))
    nodes = batch[4]
    wanted = Task.of(graph).loss(logits[nodes], nodes).item()
    assert len(nodes) == 64
    assert trainer.step(batch) == pytest.approx(wanted, rel=1e-4)


def fed(watch: Watch, scores: list[float], step_seconds: float = 1.0) -> int:
    """Steps of one second each, scored by hand: how many were made."""
    made = 0
    for score in scores:
        watch.seconds = {"wall": made * step_seconds, "cpu": made * step_seconds}
        watch.look = lambda score=score: watch.curve.append(  # type: ignore[method-assign]
            {"step": watch.steps, **watch.seconds, "f1": score}
        ) or _meet(watch, score)
        try:
            watch._decide()
        except Enough:
            return made
        watch.steps += 1
        made += 1
    return made


def _meet(watch: Watch, score: float) -> None:
    watch.looked = watch.now
    if watch.reached is None and watch.spec.target is not None and score >= watch.spec.target:
        watch.reached = watch.curve[-1]


@pytest.fixture
def small():
    return synthetic(SPEC)


def test_a_run_goes_on_a_little_after_the_target(small):
    watch = Watch(spec(target=0.5), fresh_model(spec(), small), small)
    assert fed(watch, [0.1] * 20 + [0.6] * 80) == 25  # met at 20 s, and a quarter more
    assert watch.stopped == "target"
    assert watch.reached["wall"] == 20


def test_a_run_ends_with_its_time(small):
    watch = Watch(spec(target=0.9, limit=30.0), fresh_model(spec(), small), small)
    assert fed(watch, [0.1 + 0.01 * k for k in range(60)]) == 30
    assert watch.stopped == "limit"
    assert watch.reached is None


def test_the_full_batch_run_ends_when_it_has_settled(small):
    rising = [min(0.002 * k, 0.5) for k in range(600)]
    watch = Watch(spec(), fresh_model(spec(), small), small)
    # 0.499 at 249.5 s, so 0.6 t must pass the first look after that. Looks are 4 % of the time
    # apart: that one comes by 260 s, and the one that sees it by 260 / 0.6 s and 4 % more.
    assert fed(watch, rising) in range(416, 452)
    assert watch.stopped == "settled"


def run_of(f1: list[float], **changes):
    curve = [{"step": 10.0 * k, "wall": float(k), "cpu": k / 2, "f1": x} for k, x in enumerate(f1)]
    return {
        "curve": curve, "seconds": {"wall": len(f1), "cpu": len(f1) / 2}, "total_seconds": 9.0,
        "prepare_seconds": 1.0, "peak_mb": 100.0, "validation": max(f1), "test": 0.5, "note": "",
        "stopped": "limit", **changes,
    }  # fmt: skip


def test_medians_and_ratios():
    ours = [run_of([0.1, 0.6]), run_of([0.1, 0.1, 0.6]), run_of([0.1, 0.1, 0.1])]
    row = convergence.row(ours, 0.5, "wall", "lr 0.01")
    assert row["seconds"] == 2.0
    assert row["cpu_seconds"] == 1.0
    assert row["each"] == [1.0, 2.0, None]
    missed = convergence.row([run_of([0.1] * 8)] * 3, 0.5, "wall", "lr 0.01")
    assert missed["seconds"] is None
    slow = convergence.row([run_of([0.1] * 6 + [0.7])] * 3, 0.5, "wall", "lr 0.01")
    rows = {"full": slow, "pyg-full": missed, "anchored/neighbor": row, "sgcn/neighbor": missed}
    ratios, bounds = convergence.compare("g", rows)
    assert ratios["g/anchored/neighbor/full"] == 3.0
    assert ratios["g/anchored/neighbor/pyg"] == 4.0  # eight seconds were not enough for PyG
    assert bounds == ["g/full/pyg", "g/full/sgcn", "g/anchored/neighbor/pyg",
                      "g/anchored/neighbor/sgcn"]  # fmt: skip
    assert not [key for key in ratios if key.startswith("g/pyg-full")]


def test_the_parts_of_a_name():
    who = Contestant.of("anchored++/neighbor:2+pre+avg")
    assert (who.name, who.sampler, who.pre, who.averaged) == (
        "anchored++", make_sampler("neighbor", sizes=2), True, True,
    )  # fmt: skip
    who = Contestant.of("sgcn++/ladies")
    assert (who.name, who.sampler, who.pre, who.averaged) == (
        "sgcn++", make_sampler("ladies"), False, False,
    )  # fmt: skip
    assert Contestant.of("pyg-minibatch+avg").averaged
    assert spec(contestant="pyg-full+avg").whole


@pytest.mark.parametrize("name", ["sgcn/neighbor", "sgcn/neighbor+avg"])
def test_the_average_is_scored(small, name, monkeypatch):
    model = fresh_model(spec(), small)
    watch, seen = Watch(spec(name), model, small), []

    def look(model, graph, features):
        seen.append(model.head.bias[0].item())
        return predict(model, graph, features)

    monkeypatch.setattr(convergence_runs, "predict", look)
    with torch.no_grad():
        watch()  # before the first step
        first = model.head.bias[0].item()
        model.head.bias.fill_(1.0)
    watch()
    watch.look()
    assert seen == [pytest.approx(0.9 + 0.1 * first if name.endswith("+avg") else 1.0)]
    assert model.head.bias[0] == 1.0


def test_a_contest_is_held_and_resumed(tmp_path, capsys, monkeypatch):
    synthetic(SPEC).save(tmp_path / "small")
    out = tmp_path / "out"
    argv = ["convergence", "--data", str(tmp_path / "small"), "--only"]
    argv += ["sgcn/neighbor,anchored/neighbor", "--lr", "0.02,0.03", "--gap", "5", "--seeds", "2"]
    argv += ["--trial", "0.2", "--budget", "0.4", "--width", "8", "--batch-size", "64"]
    orders = []

    def in_this_process(module, order, file, threads):
        orders.append(order)
        result = convergence_runs.run(Spec(**order))
        file.write_text(json.dumps(result))
        return result

    monkeypatch.setattr(convergence, "call", in_this_process)
    argv += ["--out", str(out)]
    assert main(argv) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""
    report = json.loads((out / "convergence.json").read_text())
    assert set(report["results"]) == {"full", "sgcn/neighbor", "anchored/neighbor"}
    assert (out / "convergence.png").stat().st_size > 1000
    assert str(tmp_path) not in (out / "convergence.json").read_text()
    assert {order["target"] for order in orders} == {None, report["target"]}
    full = report["results"]["full"]
    assert report["target"] == pytest.approx(full["validation"] - convergence.BELOW)
    for name, row in report["results"].items():
        assert name in printed
        assert "curves" not in row
        assert row["peak_mb"] > 10
    assert {order["contestant"] for order in orders} == set(report["results"])
    assert len((out / "convergence.json").read_text().splitlines()) < 50  # curves are in the runs
    assert json.loads((out / "run-sgcn-neighbor-lr0.02-s0.json").read_text())["curve"][0]["f1"] >= 0
    assert set(report["trials"]["anchored/neighbor"]) == {"lr 0.02, K 5", "lr 0.03, K 5"}

    orders.clear()
    (out / "run-sgcn-neighbor-lr0.02-s0.json").write_text("{")  # cut short
    assert main(argv) == 0
    assert {order["contestant"] for order in orders} == {"sgcn/neighbor"}
    capsys.readouterr()
    assert main([*argv, "--width", "9"]) == 2
    assert "choose another --out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--seeds", "0"], "--seeds is 0, expected a whole number >= 1"),
        (["--budget", "0"], "--budget is 0.0, expected seconds above 0"),
        (["--lr", "0.1,x"], "--lr is '0.1,x', expected numbers above 0"),
        (["--gap", "0"], "--gap is '0', expected numbers above 0"),
        (["--only", "pyg-ful"], "did you mean 'pyg-full'"),
        (["--only", "anchored"], "as in anchored/neighbor"),
        (["--only", "anchord/neighbor"], "did you mean 'anchored'"),
        (["--only", "anchored/neighbor+avg+pre"], "as in anchored++/neighbor:2+pre+avg"),
        (["--only", "anchored/neighbor:0"], "sizes is 0, expected"),
        (["--only", "anchored/neighbor+per"], "expected one of exact, neighbor"),
        (["--data", "debain"], "did you mean 'debian'"),
    ],
)
def test_refusals(tmp_path, capsys, argv, words):
    assert main(["convergence", "--out", str(tmp_path / "out"), *argv]) == 2
    assert words in capsys.readouterr().err


def test_a_process_that_fails_says_why(tmp_path):
    from benchmarks.process import call

    order = {**spec().__dict__, "data": "nothing-here", "contestant": "full"}
    with pytest.raises(SgcnError, match="nothing-here"):
        call("benchmarks.convergence_runs", order, tmp_path / "out.json", 1)
