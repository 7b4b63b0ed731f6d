"""The paper's bounds: what is measured lies under them, and where they are tight they are right."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import SMALL, weighted_by
from learning import CLASSES, FEATURES, labelled, make_engine, small_model
from sgcn import Graph, SgcnError, make_model
from sgcn.analysis import GradientProbe, appendix, bounds
from sgcn.analysis.appendix import BoundOptions
from sgcn.analysis.bounds import SMOOTH, Constants, Distances, Norms
from sgcn.analysis.network import Network, steepest
from sgcn.cli import main
from sgcn.nn import ACTIVATIONS
from sgcn.task import Task

SAMPLERS = ("exact", "neighbor", "labor", "ladies-keep", "fastgcn", "saint-node", "cluster")
FEW = {"draws": 16, "gap": 4, "batch_size": 8, "error": 5.0}


def asked(**more):
    return BoundOptions(**FEW | more)


def smooth_model(depth=2, activation="tanh", seed=3, head=True, classes=CLASSES):
    return make_model(
        FEATURES, classes, layers=depth, widths=(6, 7, 4)[:depth], activation=activation,
        seed=seed, head=head,
    )  # fmt: skip


def broken(report):
    """Names of the bounds that do not hold. Rounding: the walks are in float32."""
    return [
        line.name
        for line in report.lines
        if math.isfinite(line.measured) and line.measured > line.bound * (1 + 1e-6)
    ]


# -- what is measured lies under its bound ------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", SAMPLERS)
def test_measured_below_bound(name, depth):
    report = appendix.measure(smooth_model(depth), labelled(), SMALL[name], asked())
    assert broken(report) == []
    assert len(report.lines) == 12
    moving = [
        line for line in report.lines if line.name not in ("Delta_b", "2 (Delta_n + Delta_b)")
    ]
    assert all(line.measured > 0 for line in moving), "every quantity was really measured"


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    activation=st.sampled_from(sorted(SMOOTH)),
    name=st.sampled_from(SAMPLERS),
    weighting=st.sampled_from(["unbiased", "hajek", "row"]),
    multi=st.booleans(),
    head=st.booleans(),
)
def test_measured_below_bound_anywhere(seed, activation, name, weighting, multi, head):
    sampler = SMALL[name] if name == "exact" else weighted_by(SMALL[name], weighting)
    graph = labelled(multi, nodes=20, seed=seed)
    classes = Task.of(graph).outputs
    model = smooth_model(1 + seed % 3, activation, seed, head, classes)
    assert broken(appendix.measure(model, graph, sampler, asked(seed=seed))) == []


def test_small_norms():
    """All norms below 1: products shrink, and the bounds that multiply are the near ones."""
    noise = np.random.default_rng(0)
    small = labelled(nodes=12, x=noise.normal(0, 0.02, (12, FEATURES)).astype(np.float32))
    model = smooth_model(2)
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 0.05
    report = appendix.measure(model, small, SMALL["neighbor"], asked())
    assert broken(report) == []
    assert next(line for line in report.lines if line.name == "C_H").bound < 1


# -- where they are tight -----------------------------------------------------------------------


def scalar(depth, x, w):
    """One node, one feature, no activation, a label that is plainly wrong: |dLoss| = 1."""
    graph = Graph.from_edges(
        [], [], nodes=1, x=np.full((1, 1), x, np.float32), y=np.zeros((1, 1), np.uint8),
        split=np.zeros(1, np.int8),
    )  # fmt: skip
    model = make_model(1, 1, layers=depth, widths=1, activation="identity", head=False)
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(w)
    return appendix.measure(model, graph, SMALL["exact"], asked(rate=1e-9))


def by_name(report):
    return {line.name: line for line in report.lines}


TIGHT = {  # depth, x, w -> the constants that nothing can undercut there
    (1, 100.0, 0.5): ("B_D", "C_H", "C_W", "L_H", "L_W"),
    (2, 2.0, 4.0): ("B_H", "B_D", "C_H"),
    (3, 2.0, 2.5): ("B_H", "B_D", "C_H"),
}


@pytest.mark.parametrize("case", TIGHT)
def test_tight_on_one_node(case):
    """x w^L is 30 and more, so that the slope of the loss is 1 to float64."""
    report = scalar(*case)
    assert broken(report) == []
    for name in TIGHT[case]:
        line = by_name(report)[name]
        assert line.measured == pytest.approx(line.bound, rel=1e-6)
        assert line.sentence == "close: 1 times what was measured"


@pytest.mark.parametrize("name", ["B_H", "B_D", "C_H", "C_W", "L_H", "L_W"])
def test_a_wrong_constant_is_seen(name, monkeypatch):
    """1 % less than the right value breaks a bound."""
    right = Constants.of

    def wrong(*args):
        found = right(*args)
        return dataclasses.replace(found, **{name: 0.99 * getattr(found, name)})

    monkeypatch.setattr(Constants, "of", staticmethod(wrong))
    case = next(case for case, names in TIGHT.items() if name in names)
    report = scalar(*case)
    assert broken(report) == [name]
    assert by_name(report)[name].sentence.startswith("the bound does not hold: 1")


def test_the_exponent_of_the_statement_is_too_small():
    """(..)^(L - l): D^(1) of two layers with C_H = 4 would be at most 4, and is 16."""
    report = scalar(2, 2.0, 4.0)
    stated = max(1.0, report.constants.C_H ** (2 - 1)) * report.norms.C_loss
    assert by_name(report)["B_D"].measured > 3.9 * stated


@pytest.mark.parametrize("name", SMOOTH)
def test_activations(name):
    """C_sigma and L_sigma are the largest slope and bend on a fine grid, to its h^2 / 2."""
    z = torch.linspace(-8.0, 8.0, 160001, dtype=torch.float64).requires_grad_()
    (slope,) = torch.autograd.grad(ACTIVATIONS[name](z).sum(), z)
    bend = slope.diff().abs().max() / 1e-4
    C_sigma, L_sigma = SMOOTH[name]
    assert float(slope.abs().max()) == pytest.approx(C_sigma, abs=1e-7)
    assert float(bend) == pytest.approx(L_sigma, abs=1e-4)
    assert float(ACTIVATIONS[name](torch.zeros(1))) == 0.0


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize("multi", [True, False])
def test_loss_constants(multi, head):
    """The largest gradient and bend over random logits come near C_loss and L_loss from below."""
    graph = labelled(multi)
    network = Network(smooth_model(1, head=head), Task.of(graph))
    C_loss, L_loss = network.loss_constants()
    one, weight = torch.zeros(1, dtype=torch.long), torch.ones(1, dtype=torch.float64)
    noise = torch.Generator().manual_seed(0)

    def gradient(h):
        return network.loss_gradient(h, one, one, weight)[1]

    sizes, bends = [], []
    for scale in (0.1, 1.0, 10.0, 100.0):
        for _ in range(50):
            h = scale * torch.randn(1, network.weights[0].shape[1], generator=noise).double()
            sizes.append(float(gradient(h).norm()))
            bends.append(steepest(gradient, h))
    assert 0.5 * C_loss < max(sizes) <= C_loss
    assert 0.3 * L_loss < max(bends) <= L_loss * (1 + 1e-6)


# -- the arithmetic -----------------------------------------------------------------------------

N1 = Norms(1, C_sigma=1.0, L_sigma=0.5, C_loss=2.0, L_loss=3.0, B_LA=1.5, B_W=0.4, B_X=5.0)
S1 = Distances((0.04,), (0.05,), (0.06,), (0.07,), 0.01)


def test_one_layer_by_hand():
    """C_H = 0.6, so B_H = 5 and B_D = 2; every line below is a line of docs/theory.md."""
    c = Constants.of(N1)
    assert (c.B_H, c.B_D) == (5.0, 2.0)
    assert pytest.approx(0.6) == c.C_H
    assert pytest.approx(7.5) == c.C_W
    assert pytest.approx(max(0.6, 2.25 * 2 * 0.16 * 0.5, 1.5 * 2 + 2.25 * 2 * 0.4 * 2.5)) == c.L_H
    assert pytest.approx(max(7.5, 3 + 2.25 * 5 * 2 * 0.4 * 0.5, 2.25 * 25 * 2 * 0.5)) == c.L_W
    U_C, U_L = 7.5, c.L_W * c.L_H * 3.0
    assert pytest.approx(U_L * U_C + U_L) == c.L_F

    zeta = 0.4 * 5 * 0.2
    g = c.L_W * (3 * zeta + 2 * 0.1) + 5 * 1.5 * 2 * 0.5 * zeta + 2 * 5 * 0.3
    assert bounds.delta_n(N1, S1) == pytest.approx(g**2)
    zeta = 0.4 * 5 * math.sqrt(0.06)
    g = c.L_W * 3 * zeta + 5 * 1.5 * 2 * 0.5 * zeta
    assert bounds.delta_b(N1, S1) == pytest.approx(g**2)

    far, near = math.sqrt(0.04 + 0.05 + 0.07), math.sqrt(0.04 + 0.05)
    c = Constants.of(N1, 2.0)  # alpha
    zeta = far * 5
    g = c.L_W * 3 * zeta + 10 * 1.5 * 2 * 0.5 * zeta
    assert bounds.delta_plus(N1, S1, 3, 2.0) == pytest.approx(9 * (1.5 * 10 * 2) ** 2 * g**2)
    c = Constants.of(N1, 2.0, 4.0)  # and beta
    q = 3 * 1.5 * 5 + 8 * 0.5 * 1.5 * 5
    g = c.L_W * 3 * zeta + 10 * 1.5 * 8 * 0.5 * zeta + (near + 1.5 * 0.1) * 10 * q
    assert bounds.delta_plus_plus(N1, S1, 3, 2.0, 4.0) == pytest.approx(9 * g**2)


def test_two_layers_as_in_the_docs():
    """Delta++' written out for L = 2, C_sigma = 1, K = 3."""
    n = dataclasses.replace(N1, depth=2)
    s = Distances((0.04, 0.09), (0.05, 0.01), (0.06, 0.02), (0.07, 0.03), 0.01)
    c = Constants.of(n, 2.0, 4.0)
    p2, q1, q2 = math.sqrt(0.1), math.sqrt(0.16), math.sqrt(0.13)
    a1 = 5.0
    a2 = c.B_H + 0.4 * 1.5 * a1
    y2 = 3 * 1.5 * a2 + c.B_D * 0.5 * 1.5 * a2
    s2 = 0.4 * y2 + c.B_D
    y1 = 1.5 * s2 + c.B_D * 0.5 * 1.5 * a1
    r2 = p2 + 1.5 * 0.1
    z1 = q1 * a1
    z2 = q2 * a2 + 1.5 * 0.4 * z1
    g2 = c.L_W * 3 * z2 + 1.5 * c.B_H * c.B_D * 0.5 * z2 + 1.5 * c.B_D * z1
    g2 += r2 * (1.5 * a1 * c.B_D + c.B_H * y2)
    d2 = c.L_H * 3 * z2 + 1.5 * c.B_D * 0.4 * 0.5 * z2 + r2 * s2
    g1 = c.L_W * d2 + 1.5 * c.B_H * c.B_D * 0.5 * z1 + q1 * c.B_H * y1
    wanted = 9 * (g1**2 + g2**2)
    assert bounds.delta_plus_plus(n, s, 3, 2.0, 4.0) == pytest.approx(wanted)


