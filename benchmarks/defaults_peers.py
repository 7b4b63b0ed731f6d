"""PyG's recipes in `python -m benchmarks defaults`: full batch, real GCNConv and SAGEConv.

`pyg-plain` is PyG's own `GCN` of two layers. `pyg-classic` follows "Classic GNNs are strong
baselines" (Luo, Shi and Wu, 2024): convolution + linear residual, norm, ReLU, dropout, and a linear
head. What is not fixed is chosen on validation nodes with seed 0, one factor after the other.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.contestants import csr_tensor
from sgcn.graph import Graph, is_sparse
from sgcn.task import split_nodes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its import uses what torch has deprecated
    from torch_geometric.nn import GCN, GCNConv, SAGEConv

HIDDEN, EPOCHS, PATIENCE = 128, 300, 50
_LOOK = 2  # epochs from one look at the scores to the next
_FULL = 0.05  # features with more that is not zero are dense
_NARROW = 1000  # columns at most that are standardised, which makes them dense


@dataclass(frozen=True)
class Recipe:
    """All that decides a run beside the graph and the seed."""

    features: str  # raw; rows: each divided by its sum; standard: columns of mean 0 and deviation 1
    conv: str = "gcn"  # or sage
    layers: int = 2
    norm: str = "batch"  # or layer
    dropout: float = 0.5
    lr: float = 0.01
    decay: float = 5e-4
    classic: bool = True

    @property
    def name(self) -> str:
        return "-".join(map(str, list(asdict(self).values())[:-1]))


#: What `pyg-classic` tries, in this order: values of a factor while each is better than the last.
FACTORS: tuple[tuple[str, Sequence[Any]], ...] = (
    ("conv", ["sage"]), ("decay", [0.0]), ("dropout", [0.3, 0.1]), ("lr", [0.003]),
    ("layers", [3, 5]), ("norm", ["layer"]),
)  # fmt: skip

Scores = dict[str, Any]
Run = Callable[[str, Recipe, int], Scores]


def contest(peer: Peer, run: Run, seeds: int, tries: int) -> None:
    """Choose both recipes by ``run(contestant, recipe, 0)``, then run them with the other seeds."""
    first, *others = peer.scalings
    scalings = [("features", [other]) for other in others]
    plain = Recipe(first, norm="none", classic=False)
    plain = _climb(plain, scalings, lambda one: run("pyg-plain", one, 0), tries)
    classic = Recipe(plain.features)
    classic = _climb(classic, FACTORS, lambda one: run("pyg-classic", one, 0), tries)
    for seed in range(1, seeds):
        run("pyg-plain", plain, seed)
        run("pyg-classic", classic, seed)


def _climb(
    best: Recipe,
    factors: Sequence[tuple[str, Sequence[Any]]],
    run: Callable[[Recipe], Scores],
    tries: int,
) -> Recipe:
    """The best recipe on validation nodes among those tried."""
    score, tries = run(best)["validation"], tries - 1
    for factor, values in factors:
        for value in values:
            if tries == 0:
                return best
            other = replace(best, **{factor: value})
            found, tries = run(other)["validation"], tries - 1
            if not found > score:
                break
            best, score = other, found
    return best


class Peer:
    """A graph as PyG takes it."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        y = np.asarray(graph.y)
        self.multi_label = y.ndim == 2
        self.labels = torch.from_numpy(y.astype(np.float32 if self.multi_label else np.int64))
        self.classes = int(y.shape[1] if self.multi_label else y.max() + 1)
        self.parts = [torch.from_numpy(split_nodes(graph, part)).long() for part in range(3)]
        self._kept: tuple[str, Tensor] = "", torch.empty(0)

    @property
    def scalings(self) -> list[str]:
        """What may be done to the features, the usual first."""
        x: Any = self.graph.x
        usual = ["raw", "rows"] if is_sparse(x) else ["raw"]
        return usual + ["standard"] * (x.shape[1] <= _NARROW)

    def features(self, scaling: str) -> Tensor:
        if self._kept[0] != scaling:
            self._kept = scaling, scaled(self.graph.x, scaling)
        return self._kept[1]

    def adjacency(self, conv: str) -> Tensor:
        return self._gcn if conv == "gcn" else self._sage

    @cached_property
    def _gcn(self) -> Tensor:
        graph = self.graph.with_propagation(normalization="sym", self_loops=True)
        return csr_tensor(graph.matrix())

    @cached_property
    def _sage(self) -> Tensor:
        graph = self.graph.with_propagation(normalization="row", self_loops=False)
        return csr_tensor(graph.matrix())

    def loss(self, logits: Tensor) -> Tensor:
        guess, y = logits[self.parts[0]], self.labels[self.parts[0]]
        if self.multi_label:
            return functional.binary_cross_entropy_with_logits(guess, y)
        return functional.cross_entropy(guess, y)

    def score(self, logits: Tensor, part: int) -> float:
        """Micro-F1, which is the accuracy where a node has one label."""
        nodes = self.parts[part]
        guess, y = logits[nodes], self.labels[nodes]
        if not self.multi_label:
            return float((guess.argmax(1) == y).double().mean())
        right = ((guess > 0) & (y > 0)).sum()
        return float(2 * right / ((guess > 0).sum() + y.sum()).clamp_min(1))


