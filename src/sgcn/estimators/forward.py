"""Forward rules: how the pre-activations Z of a block's rows are formed from samples and histories.

A new rule is a class here or in a file of its own, and a line in `FORWARD_RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.utils.parametrize import is_parametrized

from sgcn.compute.buffers import added, difference, distance, shifted
from sgcn.compute.operators import Shifted
from sgcn.estimators.passes import Pass, Step, Weights, plain_layer
from sgcn.nn.layers import Input
from sgcn.rows import Table


class ForwardRule:
    """``layer`` is eq. for one layer; ``assign`` and ``commit`` keep the tables, if there are."""

    needs_snapshot: ClassVar[bool] = False
    needs_exact: ClassVar[bool] = False
    #: Whether the last layer has a table too.
    keeps_top: ClassVar[bool] = True
    #: Whether the tables follow every step, or rest at the snapshot.
    moves: ClassVar[bool] = False

    def __init__(
        self, depth: int, act: Callable[[Tensor, int], Tensor], make: Callable[[int], Table]
    ):
        self.act = act
        levels = depth - (not self.keeps_top) if self.needs_snapshot else 0
        self.tables = [make(level) for level in range(levels)]
        self.norms = [0.0] * levels  # squared Frobenius norms of the tables' activations
        self.snapshot_norms = [0.0] * levels
        self.moved = 0.0  # how far Z has gone since the snapshot, over its size
        self._moves: dict[int, float] = {}  # the same for the step at hand, layer by layer
        self._drifted: tuple[Pass, list[float]] | None = None  # what `drifted_norms` found last

    def layer(self, step: Step, weights: Weights, level: int, h: Input) -> Tensor:
        return plain_layer(step, weights, level, h)

    def begin(self, step: Step, previous: Weights, anchor: Weights) -> None:
        """Called once before the passes of a regular step."""

    def assign(self, step: Step, run: Pass, nodes: int | None) -> None:
        """Set the tables from a snapshot; ``nodes`` is N when it covers only some rows."""
        for level, table in enumerate(self.tables):
            rows = self.rows(run)[level]
            # A constant belongs to someone else.
            rows = rows.detach() if rows.requires_grad else rows.clone()
            if nodes is None:
                table.assign(rows)
            else:
                table.assign_some(step.nodes[level], rows, nodes)
            norm = float(run.h[level].detach().norm()) ** 2
            self.norms[level] = self.snapshot_norms[level] = norm
        self.moved, self._drifted = 0.0, None

    def rows(self, run: Pass) -> list[Tensor]:
        """What the tables keep of each layer."""
        return run.z

    def drifted_norms(self, run: Pass) -> list[float]:
        """The norms that the tables would have after ``commit(run)``."""
        return self.norms

    def commit(self, step: Step, run: Pass) -> None:
        """Write what a regular step learned, once, after the optimiser's step."""


class Plain(ForwardRule):
    """Z = M H W: no history."""


class _History(ForwardRule):
    """A rule with tables: reads their rows before a step, writes them after it if it ``moves``."""

    needs_snapshot = True
    moves = True

    def begin(self, step: Step, previous: Weights, anchor: Weights) -> None:
        self.old = [t.read(ids) for t, ids in zip(self.tables, step.nodes, strict=False)]
        self._h_old: dict[int, Tensor] = {}
        self.valid = [
            None if t.valid is None else t.valid.index_select(0, ids)[:, None]
            for t, ids in zip(self.tables, step.nodes, strict=False)
        ]

    def h_old(self, level: int) -> Tensor:
        """act(Z_old) of layer ``level`` (0 is the first), made once a step."""
        if level not in self._h_old:
            self._h_old[level] = self.act(self.old[level], level)
        return self._h_old[level]

    def drifted_norms(self, run: Pass) -> list[float]:
        if not self.moves:
            return self.norms
        if self._drifted is None or self._drifted[0] is not run:
            norms = []
            for level, valid in enumerate(self.valid):
                growth = _squares(run.h[level].detach()) - _squares(self.h_old(level))
                growth = growth if valid is None else growth * valid[:, 0]
                norms.append(self.norms[level] + float(growth.sum()))
            self._drifted = run, norms
        return self._drifted[1]

    def commit(self, step: Step, run: Pass) -> None:
        if not self.moves:
            return
        self.norms, self._drifted = self.drifted_norms(run), None
        for level, (table, ids) in enumerate(zip(self.tables, step.nodes, strict=False)):
            table.write(ids, self.rows(run)[level])
            valid = self.valid[level]
            if table.valid is not None and valid is not None:
                table.valid[ids.long()] = True
                # A row that the snapshot did not cover has drifted from nothing: it counts in both.
                fresh = float((_squares(run.h[level].detach()) * ~valid[:, 0]).sum())
                self.norms[level] += fresh
                self.snapshot_norms[level] += fresh