def test_nothing_sampled_leaves_no_error():
    """Exact blocks of all rows and nodes: every Delta is 0, at any depth."""
    for depth in (1, 2, 4):
        n, zero = dataclasses.replace(N1, depth=depth), (0.0,) * depth
        s = Distances(zero, zero, zero, zero, 0.0)
        assert bounds.delta_n(n, s) == bounds.delta_b(n, s) == 0.0
        assert bounds.delta_plus(n, s, 10, 1.1) == bounds.delta_plus_plus(n, s, 10, 1.1, 1.1) == 0.0


def test_theorems():
    c = Constants.of(N1)
    one, two, three = bounds.theorems(c, 100, 0.7, n=2.0, b=3.0, plus=5.0, plus_plus=11.0)
    rate = min(1 / c.L_F, 0.1)
    assert one.rate == two.rate == rate
    assert one.bound == pytest.approx(2 * 0.7 / (rate * 100) + rate * c.L_F * 2 + 3)
    assert (one.residual, two.residual, three.residual) == (3.0, 0.0, 0.0)
    assert two.bound == pytest.approx(one.bound - 3 + rate**2 * 5)
    # A root of eta^2 Delta - (1 - L_F eta) = 0, as the proof says.
    assert three.rate**2 * 11 == pytest.approx(1 - c.L_F * three.rate, abs=1e-9)
    assert three.bound == pytest.approx(2 * 0.7 / three.rate / 100)
    gentle = dataclasses.replace(c, L_F=1.0)
    assert bounds.theorems(gentle, 100, 0.7, 0, 0, 0, 0)[0].rate == 0.1


