"""How large a snapshot must be: the paper's matrix Bernstein bound, turned around."""

from __future__ import annotations

import math

import torch

from sgcn.errors import SgcnError
from sgcn.estimators import make_estimator
from sgcn.estimators.engine import Engine
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.samplers.exact import Exact
from sgcn.task import Task, split_nodes


def suggest_large_batch(
    model: Model,
    graph: Graph,
    error: float,
    *,
    confidence: float = 0.95,
    probes: int = 64,
    seed: int = 0,
    task: Task | None = None,
) -> int:
    """B' such that |G' - G| < error |G| with the wanted ``confidence``, at the model's weights.

    Pr(|G' - G| >= eps) <= 2 d exp(-B' min(eps^2 / (4 sigma^2), eps / (2 mu))), with mu and sigma^2
    the largest and the mean square distance of single nodes' gradients from their mean, measured
    on ``probes`` training nodes with exact neighbourhoods. At most all training nodes.
    """
    if not error > 0 or not 0 < confidence < 1 or probes < 2:
        raise SgcnError(
            f"error is {error}, confidence {confidence} and probes {probes}, expected a number "
            "> 0, one between 0 and 1, and at least 2"
        )
    train = split_nodes(graph, 0)
    task = task or Task.of(graph)
    engine = Engine(make_estimator("sgcn"), model, graph, task, train, Exact(), seed=seed)
    chosen = train[permutation(len(train), Key(seed).shuffle_stream())[:probes]]
    rows = []
    for step, node in enumerate(chosen):
        key = Key(seed, 0, step)
        outcome = engine.regular(engine.draw(chosen[step : step + 1], key), key)
        assert outcome is not None, f"a plain step on node {node} cannot ask for a restart"
        rows.append(torch.cat([g.flatten() for g in outcome.gradient.values()]).double())
    each = torch.stack(rows)
    mean = each.mean(0)
    away = (each - mean).norm(dim=1)
    mu, variance = float(away.max()), float(away.square().sum()) / max(len(each) - 1, 1)
    eps = error * float(mean.norm())
    if mu == 0.0:
        return 1
    if eps == 0.0:
        return len(train)
    widest = max(max(p.shape) for p in model.parameters() if p.ndim > 0)
    rate = min(eps**2 / (4.0 * variance), eps / (2.0 * mu))
    return min(len(train), math.ceil(math.log(2.0 * widest / (1.0 - confidence)) / rate))
