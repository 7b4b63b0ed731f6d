"""The paper's network in float64: Z^l = M^l H^(l-1) W^l and its gradients, equation by equation.

It covers what the appendix speaks of: layers `mean` without a bias and a smooth activation. A dense
head counts as part of the loss: Loss'(h) = Loss(head(h)).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from tqdm import tqdm

from sgcn.analysis.bounds import SMOOTH
from sgcn.block import Block
from sgcn.compute.buffers import applied
from sgcn.nn import GraphConv, Model
from sgcn.task import Task

Matrix = Any  # a scipy matrix: float64, sparse
Input = Any  # H of a layer: a tensor, or a Matrix for features that are sparse

_STEP, _ROUNDS = 1e-4, 4  # of the search for the steepest direction


def refusal(model: Model, task: Task) -> str | None:
    """Why the appendix does not cover ``model`` and ``task``; None if it does."""
    if task.row_loss not in ("cross_entropy", "bce"):
        return f"the loss is {task.row_loss}, expected cross_entropy or bce: set task.loss"
    expected = "expected mean layers without bias, a smooth activation and no dropout"
    for layer in model.layers:
        if not isinstance(layer, GraphConv) or layer.aggregation != "mean":
            kind = getattr(layer, "aggregation", type(layer).__name__.lower())
            key = "residual=false" if kind == "residual" else "layer=mean"
            return f"the model has {kind} layers, {expected}: set model.{key}"
        if layer.bias is not None:
            return f"the layers have a bias, {expected}: set model.bias=false"
    if model.activation not in SMOOTH:
        return (
            f"activation {model.activation} is not smooth, {expected}: set model.activation to one "
            f"of {', '.join(SMOOTH)}"
        )
    for key in ("norm", "jump"):
        if getattr(model, key) != "none":
            return f"{key} is {getattr(model, key)}, {expected}: set model.{key}=none"
    if model.dropout > 0:
        return f"dropout is {model.dropout}, {expected}: set model.dropout=0"
    if not isinstance(model.head, (nn.Identity, nn.Linear)):
        return f"the head is a {type(model.head).__name__}, expected a dense layer or none"
    return None


class _Product(torch.autograd.Function):
    """M h, which can be differentiated any number of times."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, matrix: Matrix) -> Tensor:
        ctx.matrix = matrix
        return torch.from_numpy(matrix @ h.detach().numpy())

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        return times(ctx.matrix.T, g), None


def times(matrix: Matrix, h: Tensor) -> Tensor:
    return applied(_Product, h, matrix)


def _product(h: Input, w: Tensor) -> Tensor:
    """H W."""
    return h @ w if isinstance(h, Tensor) else times(h, w)


def matrix_of(block: Block) -> Matrix:
    return csr_matrix((block.weights.astype("f8"), block.indices, block.indptr), block.shape)


class Pass(NamedTuple):
    """There and back through the network."""

    loss: float
    hs: list[Any]  # H^(0) .. H^(L); the first are the features
    gs: list[Tensor]  # G^(1) .. G^(L)
    ds: list[Tensor]  # D^(1) .. D^(L+1)