# -- what is measured is what is there ----------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_exact_gradient(depth):
    """The paper's equations, with W^(l) transposed, against automatic ones."""
    graph, model = labelled(), smooth_model(depth)
    setting = appendix._Setting(model, graph, SMALL["exact"], BoundOptions(batch_size=8))
    engine = make_engine(graph, "sgcn", "exact", model)
    outcome = engine.snapshot()
    for level, g in enumerate(setting.exact.gs):
        wanted = outcome.gradient[f"layers.{level}.weight"]
        assert torch.allclose(g.float(), wanted, rtol=1e-4, atol=1e-7)
    assert setting.exact.loss == pytest.approx(outcome.loss, rel=1e-5)


def test_bias_and_variance_are_those_of_the_probe():
    """Two sets of draws of one law: 4.5 standard errors, a chance of 1e-5 each."""
    graph, model = labelled(), smooth_model(2, head=False)
    report = by_name(appendix.measure(model, graph, SMALL["neighbor"], asked(draws=200)))
    engine = make_engine(graph, "sgcn", "neighbor", model)
    found = GradientProbe(200).measure(engine, 8)
    size = found.gradient_norm**2
    for name, mean in (
        ("Delta_n", found.total.variance),
        ("2 (Delta_n + Delta_b)", found.total.bias2),
    ):
        line = report[name]
        spread = math.hypot(line.error, size * mean.error)
        assert abs(line.measured - size * mean.value) < 4.5 * spread


