"""Every rule against `dense_paper`, the paper's equations in dense NumPy and float64.

The same sampled blocks and, at every step, the same weights; each side keeps its own histories. A
gradient of one step is off by some 1e-6 of its norm: float32 carries 6e-8, sums run over a few
hundred terms, and a correction is a difference of numbers ten times its size. Histories add such
errors up over the regular steps. 1e-5, as in contract 2, leaves room for that and for nothing else:
a table one step late, old weights of another step or a lost gradient move it by more than 1e-2.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dense_paper import Paper, Sample
from helpers import SMALL, dense_block, propagation_of
from learning import FEATURES, distance, drive, labelled, make_engine, small_model
from sgcn import Batch, Model, make_sampler
from sgcn.estimators import make_estimator
from sgcn.estimators.engine import Engine
from sgcn.estimators.forward import FORWARD_RULES
from sgcn.estimators.gradient import GRADIENT_RULES
from sgcn.nn import GraphConv

REGULAR = 5
SAMPLERS = {
    "exact": SMALL["exact"],
    "neighbor": make_sampler("neighbor", sizes=2),
    "ladies": make_sampler("ladies", sizes=12),
    "fastgcn": make_sampler("fastgcn", sizes=12),
    "saint": make_sampler("saint", size=25),
    "labor": make_sampler("labor", sizes=2),
    "cluster": make_sampler("cluster", parts=6, parts_per_batch=2),
}
MODELS = {"mean": ("mean", 2, False), "concat": ("concat", 3, True)}
RULES = [
    (forward, gradient, with_d)
    for forward in FORWARD_RULES
    for gradient in GRADIENT_RULES
    for with_d in ((False, True) if gradient != "plain" else (False,))
]


def paper_of(engine: Engine, concat: bool) -> Paper:
    graph, estimator = engine.graph, engine.estimator
    return Paper(
        P=propagation_of(graph),
        x=np.asarray(graph.x, np.float64),
        y=np.asarray(graph.y),
        depth=engine.model.depth,
        concat=concat,
        forward_rule=estimator.values()["forward"],
        gradient_rule=estimator.values()["gradient"],
        with_d=estimator.gradient.keeps_layer_gradients,
    )


def dense_sample(batch: Batch, n: int) -> Sample:
    rows = [np.isin(np.arange(n), block.dst) for block in batch.blocks]
    weights = np.zeros(n)
    weights[batch.nodes] = batch.loss_weights
    return Sample([dense_block(block, n) for block in batch.blocks], rows, weights)


def weights_of(engine: Engine) -> dict[str, np.ndarray]:
    return {k: p.detach().double().numpy().copy() for k, p in engine.model.named_parameters()}


def errors(engine: Engine, paper: Paper, steps: int = REGULAR + 1) -> list[float]:
    """The distance of the two gradients at every step."""
    n, drawn = len(engine.graph), []
    draw = engine.draw
    engine.draw = lambda *arguments: drawn.append(draw(*arguments)) or drawn[-1]
    found = []
    for outcome in drive(engine, steps, lambda model: torch.optim.Adam(model.parameters(), 0.02)):
        if outcome.snapshot:
            share = np.isin(np.arange(n), engine.train) / len(engine.train)
            wanted = paper.snapshot(weights_of(engine), share)
        else:
            wanted = paper.regular(weights_of(engine), dense_sample(drawn[-1], n))
        found.append(distance(outcome.gradient, wanted))
    return found


def engine_for(sampler: str, kind: str, rule: tuple[str, str, bool]) -> Engine:
    layer, depth, multi_label = MODELS[kind]
    forward, gradient, with_d = rule
    estimator = make_estimator(
        "sgcn", forward=forward, gradient=gradient, restart="never", gap=REGULAR + 1,
        **{"layer_gradients": True} if with_d else {},
    )  # fmt: skip
    return make_engine(
        labelled(multi_label), estimator, SAMPLERS[sampler], small_model(layer, depth)
    )


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: "-".join(map(str, rule)))
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_rule(sampler, rule, kind):
    engine = engine_for(sampler, kind, rule)
    found = errors(engine, paper_of(engine, kind == "concat"))
    assert max(found) < 1e-5, found


@pytest.mark.parametrize("rule", [("recursive", "recursive", True), ("vrgcn", "anchored", False)])
def test_over_a_second_snapshot(rule):
    engine = engine_for("neighbor", "mean", rule)
    found = errors(engine, paper_of(engine, False), 2 * REGULAR + 2)
    assert max(found) < 1e-5, found


def test_the_tables_too():
    engine = engine_for("neighbor", "mean", ("recursive", "recursive", True))
    paper = paper_of(engine, False)
    errors(engine, paper)
    pairs = [*zip(engine.histories, paper.Z, strict=True)]
    pairs += [(engine.past.histories[0], paper.D[1])]
    for table, wanted in pairs:
        if table.index_of is not None:  # the last layer has the rows that the loss reads
            wanted = wanted[table.index_of >= 0]
        away = np.linalg.norm(table.all_rows().double().numpy() - wanted)
        assert away < 1e-5 * np.linalg.norm(wanted)


BROKEN = {
    "a table one step late": lambda p: setattr(p, "Z", [z * 1.01 for z in p.Z]),
    "old weights of another step": lambda p: setattr(p, "previous", p.anchor),
    "a lost gradient": lambda p: setattr(p, "G", p.G_snapshot),
}


@pytest.mark.parametrize("slip", BROKEN)
def test_a_slip_is_seen(slip):
    engine = engine_for("neighbor", "mean", ("recursive", "recursive", False))
    paper = paper_of(engine, False)
    regular = paper.regular

    def slipping(weights, sample):
        BROKEN[slip](paper)
        return regular(weights, sample)

    paper.regular = slipping
    assert max(errors(engine, paper)) > 1e-2


class Turned(GraphConv):
    """Multiplies before it sums: linear, and not a sum of its input."""

    sums_inputs = False

    def forward(self, block, h):
        h = h if isinstance(h, torch.Tensor) else h.dense()
        return block.aggregate(h @ self.weight)


def test_vrgcn_sums_inputs_only_for_layers_that_do():
    """A layer of one's own takes the three products of the formula, and finds the same."""
    gradients = []
    for kind in (GraphConv, Turned):
        torch.manual_seed(0)
        model = Model([kind(FEATURES, 6, bias=False), kind(6, 4, bias=False)])
        estimator = make_estimator("vrgcn", gap=9, restart="never")
        *_, last = drive(make_engine(labelled(), estimator, "neighbor", model), 4)
        gradients.append(last.gradient)
    assert distance(*gradients) < 1e-5
