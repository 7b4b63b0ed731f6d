"""What the tests of training share: small labelled graphs, a driver of steps, an exact gradient."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from helpers import SMALL, power_law, propagation_of
from sgcn import Graph, Key, Sampler
from sgcn.compute.operators import Operator
from sgcn.estimators import Estimator, make_estimator
from sgcn.estimators.engine import Engine, Outcome
from sgcn.nn import Model, make_model
from sgcn.samplers import NodeSet
from sgcn.task import Task, split_nodes

# Matrices this small gain nothing from threads, which on a busy machine wait for each other.
torch.set_num_threads(1)
numba.set_num_threads(1)

CLASSES, FEATURES = 4, 5
#: Models beyond a kind of layer: the options of `make_model` that they are made with.
BUILT = {
    "residual": {"norm": "layer", "residual": True},
    "cat": {"layer": "concat", "residual": True, "jump": "cat"},
    "max": {"layer": "gin", "norm": "layer", "residual": True, "jump": "max"},
}
KINDS = ("mean", "concat", "attention", "gin", *BUILT)

# Samplers that leave a destination out of its sources serve only layers that do not read it.
OWN_ROWS = [name for name in SMALL if name not in ("fastgcn", "ladies")]


def labelled(multi_label: bool = False, nodes: int = 60, seed: int = 0, **options: Any) -> Graph:
    """A power-law graph whose labels can be learned from its features, half of it for training."""
    src, dst = power_law(nodes, 4 * nodes, seed)
    rng = np.random.default_rng(seed + 1)
    x = rng.normal(size=(nodes, FEATURES)).astype(np.float32)
    score = x @ rng.normal(size=(FEATURES, CLASSES))
    y = (score > 0).astype(np.uint8) if multi_label else score.argmax(1)
    split = np.repeat([0, 1, 2], [nodes // 2, nodes // 4, nodes - nodes // 2 - nodes // 4])
    return Graph.from_edges(
        src, dst, nodes=nodes, **({"x": x, "y": y, "split": rng.permutation(split)} | options)
    )


def small_model(kind: str = "mean", depth: int = 2, **options: Any) -> Model:
    """Widths that differ, so that no axis can be mistaken for another."""
    widths = {"attention": (6, 8, 4), "max": (6, 6, 6)}.get(kind, (6, 7, 4))[:depth]
    options = {"bias": True} | BUILT.get(kind, {"layer": kind}) | options
    return make_model(FEATURES, CLASSES, widths=widths, seed=3, **options)


def early(name: str, **options: Any) -> Estimator:
    """The estimator ``name`` with corrections from the first step on: tests have few steps."""
    return make_estimator(name, **{"warmup": 0} | options)


def make_engine(
    graph: Graph,
    estimator: Estimator | str = "anchored",
    sampler: Sampler | str = "neighbor",
    model: Model | None = None,
    task: Task | None = None,
    **options: Any,
) -> Engine:
    return Engine(
        early(estimator, restart="never") if isinstance(estimator, str) else estimator,
        model or small_model(),
        graph,
        task or Task.of(graph),
        split_nodes(graph, 0),
        SMALL[sampler] if isinstance(sampler, str) else sampler,
        **options,
    )


def adam(model: Model, lr: float = 0.01) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def frozen(model: Model) -> torch.optim.Optimizer:
    """Learning rate 0."""
    return torch.optim.SGD(model.parameters(), lr=0.0)


def seeds_of(engine: Engine, size: int | None, step: int) -> Any:
    """``size`` training nodes (all of them for None), or what a subgraph sampler wants instead."""
    if engine.sampler.draws_nodes:
        return NodeSet(engine.train, len(engine.graph))
    if size is None:
        return engine.train
    home = engine.train if engine.pool is None else engine.pool
    return np.random.default_rng(step).permutation(home)[:size]


def drive(
    engine: Engine,
    steps: int,
    optimizer: Callable[[Model], torch.optim.Optimizer] = adam,
    size: int | None = 12,
    first: int = 0,
) -> Iterator[Outcome]:
    """Each step's outcome, before the optimiser has used it."""
    moves = optimizer(engine.model)
    for step in range(first, first + steps):
        outcome, key = None, Key(5, 0, step)
        if not engine.due():
            outcome = engine.regular(engine.draw(seeds_of(engine, size, step), key), key)
        if outcome is None:
            outcome = engine.snapshot()
        yield outcome
        engine.apply(outcome, moves)


# -- an exact gradient, dense and in float64 ----------------------------------------------------


class DenseOperator(Operator):
    """A dense matrix over all nodes, in any precision."""

    keeps_constants = False
    own_index = None

    def __init__(self, matrix: Any) -> None:
        self.matrix = torch.as_tensor(matrix, dtype=torch.get_default_dtype())
        self.shape = (self.matrix.shape[0], self.matrix.shape[1])
        self.edges = int((self.matrix != 0).sum())

    def csr(self) -> tuple[Tensor, Tensor, Tensor]:
        rows, cols = self.matrix.nonzero(as_tuple=True)
        indptr = torch.searchsorted(rows, torch.arange(self.shape[0] + 1))
        return indptr, cols, self.matrix[rows, cols]

    def times(self, h: Any) -> Tensor:
        return self.matrix @ h.detach()

    def times_transposed(self, g: Tensor) -> Tensor:
        return self.matrix.T @ g


@contextlib.contextmanager
def float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def exact_gradient(model: Model, graph: Graph, mean_loss: Any = None) -> dict[str, Tensor]:
    """The full-batch gradient: dense P, float64, autograd over the whole model.

    ``mean_loss`` is that of the training nodes' outputs and labels, where it is not the usual one.
    """
    x = graph.x.toarray() if hasattr(graph.x, "toarray") else graph.x
    train = torch.from_numpy(split_nodes(graph, 0)).long()
    with float64():
        wide = copy.deepcopy(model).double()
        operator = DenseOperator(propagation_of(graph))
        logits = wide([operator] * model.depth, torch.as_tensor(x, dtype=torch.float64))[train]
        y = torch.as_tensor(np.asarray(graph.y))[train]
        if mean_loss is not None:
            loss = mean_loss(logits, y)
        elif y.ndim == 2:
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y.double())
        else:
            loss = torch.nn.functional.cross_entropy(logits, y.long())
        loss.backward()
    return {name: p.grad for name, p in wide.named_parameters() if p.grad is not None}


def distance(found: dict[str, Tensor], wanted: dict[str, Any]) -> float:
    """|found - wanted| / |wanted| over all parameters together."""
    assert set(found) == set(wanted)
    pairs = [(found[name].double(), torch.as_tensor(wanted[name])) for name in wanted]
    away = sum(float((a - b).square().sum()) for a, b in pairs)
    return (away / sum(float(b.square().sum()) for _, b in pairs)) ** 0.5


def bits(*tensors: Tensor) -> list[bytes]:
    return [t.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes() for t in tensors]