def test_an_unbiased_sampler_has_a_bias_that_the_papers_delta_b_denies():
    """Delta_b is 0 since Pbar = P; the mean of gradients is elsewhere, by many standard errors."""
    options = asked(draws=400, batch_size=30)
    report = appendix.measure(smooth_model(2), labelled(), SMALL["neighbor"], options)
    assert report.deltas["Delta_b"] == 0.0
    line = by_name(report)["2 (Delta_n + Delta_b)"]
    assert line.measured > 4.5 * line.error > 0


def test_distances_are_those_of_the_matrices():
    """Against dense N x N matrices, drawn again."""
    graph, sampler = labelled(nodes=30), weighted_by(SMALL["neighbor"], "row")
    setting = appendix._Setting(smooth_model(2), graph, sampler, BoundOptions(batch_size=6))
    draws = appendix._Draws(setting, 20)
    dense = []
    for draw in range(20):
        draws.add(draw)
        batch = setting.draw(appendix.Key(draws._stream, draw))
        dense.append([_dense(block, len(graph)) for block in batch.blocks])
    means = draws.means()
    found, P = draws.distances(means), setting.P.toarray()
    for level in range(2):
        M = np.array([one[level][0] for one in dense])
        kept = np.array([one[level][1] for one in dense])
        times = kept.sum(0)[:, None]
        mean = np.where(times > 0, M.sum(0) / np.maximum(times, 1), P)
        np.testing.assert_allclose(setting.matrix(means[level]).toarray(), mean, atol=1e-12)
        square = (kept[:, :, None] * (M - mean) ** 2).sum((1, 2)).mean()
        assert found.noise[level] == pytest.approx(square, rel=1e-9)
        assert found.bias[level] == pytest.approx((kept @ ((mean - P) ** 2).sum(1)).mean())
        assert found.bias_all[level] == pytest.approx(((mean - P) ** 2).sum())
        assert found.absent[level] == pytest.approx((~kept @ (P**2).sum(1)).mean())
        assert draws.largest["B_LA"] >= np.sqrt((M**2).sum((1, 2)).max()) - 1e-9
    assert found.batch == pytest.approx(1 / 6 - 1 / 15)