class Network:
    """``model`` at its weights, or at others by name."""

    def __init__(self, model: Model, task: Task, weights: Mapping[str, Tensor] | None = None):
        self.model = copy.deepcopy(model).double()
        if weights is not None:
            self.model.load_state_dict({name: w.detach().double() for name, w in weights.items()})
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        self.task = replace(task, labels=task.labels.double()) if task.multi_label else task
        self.weights: list[Tensor] = [layer.get_parameter("weight") for layer in self.model.layers]
        self.depth, self.act = self.model.depth, self.model.act

    @property
    def weight_norm(self) -> float:
        """B_W."""
        return max(float(w.norm()) for w in self.weights)

    def loss_constants(self) -> tuple[float, float]:
        """C_loss and L_loss of one node's loss by H^(L).

        Cross-entropy: |p - e_y| <= sqrt(2), |diag(p) - p p^T| <= 1/2. Sigmoids, mean over k labels:
        1 / sqrt(k) and 1 / (4 k). A head V before it: times |V|_2 and |V|_2^2. Both times the
        largest class weight.
        """
        k, weights = self.task.outputs, self.task.weights
        first, second = (1.0 / math.sqrt(k), 0.25 / k) if self.task.multi_label else (2**0.5, 0.5)
        head = self.model.head
        size = float(torch.linalg.matrix_norm(head.weight, 2)) if hasattr(head, "weight") else 1.0
        most = 1.0 if weights is None else float(weights.max())
        return most * first * size, most * second * size * size

    # -- forward and back -----------------------------------------------------------------------

    def layer(self, level: int, matrix: Matrix, h: Input, w: Tensor | None = None) -> Tensor:
        """Z = M (H W): the sparse product has the columns of the output, not of the features."""
        return times(matrix, _product(h, self.weights[level] if w is None else w))

    def forward(self, matrices: Sequence[Matrix], x: Input) -> list[Tensor]:
        """Z^(1) .. Z^(L)."""
        zs: list[Tensor] = []
        for level, matrix in enumerate(matrices):
            zs.append(self.layer(level, matrix, self.act(zs[-1], level - 1) if zs else x))
        return zs

    def loss_gradient(
        self, h: Tensor, nodes: Tensor, rows: Tensor, weights: Tensor
    ) -> tuple[float, Tensor]:
        """The loss of ``nodes``, whose rows of H^(L) are ``rows``, and D^(L+1): its gradient."""

        def loss(h: Tensor) -> Tensor:
            return self.task.loss(self.model.head(h).index_select(0, rows), nodes, weights)

        return _gradient(loss, h)

    def spread(self, level: int, matrix: Matrix, d: Tensor, z: Tensor) -> Tensor:
        """S^(l) = M^T (D^(l+1) o sigma'(Z^(l)))."""
        _, slope = _gradient(lambda z: self.act(z, level).sum(), z)
        return times(matrix.T, d * slope)

    def gradients(
        self, matrices: Sequence[Matrix], x: Input, nodes: Tensor, rows: Tensor, weights: Tensor,
        zs: list[Tensor] | None = None,
    ) -> Pass:  # fmt: skip
        """The weighted loss of ``nodes`` and its gradients, or those through given Z.

        G^(l) = [M H^(l-1)]^T (D^(l+1) o sigma') = H^(l-1)T S^(l), and D^(l) = S^(l) W^(l)T;
        eq:full_batch_gradient has no transpose there.
        """
        zs = self.forward(matrices, x) if zs is None else zs
        hs = [x, *(self.act(z, level) for level, z in enumerate(zs))]
        loss, d = self.loss_gradient(hs[-1], nodes, rows, weights)
        gs: list[Tensor] = []
        ds = [d]
        for level in reversed(range(self.depth)):
            s = self.spread(level, matrices[level], ds[0], zs[level])
            gs.insert(0, _product(hs[level].T, s))
            ds.insert(0, s @ self.weights[level].T)
        return Pass(loss, hs, gs, ds)

    # -- Lipschitz constants as they are --------------------------------------------------------

    def lipschitz(self, matrices: Sequence[Matrix], at: Pass) -> dict[str, float]:
        """The largest quotients found, over layers and arguments: C_H, C_W, L_H and L_W."""
        found = dict.fromkeys(("C_H", "C_W", "L_H", "L_W"), 0.0)
        levels = tqdm(matrices, desc="constants", unit="layer", leave=False, disable=None)
        for level, matrix in enumerate(levels):
            for name, quotient in self._quotients(level, matrix, at.hs[level], at.ds[level + 1]):
                found[name] = max(found[name], quotient)
        return found

    def _quotients(
        self, level: int, matrix: Matrix, h: Input, d: Tensor
    ) -> Iterator[tuple[str, float]]:
        """How fast a layer's output, D and G change with each of D, H and W."""
        at = {"d": d, "h": h, "w": self.weights[level]}

        def output(d: Tensor, h: Input, w: Tensor) -> Tensor:
            return self.act(self.layer(level, matrix, h, w), level)

        def by_h(d: Tensor, h: Input, w: Tensor) -> Tensor:
            return self.spread(level, matrix, d, self.layer(level, matrix, h, w)) @ w.T

        def by_w(d: Tensor, h: Input, w: Tensor) -> Tensor:
            return _product(h.T, self.spread(level, matrix, d, self.layer(level, matrix, h, w)))

        def along(f: Callable[..., Tensor], one: str) -> float:
            return steepest(lambda v: f(**at | {one: v}), at[one])

        yield "C_W", along(output, "w")
        yield "L_W", max(along(by_w, one) for one in "dw")
        if level == 0 and self.depth > 1:
            return  # features stay, and nobody uses their D
        at["h"] = h if isinstance(h, Tensor) else torch.from_numpy(h.toarray())
        yield "C_H", along(output, "h")
        yield "L_H", max(along(by_h, one) for one in "dhw")
        yield "L_W", along(by_w, "h")


def _gradient(f: Callable[[Tensor], Tensor], at: Tensor) -> tuple[float, Tensor]:
    """f and its gradient, which can be differentiated again if ``at`` can."""
    again = at.requires_grad
    with torch.enable_grad():
        at = at if again else at.detach().requires_grad_()
        value = f(at)
        (found,) = torch.autograd.grad(value, at, create_graph=again)
    return float(value.detach()), found


def steepest(f: Callable[[Tensor], Tensor], at: Tensor, scale: float | None = None) -> float:
    """The largest |f(a) - f(b)| / |a - b| found, for a and b no larger than ``at``.

    Power iteration: the direction of the largest growth is J^T J times itself.
    """
    length = _STEP * (float(at.norm()) if scale is None else scale)
    if length == 0.0:
        return 0.0
    start = ((1.0 - _STEP) * at).requires_grad_()
    noise = torch.Generator().manual_seed(0)
    step = torch.randn(at.shape, generator=noise, dtype=at.dtype)
    value, best = f(start), 0.0
    for _ in range(_ROUNDS):
        size = float(step.norm())
        if size == 0.0:
            break
        step = step * (length / size)
        with torch.no_grad():
            away = f((start + step).detach()) - value
        best = max(best, float(away.norm()) / length)
        if not value.requires_grad:
            break
        (found,) = torch.autograd.grad(value, start, away, retain_graph=True, allow_unused=True)
        step = torch.zeros_like(step) if found is None else found
    return best
