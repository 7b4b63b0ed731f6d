"""What a forward rule is: how Z of a block's rows is formed from a sample and from histories."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from sgcn.compute.gradients import Weights
from sgcn.estimators.passes import Pass, Step
from sgcn.estimators.shortcuts import Shortcut
from sgcn.options import Options

if TYPE_CHECKING:
    from sgcn.estimators.recall import LayerAt, Recall


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

    def rows(self, run: Pass) -> list[Tensor]:
        """What the histories keep of a sampled pass, layer by layer."""
        return run.h if self.keeps_activations else run.z

    def h_old(self, at: LayerAt) -> Tensor:
        """H_old[R] of the layer ``at``."""
        if self.keeps_activations or at.z_old is at.recall.rows[at.level]:
            return at.recall.activations(at.level)
        return at.once("h_old", lambda: at.step.model.act(at.z_old, at.level))

    def activations(self, recall: Recall, level: int) -> Tensor:
        """H of the history's rows that a step has read."""
        if self.keeps_activations:
            return recall.rows[level]
        return recall.step.model.act(recall.rows[level], level)

    def norms_after(self, recall: Recall, run: Pass) -> list[float]:
        """The squared norms that the histories would have after `commit`."""
        if not self.updates_each_step:
            return [history.norm for history in recall.histories]
        found = []
        for level, (history, valid) in enumerate(zip(recall.histories, recall.valid, strict=True)):
            growth = _squares(run.h[level].detach()) - _squares(recall.activations(level))
            growth = growth if valid is None else growth.where(valid[:, 0], growth.new_zeros(()))
            found.append(history.norm + float(growth.sum()))
        return found

    def commit(self, step: Step, recall: Recall, run: Pass, norms: list[float]) -> None:
        """Write what a regular step learned, after the optimiser's step."""
        if not self.updates_each_step:
            return
        for level, history in enumerate(recall.histories):
            ids, valid = step.nodes[level], recall.valid[level]
            history.write(ids, self.rows(run)[level])
            history.norm = norms[level]
            if valid is not None:
                fresh = _squares(run.h[level].detach()) * ~valid[:, 0]
                history.validate(ids, float(fresh.sum()))


def _squares(rows: Tensor) -> Tensor:
    """The squared length of every row."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths.square()
