"""Who runs the steps of `python -m benchmarks step`: ours, torch, PyG, the published procedure.

All train the same model: two graph layers of one width with ELU and a dense head. The others do
what their users do. torch and PyG multiply by W first and leave the backward pass to autograd; PyG
runs every layer on the whole sampled subgraph, as with its NeighborLoader. Samples come from our
sampler and its time counts for all, because theirs cannot be installed everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, elu

from benchmarks import baselines
from benchmarks.engines import make_engine, regular
from sgcn.block import Batch, Block, Int32
from sgcn.estimators import Estimator, make_estimator
from sgcn.estimators.engine import Engine, Outcome
from sgcn.graph import Graph
from sgcn.nn import make_model
from sgcn.rng import Key
from sgcn.samplers import Sampler, make_sampler
from sgcn.task import Task, train_nodes
from sgcn.training.options import OptimizerOptions

WIDTH = 256
DEPTH = baselines.DEPTH
LADIES = 512  # nodes that the published procedure draws in each layer
#: The rows of the paper's table of times.
CATEGORIES = (
    "snapshot_sampling", "snapshot_transfer", "regular_sampling", "regular_transfer", "compute",
)  # fmt: skip

Seconds = dict[str, float]
Seeds = list[tuple[Int32, Key]]


class Ours:
    """Engines as `fit` drives them, without prefetching: sampling stands in line."""

    def __init__(self, graph: Graph, sampler: Sampler, estimator: Estimator, seed: int) -> None:
        self.whole = _driven(graph, make_sampler("exact"), make_estimator("full"), seed)
        self.plain = _driven(graph, make_sampler("neighbor"), make_estimator("sgcn"), seed)
        self.reduced = _driven(graph, sampler, estimator, seed)

    def full(self) -> float:
        engine, optimizer = self.whole
        return _taken(engine, optimizer, engine.snapshot())

    def minibatch(self, seeds: Int32, key: Key) -> float:
        engine, optimizer = self.plain
        return _taken(engine, optimizer, regular(engine, engine.draw(seeds, key), key))

    def cycle(self, steps: Seeds) -> Seconds:
        """A snapshot where the estimator takes them, and a regular step for each of ``steps``."""
        engine, optimizer = self.reduced
        spent = dict.fromkeys(CATEGORIES, 0.0)
        began = perf_counter()
        if engine.estimator.takes_snapshots:
            engine.apply(engine.snapshot(), optimizer)
        for seeds, key in steps:
            start = perf_counter()
            batch = engine.draw(seeds, key)
            spent["regular_sampling"] += perf_counter() - start
            outcome = regular(engine, batch, key)
            spent["regular_transfer"] += outcome.transfer
            engine.apply(outcome, optimizer)
        spent["compute"] = perf_counter() - began - sum(spent.values())
        return spent


def _driven(
    graph: Graph, sampler: Sampler, estimator: Estimator, seed: int
) -> tuple[Engine, torch.optim.Optimizer]:
    engine = make_engine(graph, sampler, estimator, width=WIDTH, seed=seed)
    return engine, OptimizerOptions().make(engine.model.parameters())


def _taken(engine: Engine, optimizer: torch.optim.Optimizer, outcome: Outcome) -> float:
    engine.apply(outcome, optimizer)
    return outcome.loss


class _Peer:
    """Data and weights that the other contestants share."""

    def __init__(self, graph: Graph, seed: int) -> None:
        assert graph.x is not None
        self.graph = graph
        self.task = Task.of(graph)
        self.x = torch.from_numpy(np.asarray(graph.x, np.float32))
        self.train = torch.from_numpy(train_nodes(graph)).long()
        self.sampler = make_sampler("neighbor")
        features, classes = self.x.shape[1], self.task.classes
        model = make_model(features, classes, widths=WIDTH, layers=DEPTH, seed=seed)
        self.weights: dict[str, Tensor] = dict(model.named_parameters())
        self.optimizer = torch.optim.Adam(self.weights.values(), lr=0.01)

    def loss(self, logits: Tensor, nodes: Tensor) -> Tensor:
        return cross_entropy(logits, self.task.labels.index_select(0, nodes))

    def descend(self, logits: Tensor, nodes: Tensor) -> float:
        loss = self.loss(logits, nodes)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.optimizer.step()
        return float(loss.detach())

    def head(self, h: Tensor) -> Tensor:
        return nn.functional.linear(h, self.weights["head.weight"], self.weights["head.bias"])

    def draw(self, seeds: Int32, key: Key) -> Batch:
        return self.sampler.sample(self.graph, seeds, key, DEPTH)


class Torch(_Peer):
    """torch.sparse CSR and autograd."""

    def __init__(self, graph: Graph, seed: int) -> None:
        super().__init__(graph, seed)
        self.p = csr_tensor(graph.matrix())

    def full(self) -> float:
        return self.descend(self._logits([self.p] * DEPTH, self.x)[self.train], self.train)

    def minibatch(self, seeds: Int32, key: Key) -> float:
        batch = self.draw(seeds, key)
        x = self.x.index_select(0, torch.from_numpy(batch.inputs))
        logits = self._logits([_block_tensor(block) for block in batch.blocks], x)
        return self.descend(logits, torch.from_numpy(batch.nodes).long())

    def _logits(self, matrices: list[Tensor], h: Tensor) -> Tensor:
        for level, matrix in enumerate(matrices):
            h = elu(matrix @ (h @ self.weights[f"layers.{level}.weight"]))
        return self.head(h)


class PyG(_Peer):
    """GCNConv on a list of edges or on a CSR tensor, P's values given: nothing is normalised."""

    def __init__(self, graph: Graph, seed: int, *, csr: bool) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its import uses what torch has deprecated
            from torch_geometric.nn import GCNConv

        super().__init__(graph, seed)
        self.csr = csr
        self.layers = []
        for level in range(DEPTH):
            weight = self.weights[f"layers.{level}.weight"]
            layer = GCNConv(*weight.shape, bias=False, normalize=False)
            layer.lin.weight = nn.Parameter(weight.detach().T.contiguous())
            self.weights[f"layers.{level}.weight"] = layer.lin.weight
            self.layers.append(layer)
        self.optimizer = torch.optim.Adam(self.weights.values(), lr=0.01)
        matrix = graph.matrix()
        rows = np.repeat(np.arange(len(graph)), np.diff(matrix.indptr))
        self.edges = pyg_edges(matrix.indices, rows, matrix.data, len(graph), csr=csr)

    def full(self) -> float:
        return self.descend(self._logits(self.x, self.edges)[self.train], self.train)

    def minibatch(self, seeds: Int32, key: Key) -> float:
        batch = self.draw(seeds, key)
        x = self.x.index_select(0, torch.from_numpy(batch.inputs))
        edges = pyg_edges(*subgraph(batch), len(batch.inputs), csr=self.csr)
        logits = self._logits(x, edges).index_select(0, torch.from_numpy(_seed_places(batch)))
        return self.descend(logits, torch.from_numpy(batch.nodes).long())

    def _logits(self, h: Tensor, edges: tuple[Any, Any]) -> Tensor:
        for layer in self.layers:
            h = elu(layer(h, *edges))
        return self.head(h)


