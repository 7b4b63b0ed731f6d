"""Layers: ``forward(block, h) -> z`` with an `Operator` and the sources' rows.

They know nothing of samplers or histories. A new kind is a `Layer` here or in a file of its own, a
`LayerKind` with its options, and a line in `LAYERS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from sgcn.compute.buffers import product
from sgcn.compute.inputs import Input, LazyRows, as_tensor
from sgcn.compute.operators import Operator
from sgcn.nn.base import Layer
from sgcn.options import Options, integer, option

# A sparse product moves memory where a dense one computes: measured cost of one multiply-add.
_SPARSE_COST = 6.0


def aggregate_first(block: Operator, h: Input, d_out: int) -> bool:
    """Whether (M h) W costs less than M (h W)."""
    if block.sums_first(h):
        return True
    if isinstance(h, LazyRows) and h.is_sparse:
        return False
    n_dst, n_src = block.shape
    d_in = h.shape[1]
    first = _SPARSE_COST * block.edges * d_in + n_dst * d_in * d_out
    last = _SPARSE_COST * block.edges * d_out + n_src * d_in * d_out
    if not h.requires_grad:  # then backward needs no transposed product either
        last += _SPARSE_COST * block.edges * d_out
    return first <= last


def _times(h: Input, weight: Tensor) -> Tensor:
    return h @ weight if isinstance(h, LazyRows) else product(h, weight)


def _matrix(d_in: int, d_out: int) -> nn.Parameter:
    bound = math.sqrt(6.0 / (d_in + d_out))
    return nn.Parameter(torch.empty(d_in, d_out).uniform_(-bound, bound))


class Dense(nn.Linear):
    """nn.Linear whose results go to memory that is used again."""

    def forward(self, h: Tensor) -> Tensor:
        return product(h, self.weight.T, self.bias)


class GraphConv(Layer):
    """``mean``: Z = P H W + b. ``concat``: Z = [H_dst W, P H W] + b, twice as wide.

    Models leave the bias out by default: it moves all rows of Z at every step, so the rows that a
    history did not refresh lag behind by all of its way.
    """

    lazy_rows = True
    linear = True
    sums_inputs = True

    def __init__(
        self, d_in: int, d_out: int, aggregation: str = "mean", *, bias: bool = True
    ) -> None:
        super().__init__()
        self.aggregation = aggregation
        self.reads_own = aggregation == "concat"
        self.width = d_out * (2 if aggregation == "concat" else 1)
        self.weight = _matrix(d_in, d_out)
        self.bias = nn.Parameter(torch.zeros(self.width)) if bias else None

    def forward(self, block: Operator, h: Input) -> Tensor:
        if self.aggregation == "concat":
            if aggregate_first(block, h, self.weight.shape[1]):
                mixed = product(block.aggregate(h), self.weight)
                own = _times(block.own(h), self.weight)
            else:
                turned = _times(h, self.weight)
                mixed = block.aggregate(turned)
                kept = block.own(turned)
                assert isinstance(kept, Tensor)
                own = kept
            z = torch.cat([own, mixed], 1)
        elif aggregate_first(block, h, self.weight.shape[1]):
            z = product(block.aggregate(h), self.weight)
        else:
            z = block.aggregate(_times(h, self.weight))
        return z if self.bias is None else z + self.bias


class Attention(Layer):
    """GAT-style: row i weighs source j by softmax of a score, times M_ij.

    On the full graph with `row` normalisation the factor M_ij is the same along a row and this is
    GAT; on a sample it is the importance weight that keeps the softmax consistent.
    """

    def __init__(self, d_in: int, d_out: int, heads: int = 4, *, bias: bool = True) -> None:
        super().__init__()
        heads = math.gcd(heads, d_out)
        self.heads, self.width = heads, d_out
        self.weight = nn.Parameter(torch.empty(d_in, d_out))
        self.left = nn.Parameter(torch.empty(heads, d_out // heads))
        self.right = nn.Parameter(torch.empty(heads, d_out // heads))
        self.bias = nn.Parameter(torch.zeros(d_out)) if bias else None
        for parameter in (self.weight, self.left, self.right):
            nn.init.xavier_uniform_(parameter)

    def forward(self, block: Operator, h: Tensor) -> Tensor:
        n_dst = block.shape[0]
        turned = _times(h, self.weight).view(len(h), self.heads, -1)
        own = block.own((turned * self.right).sum(-1))
        assert isinstance(own, Tensor)
        indptr, indices, weights = block.csr()
        degrees = indptr.diff()
        rows = torch.repeat_interleave(torch.arange(n_dst), degrees)
        source = (turned * self.left).sum(-1)
        score = source.index_select(0, indices) + own.index_select(0, rows)
        score = nn.functional.leaky_relu(score, 0.2)
        peak = torch.full((n_dst, self.heads), -torch.inf)
        spread = rows[:, None].expand_as(score)
        peak = peak.scatter_reduce(0, spread, score.detach(), "amax").index_select(0, rows)
        share = torch.exp(score - peak) * weights[:, None]
        total = torch.zeros(n_dst, self.heads).index_add(0, rows, share)
        share = share / total.index_select(0, rows).clamp_min(1e-12)
        mixed = turned.index_select(0, indices) * share[:, :, None]
        summed = torch.zeros(n_dst, *mixed.shape[1:]).index_add(0, rows, mixed)
        return summed.flatten(1) if self.bias is None else summed.flatten(1) + self.bias


class Isomorphism(Layer):
    """GIN: z = MLP((1 + eps) h_dst + M h), the propagation matrix in place of the plain sum."""

    sums_inputs = True

    def __init__(self, d_in: int, d_out: int, *, bias: bool = True) -> None:
        super().__init__()
        self.width = d_out
        self.eps = nn.Parameter(torch.zeros(()))
        self.inner = nn.Linear(d_in, d_out, bias=bias)
        self.outer = nn.Linear(d_out, d_out, bias=bias)

    def forward(self, block: Operator, h: Tensor) -> Tensor:
        own = block.own(h)
        assert isinstance(own, Tensor)
        mixed = (1.0 + self.eps) * own + block.aggregate(h)
        z: Tensor = self.outer(torch.relu(self.inner(mixed)))
        return z


# -- around a layer of any kind -------------------------------------------------------------------


class Residual(Layer):
    """z = inner(block, h) + h_dst, or + h_dst S where the widths differ."""

    def __init__(self, inner: Layer, d_in: int) -> None:
        super().__init__()
        self.inner, self.width = inner, inner.width
        self.lazy_rows, self.sums_inputs = inner.lazy_rows, inner.sums_inputs
        self.skip = None if d_in == self.width else _matrix(d_in, self.width)
        self.linear = inner.linear and self.skip is not None  # else z of zero weights is h_dst

    def forward(self, block: Operator, h: Input) -> Tensor:
        own = block.own(h)
        z: Tensor = self.inner(block, h)
        return z + (as_tensor(own) if self.skip is None else _times(own, self.skip))


class Carry(Layer):
    """z = [inner(block, the first ``reads`` columns of h), the last ``carried`` of h_dst]."""

    def __init__(self, inner: Layer, reads: int, carried: int) -> None:
        super().__init__()
        self.inner, self.reads, self.carried = inner, reads, carried
        self.width = inner.width + carried

    def forward(self, block: Operator, h: Tensor) -> Tensor:
        kept = block.own(h[:, -self.carried :])
        assert isinstance(kept, Tensor)
        return torch.cat([self.inner(block, h[:, : self.reads]), kept], 1)


# -- kinds: what a configuration can name, with its options --------------------------------------


@dataclass(frozen=True)
class LayerKind(Options):
    """A kind of layer and its options; `make` gives one of a certain width."""

    layer: ClassVar[Callable[..., Layer]]

    @classmethod
    def title(cls) -> str:
        return f"{cls.__name__.removesuffix('Kind').lower()} layer"

    def make(self, d_in: int, d_out: int, *, bias: bool) -> Layer:
        return type(self).layer(d_in, d_out, bias=bias)


@dataclass(frozen=True)
class Mean(LayerKind):
    """Z = P H W + b."""

    layer = GraphConv


@dataclass(frozen=True)
class Concat(LayerKind):
    """Z = [H_dst W, P H W] + b."""

    def make(self, d_in: int, d_out: int, *, bias: bool) -> Layer:
        return GraphConv(d_in, d_out, "concat", bias=bias)


@dataclass(frozen=True)
class AttentionKind(LayerKind):
    """Softmax of a score over the neighbours."""

    heads: int = option(4, integer(), "attention heads; as many of them as divide the width")

    def make(self, d_in: int, d_out: int, *, bias: bool) -> Layer:
        return Attention(d_in, d_out, self.heads, bias=bias)


@dataclass(frozen=True)
class IsomorphismKind(LayerKind):
    """GIN."""

    layer = Isomorphism


LAYERS: dict[str, type[LayerKind]] = {
    "mean": Mean,
    "concat": Concat,
    "attention": AttentionKind,
    "gin": IsomorphismKind,
}
