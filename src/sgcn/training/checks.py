"""What `fit` and the commands make sure of before any work: that graph, model and sampler fit."""

from __future__ import annotations

import torch

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


def rehearse(training: Training, graph: Graph, model: Model) -> None:
    """Run ``model`` on the sample of one node: what does not fit shows before any work is done."""
    task = training.task.on(graph)
    early = bool(training.loop.preaggregate)
    if model.depth - early < 1:
        raise SgcnError("preaggregate leaves nothing to sample, expected at least two layers")
    # Subgraphs fit any depth and hold their own rows; a small sample stands in for a big one.
    small = training.sampler.draws_nodes
    sampler = make_sampler("neighbor", sizes=1) if small else training.sampler
    batch = sampler.sample(graph, train_nodes(graph)[:1], Key(0), model.depth - early)
    x = LazyRows(store_of(graph.x), torch.from_numpy(batch.inputs))
    operators: list[Operator] = [BlockOperator(block) for block in batch.blocks]
    outputs = model(([Preaggregated(x)] if early else []) + operators, x).shape[1]
    if outputs != task.outputs:
        raise SgcnError(
            f"the model gives {outputs} outputs a node and y holds {task.outputs} {task.kind}, "
            f"expected one output for each: make_model(features, {task.outputs})"
        )