def pyg_edges(src: Any, dst: Any, values: Any, nodes: int, *, csr: bool) -> tuple[Any, Any]:
    """Edges as PyG's layers take them: a list and its weights, or a CSR tensor and None."""
    if not csr:
        index = torch.from_numpy(np.stack([src, dst]).astype(np.int64))
        return index, torch.from_numpy(values)
    order = np.lexsort((src, dst))
    indptr = np.searchsorted(dst[order], np.arange(nodes + 1))
    return _csr(indptr, src[order], values[order], (nodes, nodes)), None


def subgraph(batch: Batch) -> tuple[Any, Any, Any]:
    """Sources, destinations (places among the batch's inputs) and weights of the sampled subgraph:
    each node with the neighbours that were drawn for it when it was reached first."""
    lower, upper = batch.blocks
    place = lower.dst_in_src
    seeds = np.zeros(len(batch.inputs), np.bool_)
    seeds[place[upper.dst_in_src]] = True
    rows = place[np.repeat(np.arange(len(lower.dst)), np.diff(lower.indptr))]
    deeper = ~seeds[rows]
    tops = place[upper.dst_in_src[np.repeat(np.arange(len(upper.dst)), np.diff(upper.indptr))]]
    return (
        np.concatenate([place[upper.indices], lower.indices[deeper]]),
        np.concatenate([tops, rows[deeper]]),
        np.concatenate([upper.weights, lower.weights[deeper]]),
    )


def _seed_places(batch: Batch) -> Any:
    lower, upper = batch.blocks
    return lower.dst_in_src[upper.dst_in_src]