def _dense(block, nodes):
    M, kept = np.zeros((nodes, nodes)), np.zeros(nodes, bool)
    rows = np.repeat(block.dst, np.diff(block.indptr))
    M[rows, block.src[block.indices]] = block.weights
    kept[block.dst] = True
    return M, kept


def test_the_model_stays_as_it_is():
    model = smooth_model()
    before = [w.clone() for w in model.parameters()]
    first, second = (
        appendix.measure(model, labelled(), SMALL["neighbor"], asked()).as_dict() for _ in range(2)
    )
    assert first == second
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_sentences():
    def said(bound, measured):
        return appendix.Line("X", "it", bound, measured).sentence

    assert said(2.0, 1.0) == "close: 2 times what was measured"
    assert said(250.0, 1.0) == "loose: 2.5e+02 times what was measured"
    assert said(1e30, 1.0) == "says nothing: 10^30 times what was measured"
    assert said(1.0, 2.0) == "the bound does not hold: 2 times as much was measured"
    assert said(0.0, 0.0) == "the bound is 0"
    assert said(0.0, 1.0) == "the bound is 0, what was measured is not"
    assert said(1.0, -0.1) == "nothing was found to compare the bound with"
    assert said(1.0, math.nan) == "could not be measured here"


# -- refusals -----------------------------------------------------------------------------------

UNCOVERED = {
    "concat": (small_model("concat"), "the model has concat layers"),
    "gin": (small_model("gin"), "the model has isomorphism layers"),
    "bias": (small_model("mean"), "the layers have a bias"),
    "relu": (small_model("mean", bias=False, activation="relu"), "activation relu is not smooth"),
    "dropout": (small_model("mean", bias=False, dropout=0.5), "dropout is 0.5"),
}


@pytest.mark.parametrize("case", UNCOVERED)
def test_models_that_are_not_covered(case):
    model, words = UNCOVERED[case]
    with pytest.raises(SgcnError, match=words) as caught:
        appendix.measure(model, labelled(), SMALL["neighbor"], asked())
    assert "\n" not in str(caught.value)
    assert "expected" in str(caught.value)


def test_other_refusals(monkeypatch):
    model, graph = smooth_model(), labelled()
    for wrong in ({"steps": 0}, {"steps": 1.5}, {"error": 0.0}, {"error": math.inf}, {"draws": 3}):
        with pytest.raises(SgcnError, match="expected a"):
            appendix.measure(model, graph, SMALL["neighbor"], asked(**wrong))
    zero = labelled(x=np.zeros((60, FEATURES), np.float32))
    with pytest.raises(SgcnError, match="features are all zero"):
        appendix.measure(model, zero, SMALL["neighbor"], asked())
    with torch.no_grad():
        model.layers[0].weight *= 1e30
    with pytest.raises(SgcnError, match="bounds of 2 layers are beyond 1e308"):
        appendix.measure(model, graph, SMALL["neighbor"], asked())
    monkeypatch.setattr("sgcn.machine.available_memory", lambda: 100)
    with pytest.raises(SgcnError, match=r"16 gradients of \d+ weights, .* take fewer draws"):
        appendix.measure(smooth_model(), graph, SMALL["neighbor"], asked())


# -- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    graph, path = labelled(nodes=80), tmp_path_factory.mktemp("data") / "small.npz"
    np.savez(
        path, indptr=graph.indptr, indices=graph.indices, x=graph.x, y=graph.y, split=graph.split
    )
    return path


OPTIONS = ["--draws", "16", "--set", "training.batch_size=16", "--set", "model.widths=6"]


