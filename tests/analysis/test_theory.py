"""The distances of M from P: Monte Carlo against formulas, and both against dense matrices."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from helpers import SMALL, propagation_of, sample_moments, weighted_by, zoo_graph
from learning import labelled
from sgcn import Graph, SgcnError, make_sampler
from sgcn.analysis import theory
from sgcn.analysis.theory import formula, propagation_error
from sgcn.cli import main

SEEDS = np.arange(0, 60, 5, dtype=np.int32)
DRAWS = 400
UNBIASED = {"weighting": "unbiased"}
KNOWN = {
    "neighbor": make_sampler("neighbor", sizes=2),
    "labor": make_sampler("labor", sizes=2),
    "vrgcn": make_sampler("vrgcn"),
    "fastgcn": make_sampler("fastgcn", sizes=20, keep_destinations=False, **UNBIASED),
    "fastgcn-keep": make_sampler("fastgcn", sizes=20, **UNBIASED),
    "ladies": make_sampler(
        "ladies", sizes=20, keep_destinations=False, draws="independent", **UNBIASED
    ),
    "ladies-keep": make_sampler("ladies", sizes=20, draws="independent", **UNBIASED),
    "cluster": make_sampler("cluster", parts=5, parts_per_batch=2, **UNBIASED),
    "cluster-as-published": make_sampler(
        "cluster", parts=5, parts_per_batch=2, rescale_between=False, **UNBIASED
    ),
}


@pytest.mark.parametrize("kind", ["power-law", "weighted", "directed"])
@pytest.mark.parametrize("name", KNOWN)
def test_monte_carlo_and_formula_agree(name, kind):
    graph = zoo_graph(kind)
    found = propagation_error(graph, KNOWN[name], SEEDS, draws=DRAWS)
    variance, bias2 = found.formula
    assert abs(found.variance.value - variance) < 4.5 * found.variance.error
    assert abs(found.bias2.value - bias2) < 4.5 * found.bias2.error
    assert 0 < found.variance.error < 0.1 * variance
    assert (bias2 > 0.01) == (name == "cluster-as-published")


def test_a_wrong_formula_does_not_agree():
    """One neighbour more or less is seen at these error bars."""
    graph = zoo_graph("power-law")
    found = propagation_error(graph, KNOWN["neighbor"], SEEDS, draws=DRAWS)
    for sizes in (1, 3):
        other, _ = formula(graph, make_sampler("neighbor", sizes=sizes), SEEDS)
        assert abs(found.variance.value - other) > 10 * found.variance.error


@pytest.mark.parametrize("loops", [True, False])
def test_the_diagonal_is_a_neighbour_only_without_added_loops(loops):
    src, dst = [0, 0, 0, 1, 1, 2, 3, 3, 5], [0, 1, 2, 1, 2, 4, 3, 4, 0]
    graph = Graph.from_edges(src, dst, self_loops=loops)
    rows = np.arange(6, dtype=np.int32)
    sampler = make_sampler("neighbor", sizes=1)
    found = propagation_error(graph, sampler, rows, draws=DRAWS)
    P = propagation_of(graph)
    factor = np.maximum(graph.degrees, 1) - 1.0
    each = factor[:, None] * P**2 * (1 - np.eye(6) if loops else 1.0)
    assert found.formula[0] == pytest.approx(each.sum() / np.square(P).sum(), rel=1e-5)
    assert abs(found.variance.value - found.formula[0]) < 4.5 * found.variance.error


def test_nothing_is_left_out():
    graph = zoo_graph("power-law")
    for sampler in (SMALL["exact"], make_sampler("neighbor", sizes=100)):
        found = propagation_error(graph, sampler, SEEDS, draws=16)
        assert found.formula == (0.0, 0.0)
        assert found.variance.value == pytest.approx(0.0, abs=1e-12)
        assert found.bias2.value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("weighting", ["unbiased", "row"])
@pytest.mark.parametrize("name", ["neighbor", "ladies-keep", "saint-node", "saint-edge"])
def test_against_dense_moments(name, weighting):
    """The same draws, summed as dense matrices; rows count that were kept twice."""
    graph, sampler = zoo_graph("power-law"), weighted_by(SMALL[name], weighting)
    found = propagation_error(graph, sampler, SEEDS, draws=100, seed=7)
    sums, P = sample_moments(graph, sampler, SEEDS, 100), propagation_of(graph)
    rows = sums.kept >= 2
    n = sums.kept[rows][:, None]
    mean = sums.total[rows] / n
    variance = (sums.squares[rows] - n * mean**2) / (n - 1)
    bias2 = np.square(mean - P[rows]) - variance / n
    size = np.square(P[rows]).sum()
    assert found.rows == rows.sum()
    assert found.variance.value == pytest.approx(variance.sum() / size, rel=1e-4)
    assert found.bias2.value == pytest.approx(bias2.sum() / size, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("weighting", ["hajek", "row"])
def test_weightings_without_a_formula(weighting):
    graph = zoo_graph("power-law")
    found = propagation_error(graph, weighted_by(SMALL["neighbor"], weighting), SEEDS, draws=DRAWS)
    assert found.formula is None
    if weighting == "row":
        assert found.bias2.value > 6 * found.bias2.error
    assert propagation_error(graph, SMALL["ladies"], SEEDS, draws=16).formula is None


def test_duplicate_seeds_are_one_row():
    graph = zoo_graph("power-law")
    once, twice = (
        propagation_error(graph, SMALL["neighbor"], seeds, draws=16)
        for seeds in (SEEDS, np.concatenate([SEEDS, SEEDS]))
    )
    assert once == twice


def test_a_graph_without_entries():
    graph = Graph.from_edges([], [], nodes=3, self_loops=False)
    found = propagation_error(graph, SMALL["neighbor"], np.arange(3), draws=16)
    assert found.formula is None
    assert found.as_dict()["variance"] is None


@pytest.mark.parametrize("draws", [15, 20.5, True])
def test_too_few_draws(draws):
    with pytest.raises(SgcnError, match=f"draws is {draws}, expected a whole number >= 16"):
        propagation_error(zoo_graph("hub"), SMALL["neighbor"], SEEDS[:3], draws=draws)


def test_more_than_memory_holds(monkeypatch):
    monkeypatch.setattr("sgcn.machine.available_memory", lambda: 100)
    with pytest.raises(SgcnError, match=r"moments of \d+ entries need 0.0 GB of memory"):
        propagation_error(zoo_graph("hub"), SMALL["neighbor"], SEEDS[:3])


# -- the command --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    graph, path = labelled(nodes=80), tmp_path_factory.mktemp("data") / "small.npz"
    np.savez(path, indptr=graph.indptr, indices=graph.indices, y=graph.y, split=graph.split)
    return path


def test_the_command(data, tmp_path, capsys):
    out = tmp_path / "t.json"
    code = main(["theory", str(data), "--sampler", "neighbor,saint", "--draws", "40", "--seed", "2",
                 "--set", "training.batch_size=16", "--out", str(out)])  # fmt: skip
    assert code == 0
    found = json.loads(out.read_text())
    assert (found["draws"], found["seed"]) == (40, 2)
    first, second = found["results"]
    assert (first["sampler"], first["rows"], first["bias2_formula"]) == ("neighbor", 16, 0.0)
    assert first["variance"] == pytest.approx(first["variance_formula"], rel=0.3)
    assert (second["sampler"], second["variance_formula"]) == ("saint", None)
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.endswith("rows")
    assert rows[0].split()[0] == "neighbor"
    assert rows[0].split()[-1] == "16"
    assert float(rows[0].split()[1]) == pytest.approx(first["variance"], rel=0.01)
    assert "-" in rows[1].split()


OPTIONS = {
    "an unknown sampler": (["--sampler", "ladie"], "sampler is 'ladie'"),
    "too few draws": (["--draws", "3"], "draws is 3"),
    "a bad place": (["--out", "no/where.json"], "--out is 'no/where.json'"),
    "a negative seed": (["--seed", "-1"], "seed is -1"),
    "sizes that do not fit": (["--set", "sampler.sizes=[1, 2, 3]"], "sizes has 3 entries"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(case, data, capsys):
    options, words = OPTIONS[case]
    assert main(["theory", str(data), *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(r"sgcn: error: [^\n]+\n", said.err)
    assert words in said.err


def test_rows_are_training_nodes():
    graph = labelled()
    rows = theory.some_rows(graph, 10, 0)
    assert len(set(rows.tolist())) == 10
    assert (np.asarray(graph.split)[rows] == 0).all()
    assert rows.tolist() != theory.some_rows(graph, 10, 1).tolist()
    assert len(theory.some_rows(graph, 1000, 0)) == 30