class Published(_Peer):
    """SGCN++ with LADIES as its authors run it, in SciPy and torch.

    Rows are sliced and columns drawn with ``choice``. Matrices are lists of entries (COO). The
    tables hold activations. A regular step goes three times forward and twice back: at the last
    weights with the tables' rows in place of what it computes, and at the new ones, where each
    layer subtracts what the last weights make of the tables. Then all tables are copied, and their
    mean distance from those of the snapshot would decide on a restart.
    """

    def __init__(self, graph: Graph, seed: int) -> None:
        super().__init__(graph, seed)
        self.data = graph.memo("published", lambda: baselines.Published(graph))
        self.rng = np.random.default_rng(seed)
        self.gradient: list[Tensor] = []
        self.tables = torch.empty(0)
        self.first = torch.empty(0)
        self.distance = 0.0
        self.previous: dict[str, Tensor] = {}

    def cycle(self, steps: Seeds) -> Seconds:
        spent = dict.fromkeys(CATEGORIES, 0.0)
        began = perf_counter()
        self.snapshot(spent)
        for seeds, _ in steps:
            self.regular(seeds, spent)
        spent["compute"] = perf_counter() - began - sum(spent.values())
        return spent

    def snapshot(self, spent: Seconds) -> float:
        """The exact gradient, and the tables H of all layers."""
        start = perf_counter()
        everyone = np.arange(len(self.graph))
        sliced = [self.data.P[everyone, :] for _ in range(DEPTH)]
        spent["snapshot_sampling"] += perf_counter() - start
        start = perf_counter()
        matrices = [_entries(matrix) for matrix in sliced]
        spent["snapshot_transfer"] += perf_counter() - start
        h, hs = self.x, []
        for level, matrix in enumerate(matrices):
            h = self._layer(self.weights, level, matrix, h)
            hs.append(h.detach())
        loss = self.loss(self.head(h)[self.train], self.train)
        self.gradient = [g.clone() for g in torch.autograd.grad(loss, [*self.weights.values()])]
        self.tables = torch.stack(hs)
        self.first = self.tables.clone()
        self._descend()
        return float(loss.detach())

    def regular(self, seeds: Int32, spent: Seconds) -> float:
        """H[R] = H_old[R] + f(H; W) - f(H_old; W_old); G = G_old + g(W) - g(W_old)."""
        start = perf_counter()
        layers = baselines.ladies_layers(self.data, seeds, LADIES, self.rng)[::-1]
        spent["regular_sampling"] += perf_counter() - start
        start = perf_counter()
        matrices = [_entries(block) for block, _, _ in layers]
        rows = [torch.from_numpy(of.astype(np.int64)) for _, of, _ in layers]
        x = self.x[torch.from_numpy(layers[0][2].astype(np.int64))]
        spent["regular_transfer"] += perf_counter() - start

        def gradient(weights: dict[str, Tensor], h: Tensor) -> tuple[float, tuple[Tensor, ...]]:
            logits = nn.functional.linear(h, weights["head.weight"], weights["head.bias"])
            loss = self.loss(logits, rows[-1])
            return float(loss.detach()), torch.autograd.grad(loss, [*weights.values()])

        h = x
        for level, matrix in enumerate(matrices):
            h = self._layer(self.previous, level, matrix, h)
            h = h - h.detach() + self.tables[level, rows[level]]
        _, stale = gradient(self.previous, h)

        h, hs = x, []
        for level, matrix in enumerate(matrices):
            known = x if level == 0 else self.tables[level - 1, rows[level - 1]]
            reference = self._layer(self.previous, level, matrix, known)
            h = self._layer(self.weights, level, matrix, h)
            h = h + self.tables[level, rows[level]] - reference.detach()
            hs.append(h.detach())
        for level, found in enumerate(hs):
            self.tables[level, rows[level]] = found
        self.distance = float((self.tables.clone() - self.first).abs().mean())
        loss, live = gradient(self.weights, h)
        self.gradient = [g + (a - b) for g, a, b in zip(self.gradient, live, stale, strict=True)]
        self._descend()
        return loss

    def _layer(self, weights: dict[str, Tensor], level: int, matrix: Tensor, h: Tensor) -> Tensor:
        return elu(torch.spmm(matrix, h @ weights[f"layers.{level}.weight"]))

    def _descend(self) -> None:
        self.previous = {
            name: weight.detach().clone().requires_grad_() for name, weight in self.weights.items()
        }
        for weight, gradient in zip(self.weights.values(), self.gradient, strict=True):
            weight.grad = gradient.clone()
        self.optimizer.step()


def _entries(matrix: Any) -> Tensor:
    listed = matrix.tocoo().astype(np.float32)
    index = torch.from_numpy(np.vstack(listed.coords).astype(np.int64))
    return torch.sparse_coo_tensor(index, torch.from_numpy(listed.data), matrix.shape)


def csr_tensor(matrix: Any) -> Tensor:
    return _csr(matrix.indptr, matrix.indices, matrix.data.astype(np.float32), matrix.shape)


def _block_tensor(block: Block) -> Tensor:
    return _csr(block.indptr, block.indices, block.weights, block.shape)


def _csr(indptr: Any, indices: Any, values: Any, shape: Any) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its CSR tensors a beta
        return torch.sparse_csr_tensor(
            torch.from_numpy(indptr.astype(np.int64)),
            torch.from_numpy(indices.astype(np.int64)),
            torch.from_numpy(values),
            shape,
        )


#: Peers of the full-batch and the mini-batch step by name: (graph, seed) -> peer.
PEERS: dict[str, Callable[[Graph, int], Torch | PyG]] = {
    "torch": Torch,
    "pyg-csr": lambda graph, seed: PyG(graph, seed, csr=True),
    "pyg-edge": lambda graph, seed: PyG(graph, seed, csr=False),
}


def missing(peer: str, graph: Graph, memory: float) -> str | None:
    """Why ``peer`` cannot take part on ``graph``, or None."""
    if peer.startswith("pyg") and find_spec("torch_geometric") is None:
        return "torch_geometric is not installed"
    # A message for every edge, its gradient and a product with its weight.
    if peer == "pyg-edge" and 3 * 4 * WIDTH * graph.edges > memory / 2:
        return "its messages take more than half of the memory"
    return None
