"""What a forward rule is: how Z of a block's rows is formed from a sample and from histories."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from sgcn.compute.gradients import Weights
from sgcn.estimators.passes import Pass
from sgcn.estimators.recall import LayerAt, Recall
from sgcn.estimators.shortcuts import Shortcut
from sgcn.options import Options


@dataclass(frozen=True)
class ForwardRule(Options):
    """`layer` is the rule's equation. A rule holds options; what changes is in its histories."""

    #: It corrects by what a snapshot left, and so needs one before it can begin.
    needs_snapshot: ClassVar[bool] = False
    #: It reads all neighbours of a row, from P[R, :].
    needs_exact: ClassVar[bool] = False
    #: The last layer has a history too.
    keeps_last_layer: ClassVar[bool] = True
    #: Histories follow every step; else they rest at the snapshot.
    updates_each_step: ClassVar[bool] = False
    #: Histories are of H = act(Z); else of Z.
    keeps_activations: ClassVar[bool] = False
    #: How far Z goes in a step is counted, for the movement rule.
    counts_changes: ClassVar[bool] = False
    shortcuts: ClassVar[tuple[Shortcut, ...]] = ()

    @abstractmethod
    def layer(self, at: LayerAt) -> Tensor:
        """Z[R] of one layer."""

    def old_weights(self, previous: Weights, anchor: Weights) -> Weights:
        """The weights that the histories are meant to be at."""
        return previous

    def covered(self, at: LayerAt) -> Tensor | None:
        """Rows that have what the equation reads (the others are f(M, H; W)); None: all."""
        return None

    # -- histories ------------------------------------------------------------------------------

    def norms_after(self, recall: Recall, run: Pass) -> list[float]:
        """The squared norms that the histories would have after `commit`."""
        if not self.updates_each_step:
            return []
        steps = zip(recall.histories, recall.step.nodes, run.h, strict=False)
        return [
            history.norm_after(ids, _squares(h) - _squares(recall.activations(level)))
            for level, (history, ids, h) in enumerate(steps)
        ]

    def commit(self, recall: Recall, run: Pass, norms: list[float]) -> None:
        """Write what a regular step learned, after the optimiser's step."""
        if not self.updates_each_step:
            return
        for level, history in enumerate(recall.histories):
            ids, z, h = recall.step.nodes[level], run.z[level], run.h[level]
            rows = h if self.keeps_activations else z
            history.follow(ids, rows, norms[level], partial(_squares, h))


def _squares(rows: Tensor) -> Tensor:
    """The squared length of every row, as a column."""
    lengths: Tensor = torch.linalg.vector_norm(rows.detach(), dim=1, keepdim=True)
    return lengths.square()