def scaled(x: Any, scaling: str) -> Tensor:
    """Features as a dense tensor, or as a CSR tensor if they are wide and mostly zeros."""
    if scaling == "standard":
        x = np.asarray(x.toarray() if is_sparse(x) else x, np.float32)
        deviation = x.std(0)
        return torch.from_numpy((x - x.mean(0)) / np.where(deviation > 0, deviation, 1))
    if not is_sparse(x):
        return torch.from_numpy(np.array(x, np.float32))
    if scaling == "rows":
        sums = np.asarray(x.sum(1)).ravel()
        x = sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ x)
    if x.nnz > _FULL * math.prod(x.shape):
        return torch.from_numpy(x.toarray().astype(np.float32))
    return csr_tensor(x)


class SparseLinear(nn.Linear):
    """A linear layer of CSR rows."""

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = torch.sparse.mm(x, self.weight.T)
        return out if self.bias is None else out + self.bias


class Classic(nn.Module):
    """Convolution + linear, norm, ReLU, dropout; sparse features go through a linear layer."""

    def __init__(self, recipe: Recipe, x: Tensor, classes: int) -> None:
        super().__init__()
        width = x.shape[1]
        self.first = None
        if x.is_sparse_csr:
            self.first, width = SparseLinear(width, HIDDEN), HIDDEN
        self.dropout = nn.Dropout(recipe.dropout)
        self.convs, self.lins, self.norms = (nn.ModuleList() for _ in range(3))
        for _ in range(recipe.layers):
            # The values of the matrix make the sum a mean: torch's own mean of CSR is slower.
            conv = (GCNConv(width, HIDDEN, normalize=False) if recipe.conv == "gcn"
                    else SAGEConv(width, HIDDEN, aggr="sum"))  # fmt: skip
            norm = nn.BatchNorm1d if recipe.norm == "batch" else nn.LayerNorm
            self.convs.append(conv)
            self.lins.append(nn.Linear(width, HIDDEN))
            self.norms.append(norm(HIDDEN))
            width = HIDDEN
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        if self.first is not None:
            x = self.dropout(self.first(x))
        for conv, lin, norm in zip(self.convs, self.lins, self.norms, strict=True):
            x = self.dropout(norm(conv(x, adjacency) + lin(x)).relu())
        out: Tensor = self.head(x)
        return out


def make_model(recipe: Recipe, x: Tensor, classes: int) -> nn.Module:
    if recipe.classic:
        return Classic(recipe, x, classes)
    model: nn.Module = GCN(
        x.shape[1], HIDDEN, recipe.layers, classes, dropout=recipe.dropout, normalize=False
    )
    if x.is_sparse_csr:
        convs: Any = model.convs  # torch types it as a module
        conv = convs[0]
        lin = SparseLinear(x.shape[1], HIDDEN, bias=False)
        lin.weight = conv.lin.weight
        conv.lin = lin
    return model


def train(peer: Peer, recipe: Recipe, seed: int) -> Scores:
    """One run: the scores where that of the validation nodes is best, and seconds of CPU."""
    x, adjacency = peer.features(recipe.features), peer.adjacency(recipe.conv)
    began = process_time()
    torch.manual_seed(seed)
    model = make_model(recipe, x, peer.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.lr, weight_decay=recipe.decay)
    best, test, when, epoch = -1.0, math.nan, 0, 0
    while epoch < EPOCHS and epoch - when < PATIENCE:
        model.train()
        optimizer.zero_grad()
        torch.autograd.backward(peer.loss(model(x, adjacency)))
        optimizer.step()
        epoch += 1
        if epoch % _LOOK:
            continue
        model.eval()
        with torch.no_grad():
            logits = model(x, adjacency)
        if (score := peer.score(logits, 1)) > best:
            best, test, when = score, peer.score(logits, 2), epoch
    return {
        "validation": best, "test": test, "seconds": process_time() - began,
        "epochs": epoch, "best_epoch": when, "recipe": recipe.name,
    }  # fmt: skip
