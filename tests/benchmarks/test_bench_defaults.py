"""`benchmarks defaults`: PyG's recipes by plain formulas, what is chosen, and what is kept."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from benchmarks import defaults, defaults_ours
from benchmarks.__main__ import main
from sgcn.data.synthetic import Synthetic, synthetic
from sgcn.errors import SgcnError

if find_spec("torch_geometric") is None:
    pytest.skip("torch_geometric is not installed", allow_module_level=True)

from benchmarks import defaults_peers
from benchmarks.defaults_peers import Peer, Recipe, contest, make_model, scaled

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")


def small(multi_label=False):
    return synthetic(
        Synthetic(nodes=120, degree=6, features=5, classes=3, communities=3, hub=8.0,
                  multi_label=multi_label, label_density=0.5)
    )  # fmt: skip


def save(graph, path, **changes):
    arrays = {"indptr": graph.indptr, "indices": graph.indices, "x": graph.x, "y": graph.y,
              "split": graph.split} | changes  # fmt: skip
    np.savez(path, **{key: value for key, value in arrays.items() if value is not None})


def linear(lin, x):
    out = x @ lin.weight.detach().numpy().T
    return out if lin.bias is None else out + lin.bias.detach().numpy()


def dense(graph):
    """A without loops, and D^-1/2 (A + I) D^-1/2."""
    n = len(graph)
    a = np.zeros((n, n))
    a[np.repeat(np.arange(n), np.diff(graph.indptr)), graph.indices] = 1
    np.fill_diagonal(a, 0)
    with_loops = a + np.eye(n)
    root = with_loops.sum(1) ** -0.5
    return a, root[:, None] * with_loops * root


@pytest.mark.parametrize("conv", ["gcn", "sage"])
@pytest.mark.parametrize("wide", [False, True])
def test_classic_by_its_formula(conv, wide):
    graph, rng = small(), np.random.default_rng(0)
    x = rng.random((len(graph), 50)) * (rng.random((len(graph), 50)) < (0.04 if wide else 0.5))
    features = scaled(sp.csr_array(x), "raw")
    assert features.is_sparse_csr == wide
    torch.manual_seed(0)
    model = make_model(Recipe("raw", conv=conv, norm="layer"), features, 3).eval()
    a, p = dense(graph)
    mean = a / np.maximum(a.sum(1, keepdims=True), 1)
    h = linear(model.first, x) if wide else x
    for layer, lin in zip(model.convs, model.lins, strict=True):
        if conv == "gcn":
            z = p @ linear(layer.lin, h) + layer.bias.detach().numpy()
        else:
            z = linear(layer.lin_l, mean @ h) + linear(layer.lin_r, h)
        z = z + linear(lin, h)
        z = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
        h = np.maximum(z, 0)
    found = model(features, Peer(graph).adjacency(conv)).detach().numpy()
    np.testing.assert_allclose(found, linear(model.head, h), atol=1e-4)


def test_plain_is_the_same_for_sparse_features():
    graph = small()
    x = np.zeros((len(graph), 60), np.float32)
    x[np.arange(len(graph)), np.arange(len(graph)) % 60] = 1
    recipe, outs = Recipe("raw", norm="none", classic=False), []
    for features in (torch.from_numpy(x), scaled(sp.csr_array(x), "raw")):
        torch.manual_seed(0)
        model = make_model(recipe, features, 3).eval()
        outs.append(model(features, Peer(graph).adjacency("gcn")).detach().numpy())
    np.testing.assert_allclose(*outs, atol=1e-6)
    first, last = model.convs
    p = dense(graph)[1]
    h = np.maximum(p @ linear(first.lin, x) + first.bias.detach().numpy(), 0)
    wanted = p @ linear(last.lin, h) + last.bias.detach().numpy()
    np.testing.assert_allclose(outs[0], wanted, atol=1e-5)


def test_scalings():
    x = sp.csr_array(np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 0.0]]))
    rows = scaled(x, "rows").numpy()
    np.testing.assert_allclose(rows, [[0.25, 0.75, 0], [0, 0, 0], [2 / 3, 1 / 3, 0]], rtol=1e-6)
    standard = scaled(x, "standard").numpy()
    np.testing.assert_allclose(standard.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(standard.std(0), [1, 1, 0], rtol=1e-5)


@pytest.mark.parametrize("multi_label", [False, True])
def test_loss_and_score(multi_label):
    graph = small(multi_label)
    peer, rng = Peer(graph), np.random.default_rng(0)
    logits = rng.normal(size=(len(graph), 3))
    for part in (0, 1):
        mine = np.asarray(graph.split) == part
        y, z = np.asarray(graph.y)[mine], logits[mine]
        if multi_label:
            guess = z > 0
            f1 = 2 * (guess & (y > 0)).sum() / (guess.sum() + y.sum())
            loss = (np.log1p(np.exp(z)) - y * z).mean()
        else:
            f1 = (z.argmax(1) == y).mean()
            loss = (np.log(np.exp(z).sum(1)) - z[np.arange(len(y)), y]).mean()
        assert peer.score(torch.from_numpy(logits), part) == pytest.approx(f1)
        if part == 0:
            found = peer.loss(torch.from_numpy(logits).float())
            assert float(found) == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("multi_label", [False, True])
def test_a_recipe_learns(multi_label):
    peer = Peer(small(multi_label))
    torch.manual_seed(0)
    before = peer.score(make_model(Recipe("raw"), peer.features("raw"), 3).eval()(
        peer.features("raw"), peer.adjacency("gcn")), 1)  # fmt: skip
    assert defaults_peers.train(peer, Recipe("raw"), 0)["validation"] > before + 0.1


def test_the_test_score_is_that_of_the_best_look(monkeypatch):
    looks = iter([(0.1, 0.7), (0.5, 0.6), (0.5, 0.9), *[(0.2, 0.8)] * 99])
    monkeypatch.setattr(defaults_peers, "PATIENCE", 10)

    def score(self, logits, part):
        if part == 1:
            self.now = next(looks)
        return self.now[part - 1]

    monkeypatch.setattr(Peer, "score", score)
    found = defaults_peers.train(Peer(small()), Recipe("raw"), 0)
    assert (found["validation"], found["test"], found["best_epoch"]) == (0.5, 0.6, 4)
    assert found["epochs"] == 14


def scores_of(recipe):
    """Validation: best with standard features, sage, dropout 0.1 and five layers."""
    return (0.5 + 0.1 * (recipe.features == "standard") + 0.1 * (recipe.conv == "sage")
            - 0.2 * recipe.dropout + 0.01 * recipe.layers)  # fmt: skip


def test_a_factor_is_followed_while_it_gains():
    runs = []

    def run(contestant, recipe, seed):
        runs.append((contestant, recipe, seed))
        return {"validation": scores_of(recipe)}

    peer = Peer(small())
    assert peer.scalings == ["raw", "standard"]
    contest(peer, run, 3, 99)
    chosen = Recipe("standard", conv="sage", dropout=0.1, layers=5)
    assert [one for one in runs if one[2] > 0 and one[0] == "pyg-classic"] == [
        ("pyg-classic", chosen, 1), ("pyg-classic", chosen, 2)
    ]  # fmt: skip
    tried = [recipe for who, recipe, seed in runs if who == "pyg-classic" and seed == 0]
    assert len(tried) == len(set(tried)) == 9
    assert replace(chosen, norm="layer") in tried
    runs.clear()
    contest(peer, run, 1, 3)
    assert len(runs) == 2 + 3


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "graphs").mkdir()
    save(small(), tmp_path / "graphs" / "tiny.npz")
    save(small(multi_label=True), tmp_path / "graphs" / "many.npz")
    save(small(), tmp_path / "graphs" / "bare.npz", x=None)
    return tmp_path / "graphs"


def test_the_command_and_what_it_keeps(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(defaults_peers, "EPOCHS", 4)
    asked = []

    def in_this_process(module, order, file, threads):
        asked.append(order)
        file.write_text(json.dumps(defaults_ours.run(order)))

    monkeypatch.setattr(defaults, "call", in_this_process)
    work, out = tmp_path / "work", tmp_path / "out.json"
    argv = ["defaults", "--data", str(folder), "--graphs", "tiny,many", "--seeds", "2",
            "--tries", "3", "--work", str(work)]  # fmt: skip
    threads = torch.get_num_threads()
    assert main([*argv, "--only", "peers"]) == 0
    assert not asked
    assert "| tiny |  | " in capsys.readouterr().out
    assert main([*argv, "--out", str(out)]) == 0
    torch.set_num_threads(threads)
    printed, errors = capsys.readouterr()
    assert errors == ""
    assert "pyg" not in printed.partition("Test F1")[0]  # none of them ran again
    assert [order["seed"] for order in asked] == [0, 1, 0, 1]
    report = json.loads(out.read_text())
    assert set(report["results"]) == {"tiny", "many"}
    assert len(out.read_text().splitlines()) < 20
    for rows in report["results"].values():
        assert [rows[who]["seeds"] for who in ("ours", "pyg-plain", "pyg-classic")] == [2, 2, 2]
        assert rows["pyg-plain"]["tried"] == 2
        assert rows["pyg-classic"]["tried"] == 3
        assert rows["ours"]["seconds"] > 0
    files = [json.loads(file.read_text()) for file in (work / "tiny" / "pyg-classic").iterdir()]
    best = max(one["validation"] for one in files if one["recipe"])
    chosen = report["results"]["tiny"]["pyg-classic"]["recipe"]
    assert best in [one["validation"] for one in files if one["recipe"] == chosen]
    asked.clear()
    assert main(argv) == 0
    assert not asked


def test_the_box_comes_by_name_and_a_file_before_it(folder):
    save(small(), folder / "debian.npz")
    found = defaults.found(folder)
    assert set(found) == {"tiny", "many", "debian", "debian-tags", "wordnet"}
    assert found["debian"] == str(folder / "debian.npz")
    assert list(found)[-1] == found["wordnet"] == "wordnet"


def test_the_table():
    row = {"spread": 0.001, "seeds": 3, "validation": 0.9, "choosing_seconds": 50.0, "tried": 9}
    rows = {
        "ours": {"test": 0.91, "spread": 0.002, "seeds": 3, "validation": 0.9, "seconds": 2.0,
                 "process_seconds": 4.0},
        "pyg-plain": row | {"test": 0.9, "seconds": 8.0, "recipe": "p"},
        "pyg-classic": row | {"test": 0.92, "seconds": 20.0, "recipe": "c"},
    }  # fmt: skip
    report = {"results": {"g": rows}, "ratios": {"g/pyg-classic": 10.0}}
    assert defaults.table(report).splitlines()[-1] == (
        "| g | 91.00 ± 0.20, 2.0 s | 90.00 ± 0.10, 8.0 + 50 s | 92.00 ± 0.10, 20.0 + 50 s | c "
        "| -1.00 | 10.0 |"
    )


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--data", "/no/such/folder"], "--data is '/no/such/folder', expected a folder"),
        (["--graphs", "debain"], "did you mean 'debian'"),
        (["--seeds", "0"], "--seeds is 0, expected a whole number >= 1"),
        (["--tries", "0"], "--tries is 0, expected"),
        (["--out", "/no/such/folder/f.json"], "directory that exists"),
    ],
)
def test_refusals(tmp_path, capsys, argv, words):
    assert main(["defaults", "--work", str(tmp_path / "w"), *argv]) == 2
    assert words in capsys.readouterr().err


def test_a_run_of_ours_that_fails_says_why_and_leaves_nothing(folder, tmp_path, capsys):
    save(small(), folder / "bad.npz", x=np.full((120, 5), math.nan, np.float32))
    argv = ["defaults", "--data", str(folder), "--graphs", "bad", "--only", "ours", "--seeds", "1"]
    threads = torch.get_num_threads()
    assert main([*argv, "--work", str(tmp_path / "w")]) == 0
    torch.set_num_threads(threads)
    assert "NaN" in capsys.readouterr().err
    assert not list((tmp_path / "w").rglob("*.json"))


def test_a_process_of_its_own_counts_its_seconds(folder, tmp_path):
    from benchmarks.process import call

    order = {"data": str(folder / "tiny.npz"), "seed": 0}
    found = call("benchmarks.defaults_ours", order, tmp_path / "out.json", 1)
    assert 0 < found["seconds"] < found["process_seconds"]
    assert found["steps"] > 0
    assert "data" not in found["config"]
    with pytest.raises(SgcnError, match="nothing-here"):
        call("benchmarks.defaults_ours", order | {"data": "nothing-here"}, tmp_path / "o.json", 1)
