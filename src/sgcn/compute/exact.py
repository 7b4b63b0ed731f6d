"""A full-graph pass, layer by layer and a slice of rows at a time: memory stays bounded."""

from __future__ import annotations

import torch
from torch import Tensor

from sgcn.compute.operators import GraphOperator
from sgcn.graph import Graph
from sgcn.nn import Model, layer_input
from sgcn.nn.layers import Input
from sgcn.rows import Features


@torch.no_grad()
def embed(model: Model, graph: Graph, features: Features, *, rows: int = 1 << 16) -> Tensor:
    """H^L of every node. Holds two layers' tables and the working memory of ``rows`` rows."""
    h: Input = features.all()
    for level, layer in enumerate(model.layers):
        source = layer_input(layer, h)
        slices = [
            model.act(
                layer(GraphOperator(graph, slice(lo, min(lo + rows, len(graph)))), source), level
            )
            for lo in range(0, len(graph), rows)
        ]
        h = slices[0] if len(slices) == 1 else torch.cat(slices)
    assert isinstance(h, Tensor)
    return h


@torch.no_grad()
def predict(model: Model, graph: Graph, features: Features, *, rows: int = 1 << 16) -> Tensor:
    """Logits of every node."""
    logits: Tensor = model.head(embed(model, graph, features, rows=rows))
    return logits