def test_the_command(data, tmp_path, capsys):
    out = tmp_path / "t.json"
    code = main(["theory", str(data), "--sampler", "neighbor,ladies", "--steps", "50", "--error",
                 "4", *OPTIONS, "--out", str(out)])  # fmt: skip
    assert code == 0
    text, found = capsys.readouterr().out, json.loads(out.read_text())
    assert found["why_no_bounds"] is None
    for result in found["results"]:
        part = result["bounds"]
        assert [line["name"] for line in part["lines"][:7]] == [
            "B_H", "B_D", "C_H", "C_W", "L_H", "L_W", "L_F",
        ]  # fmt: skip
        assert set(part["deltas"]) == {"Delta_n", "Delta_b", "Delta_b+'", "Delta++'"}
        assert part["steps"] == 50
        assert len(part["theorems"]) == 3
        assert part["large_batch"]["error"] == 4.0
        assert 1 <= part["large_batch"]["nodes"] <= 40
        for line in part["lines"]:
            start = f"{line['name']:<22}{line['bound']:>10.2e}{line['measured']:>10.2e}  "
            assert start + line["sentence"] in text
        for theorem in part["theorems"]:
            assert f"learning rate {theorem['rate']:.2e}; after 50 steps" in text
    assert text.count("asks for B' = ") == 2
    assert "\nneighbor: B_LA" in text
    assert "\nladies: B_LA" in text


def test_the_weights_of_a_run(data, tmp_path, capsys):
    out, run = tmp_path / "t.json", tmp_path / "run"
    assert main(["train", str(data), "--epochs", "3", "--set", "training.batch_size=16",
                 "--set", "model.widths=6", "--out", str(run), "--quiet"]) == 0  # fmt: skip
    norms = []
    for source in ([str(data), *OPTIONS], ["--run", str(run), "--draws", "16"]):
        assert main(["theory", *source, "--out", str(out)]) == 0
        norms.append(json.loads(out.read_text())["results"][0]["bounds"]["norms"])
    capsys.readouterr()
    assert norms[0]["B_X"] == norms[1]["B_X"]
    assert norms[0]["B_W"] != norms[1]["B_W"]


def test_a_model_without_bounds_keeps_its_distances(data, tmp_path, capsys):
    out = tmp_path / "t.json"
    code = main(["theory", str(data), *OPTIONS, "--set", "model.layer=concat", "--out", str(out)])
    assert code == 0
    assert "no bounds: the model has concat layers, expected mean" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found["results"][0]["bounds"] is None
    assert found["why_no_bounds"].startswith("the model has concat layers")
    assert found["results"][0]["variance"] > 0


BAD = {
    "no steps": (["--steps", "0"], "steps is 0"),
    "no error": (["--error", "0"], "error is 0.0"),
    "a run that is none": (None, "is not a run directory"),
    "a run and data": (["--run", "nowhere"], "--run brings its data and options"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_options(case, data, tmp_path, capsys):
    options, words = BAD[case]
    call = ["--run", str(tmp_path)] if options is None else [str(data), *options]
    assert main(["theory", *call]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"sgcn: error: [^\n]+\n", said.err)
    assert words in said.err


def test_bounds_beyond_numbers_leave_the_distances(data, tmp_path, capsys, monkeypatch):
    def beyond(*args, **options):
        raise appendix.BeyondNumbersError("the bounds are beyond 1e308")

    monkeypatch.setattr(appendix, "measure", beyond)
    out = tmp_path / "theory.json"
    assert main(["theory", str(data), *OPTIONS, "--out", str(out)]) == 0
    assert "no bounds: the bounds are beyond 1e308" in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found["why_no_bounds"] == "the bounds are beyond 1e308"
    assert found["results"][0]["bounds"] is None
    assert found["results"][0]["variance"] > 0


def test_too_many_draws_are_refused_first(data, capsys, monkeypatch):
    monkeypatch.setattr("sgcn.analysis.theory.propagation_error", None)  # not reached
    assert main(["theory", str(data), "--draws", "1000000000000"]) == 2
    assert "take fewer draws" in capsys.readouterr().err
