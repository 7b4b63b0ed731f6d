"""What is learned: labels, the loss, and the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sgcn.errors import SgcnError
from sgcn.graph import Graph


@dataclass(frozen=True, eq=False)
class Task:
    """Classification: single-label (softmax cross-entropy) or multi-label (sigmoid)."""

    labels: Tensor
    classes: int

    @property
    def multi_label(self) -> bool:
        return self.labels.ndim == 2

    @staticmethod
    def of(graph: Graph) -> Task:
        """The task that the graph's labels set."""
        if graph.y is None:
            raise SgcnError("the graph has no labels (y), expected one row for each node")
        y = np.asarray(graph.y)
        if y.ndim == 2:
            if y.size and not np.isin(y, (0, 1)).all():
                raise SgcnError("multi-label y holds values other than 0 and 1, expected only them")
            return Task(torch.from_numpy(y.astype(np.float32)), y.shape[1])
        if y.dtype.kind not in "iu":
            raise SgcnError(f"y holds {y.dtype} values, expected whole class numbers")
        if y.size and y.min() < -1:
            raise SgcnError(f"y holds {y.min()}, expected classes from 0 on, or -1 for no label")
        classes = int(y.max()) + 1 if y.size else 0
        if classes < 1:
            raise SgcnError("y labels no node, expected classes from 0 on")
        return Task(torch.from_numpy(y.astype(np.int64)), classes)

    def loss(self, logits: Tensor, nodes: Tensor, weights: Tensor | None = None) -> Tensor:
        """sum_k weights[k] * loss(nodes[k]); the mean without weights."""
        y = self.labels.index_select(0, nodes)
        if self.multi_label:
            each = torch.nn.functional.binary_cross_entropy_with_logits(logits, y, reduction="none")
            each = each.mean(1)
        else:
            # A row that carries no weight may have no label; any class will do for it.
            each = torch.nn.functional.cross_entropy(logits, y.clamp_min(0), reduction="none")
        return each.mean() if weights is None else each @ weights

    def score(self, logits: Tensor, nodes: Tensor) -> dict[str, float]:
        """``f1_micro`` and ``loss`` over ``nodes``, given the logits of exactly these."""
        if len(nodes) == 0:
            return {"f1_micro": float("nan"), "loss": float("nan")}
        y = self.labels.index_select(0, nodes)
        if self.multi_label:
            guess = logits > 0
            hit = (guess & (y > 0)).sum().item()
            f1 = 2.0 * hit / max(guess.sum().item() + y.sum().item(), 1.0)
        else:
            f1 = (logits.argmax(1) == y).double().mean().item()
        return {"f1_micro": float(f1), "loss": float(self.loss(logits, nodes))}


def train_nodes(graph: Graph) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The labelled training nodes: there is at least one."""
    train = split_nodes(graph, 0)
    if len(train) == 0:
        raise SgcnError("the graph has no labelled training nodes, expected at least one")
    return train


def split_nodes(graph: Graph, part: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The labelled nodes of split ``part``: 0 training, 1 validation, 2 test."""
    if graph.split is None:
        raise SgcnError("the graph has no split, expected 0 (train), 1 (validation), 2 (test)")
    chosen = np.asarray(graph.split) == part
    if graph.y is not None and np.ndim(graph.y) == 1:
        chosen &= np.asarray(graph.y) >= 0
    return np.flatnonzero(chosen).astype(np.int32)
