"""What `fit` and the commands make sure of before any work: that graph, model and sampler fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from sgcn.chunks import chunks
from sgcn.compute.inputs import LazyRows
from sgcn.compute.operators import BlockOperator, Operator, Preaggregated
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.rng import Key
from sgcn.rows import store_of
from sgcn.samplers import make_sampler
from sgcn.task import train_nodes
from sgcn.training.options import Training


def check_features(graph: Graph, name: str = "the graph") -> None:
    """Make sure that there are features, all of them numbers; ``name`` is what users call it."""
    if graph.x is None:
        raise SgcnError(f"{name} has no features, expected x with one row for each node")
    if not graph.memo("finite features", lambda: _finite(graph.x)):
        raise SgcnError(f"{name} has features that are NaN or infinite, expected numbers")


def _finite(x: Any) -> bool:
    values = x.data if hasattr(x, "indptr") else x
    parts = chunks(len(values), values[0].size if len(values) else 1)
    return all(np.isfinite(values[part]).all() for part in parts)


def check_model(model: Any) -> None:
    """Refuse what `fit` cannot train, with the way to what it can."""
    name = type(model).__name__
    if hasattr(model, "_orig_mod"):
        raise SgcnError(
            "the model is one of torch.compile, expected the Model itself, whose layers run one "
            "by one: fit(model._orig_mod, ..)"
        )
    if not isinstance(model, Model):
        raise SgcnError(
            f"the model is a {name}, expected a sgcn.Model: make_model(features, classes), or its "
            "graph layers (convolutions of PyG made with normalize=False, add_self_loops=False) "
            "in a Model([conv1, conv2], head)"
        )
    for key, weight in model.named_parameters():
        if weight.device.type != "cpu" or weight.dtype != torch.float32:
            raise SgcnError(
                f"{key} is {weight.dtype} on {weight.device}, expected torch.float32 on the cpu: "
                "model.float().cpu()"
            )


def rehearse(training: Training, graph: Graph, model: Model) -> None:
    """Run ``model`` on the sample of one node: what does not fit shows before any work is done."""
    training.optimizer.make(list(model.parameters()))
    task, early = training.task.on(graph), bool(training.loop.preaggregate)
    if model.depth - early < 1:
        raise SgcnError("preaggregate leaves nothing to sample, expected at least two layers")
    # Subgraphs fit any depth and hold their own rows; a small sample stands in for a big one.
    small = training.sampler.draws_nodes
    sampler = make_sampler("neighbor", sizes=1) if small else training.sampler
    batch = sampler.sample(graph, train_nodes(graph)[:1], Key(0), model.depth - early)
    x = LazyRows(store_of(graph.x), torch.from_numpy(batch.inputs))
    operators: list[Operator] = [BlockOperator(block) for block in batch.blocks]
    operators = ([Preaggregated(x)] if early else []) + operators
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            found, again = (model.train()(operators, x) for _ in range(2))
            outputs = found.shape[1]
    except SgcnError:
        raise
    except (RuntimeError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise SgcnError(
            f"the model does not run on a graph with {x.shape[1]} features ({said}), expected "
            f"layers whose widths fit, like those of make_model({x.shape[1]}, {task.outputs})"
        ) from error
    finally:
        for module, mode in modes:
            module.training = mode
    if not torch.allclose(found, again, rtol=0.0, atol=0.0, equal_nan=True):
        raise SgcnError(
            "the model gives other outputs when it runs again, so that the passes of a step would "
            "not agree: leave out what it drops by itself, and take Model(..., dropout=p)"
        )
    if outputs != task.outputs:
        raise SgcnError(
            f"the model gives {outputs} outputs a node and y holds {task.outputs} {task.kind}, "
            f"expected one output for each: make_model(features, {task.outputs})"
        )