def _squares(rows: Tensor) -> Tensor:
    """The squared length of every row."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths.square()


class _Corrected(_History):
    """Z[R] = Z_old[R] + f(M, H; W) - f(M, H_old; W_old), with H_old = act(Z_old).

    The second f is what a stale pass at W_old computes anyway: if one ran, its value is used. A
    layer whose aggregation was computed beforehand is exact, and nothing is corrected there.
    """

    old_weights: Weights

    def begin(self, step: Step, previous: Weights, anchor: Weights) -> None:
        super().begin(step, previous, anchor)
        self.reference: dict[int, Tensor] = {}

    def layer(self, step: Step, weights: Weights, level: int, h: Input) -> Tensor:
        if weights is self.old_weights and self._knows(step, level):
            return self.old[level].detach().requires_grad_()
        valid = self.valid[level]
        exact = step.operators[level].precomputed
        if not exact and self._knows(step, level):
            return self._changed(step, weights, level, h)
        out = plain_layer(step, weights, level, h)
        if exact and not self.moves and valid is None:
            return out
        if weights is self.old_weights and level not in self.reference:
            self.reference[level] = out.detach()
        if level not in self.reference:
            with torch.no_grad():
                h_old = step.x
                if level > 0:  # a leaf like that of the live pass: layers take the same road for it
                    h_old = self.h_old(level - 1).detach().requires_grad_()
                self.reference[level] = plain_layer(step, self.old_weights, level, h_old)
        if exact:
            self.old[level] = self.reference[level]
            self._h_old.pop(level, None)
            self._moves[level] = 0.0
            return out
        if valid is not None:  # a row without a history is what the old weights make of it
            self.old[level] = torch.where(valid, self.old[level], self.reference[level])
            self._h_old.pop(level, None)
        z = shifted(out, self.reference[level], self.old[level])
        if self.moves and weights is not self.old_weights:
            self._note_move(level, distance(z.detach(), self.old[level]))
        return z if valid is None else torch.where(valid, z, out)

    def _knows(self, step: Step, level: int) -> bool:
        """Whether a pass at the old weights finds just what the table has, and nobody asks how.

        So it is in a first layer, where H is X for both passes: the two f cancel. The gradient by
        the parameters of a linear one is formed once, in the live pass. If the layer is exact it
        must be what the old weights make of P X: a table that rests at the snapshot, without
        dropout, not rounded.
        """
        table, layer = self.tables[level], step.model.layers[level]
        resting = not self.moves and step.dropout == 0.0 and table.dtype == torch.float32
        return (
            level == 0
            and getattr(layer, "linear", False)
            and not is_parametrized(layer)
            and table.valid is None
            and (resting or not step.operators[level].precomputed)
        )

    def _changed(self, step: Step, weights: Weights, level: int, h: Input) -> Tensor:
        """Z_old + f(M, X; W - W_old): one product where f(M, X; W) - f(M, X; W_old) has two."""
        change = {
            name: weight - self.old_weights[name].detach()
            for name, weight in weights.items()
            if name.startswith(f"layers.{level}.")
        }
        moved = plain_layer(step, change, level, h)
        if self.moves:
            self._note_move(level, float(moved.detach().norm()))
        return added(moved, self.old[level])

    def _note_move(self, level: int, change: float) -> None:
        size = float(self.old[level].norm())
        self._moves[level] = change / size if size > 0 else 0.0


class Recursive(_Corrected):
    """eq:sgcn_plus_regular: the tables follow every step, the old weights are the last ones.

    A row that was not refreshed misses what the weights did meanwhile. ``moved`` says how much that
    may be: the relative changes of the steps since the snapshot, added up.
    """

    def begin(self, step: Step, previous: Weights, anchor: Weights) -> None:
        self.old_weights = previous
        super().begin(step, previous, anchor)

    def commit(self, step: Step, run: Pass) -> None:
        super().commit(step, run)
        self.moved += max(self._moves.values())


class Anchored(_Corrected):
    """Ours: the tables and old weights are the last snapshot's, read-only in between."""

    moves = False

    def begin(self, step: Step, previous: Weights, anchor: Weights) -> None:
        self.old_weights = anchor
        super().begin(step, previous, anchor)


class Vrgcn(_History):
    """Z[R] = f(P[R, :], H_old; W) + f(M, H; W) - f(M, H_old; W): history of activations.

    A linear f is taken once, of P[R, :] H_old + M (H - H_old): VRGCN's own form, and a third of the
    dense products.
    """

    needs_exact = True
    keeps_top = False  # nothing reads the history of the last layer

    def rows(self, run: Pass) -> list[Tensor]:
        return run.h

    def h_old(self, level: int) -> Tensor:
        return self.old[level]

    def begin(self, step: Step, previous: Weights, anchor: Weights) -> None:
        super().begin(step, previous, anchor)
        assert not isinstance(step.x, Tensor)
        (_, ids), *above = step.exact
        self.wide: list[Input | None] = [step.x.features.rows(ids)]
        self.covered: list[Tensor | None] = [None]  # rows all of whose neighbours have a history
        self.shifts: dict[int, Shifted] = {}
        for level, (operator, ids) in enumerate(above, start=1):
            table, layer = self.tables[level - 1], step.model.layers[level]
            linear = getattr(layer, "linear", False) and getattr(layer, "sums", False)
            if linear and step.dropout == 0.0:  # one mask for two sums would be another formula
                sampled = step.operators[level]
                wide = operator.aggregate(table.promise(ids))
                base = difference(wide, sampled.aggregate(self.h_old(level - 1)))
                self.shifts[level] = Shifted(sampled, base)
                self.wide.append(None)
            else:
                self.wide.append(table.read(ids))
            if table.valid is None:
                self.covered.append(None)
            else:
                missing = (~table.valid.index_select(0, ids)[:, None]).float()
                self.covered.append(operator.aggregate(missing) == 0)

    def layer(self, step: Step, weights: Weights, level: int, h: Input) -> Tensor:
        covered, wide = self.covered[level], self.wide[level]
        if wide is None:
            z = step.layer(level, weights, h, self.shifts[level])
        else:
            z = step.layer(level, weights, wide, step.exact[level][0])
            if level == 0:  # features are their own history: nothing is sampled
                return z
        if wide is None and covered is None:
            return z
        out = plain_layer(step, weights, level, h)
        if wide is not None:
            z = z + (out - plain_layer(step, weights, level, self.h_old(level - 1)))
        return z if covered is None else torch.where(covered, z, out)


FORWARD_RULES: dict[str, type[ForwardRule]] = {
    "plain": Plain,
    "recursive": Recursive,
    "anchored": Anchored,
    "vrgcn": Vrgcn,
}
