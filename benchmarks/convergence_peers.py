"""PyG in `python -m benchmarks convergence`: full batch, and mini-batches of its NeighborLoader.

PyG's loader needs pyg_lib or torch_sparse. Without them its layers get our neighbour batches, of
the same sizes. The weights start as ours do, and are written back when the run is scored.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import repeat
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import elu

from benchmarks.contestants import pyg_edges, subgraph
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.samplers import make_sampler
from sgcn.sources import Loader
from sgcn.task import Task, train_nodes
from sgcn.training.options import OptimizerOptions

if TYPE_CHECKING:  # the run imports this module where PyG is there
    from benchmarks.convergence_runs import Spec

SIZE = 5  # neighbours of a node in a layer: the default of our `neighbor`
_PROBES = 3  # mini-batch steps that decide which form is faster

#: A batch as PyG takes it: features, edges (a list and weights, or a CSR tensor and None), the
#: places of the seeds among its nodes, and the seeds.
PyGBatch = tuple[Tensor, Any, Any, Tensor, Tensor]


def own_loader() -> bool:
    """Whether PyG can sample neighbours by itself."""
    return find_spec("pyg_lib") is not None or find_spec("torch_sparse") is not None


def loader_words() -> str:
    """For the report: where the mini-batches came from."""
    if own_loader():
        return "PyG's NeighborLoader"
    return "our neighbour batches (PyG's loader needs pyg_lib or torch_sparse)"


class Trainer:
    """A stack of GCNConv with our head, values of P given: nothing is normalised twice."""

    def __init__(
        self, graph: Graph, model: Model, *, csr: bool, optimizer: str = "adam", lr: float = 0.01
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its import uses what torch has deprecated
            from torch_geometric.nn import GCNConv

        self.graph, self.model, self.csr, self.task = graph, model, csr, Task.of(graph)
        self.concat = getattr(model.layers[0], "aggregation", "mean") == "concat"
        self.layers = nn.ModuleList()
        for layer in model.layers:
            weight = layer.weight
            assert isinstance(weight, Tensor)
            conv = GCNConv(*weight.shape, bias=False, normalize=False)
            conv.lin.weight = nn.Parameter(weight.detach().T.contiguous())
            self.layers.append(conv)
        parameters = [*self.layers.parameters(), *model.head.parameters()]
        self.optimizer = OptimizerOptions.of({"name": optimizer, "lr": lr}).make(parameters)
        self.x = features(graph)
        self.train = torch.from_numpy(train_nodes(graph)).long()

    def step(self, batch: PyGBatch) -> float:
        x, edges, values, places, nodes = batch
        h = x
        for layer in self.layers:
            h = elu(self._layer(layer, h, edges, values))
        logits = self.model.head(h.index_select(0, places))
        loss = self.task.loss(logits, nodes)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.optimizer.step()
        return float(loss.detach())

    def _layer(self, layer: Any, h: Tensor, edges: Any, values: Any) -> Tensor:
        if not self.concat:
            out: Tensor = layer(h, edges, values)
            return out
        turned = layer.lin(h)
        return torch.cat([turned, layer.propagate(edges, x=turned, edge_weight=values)], 1)

    @torch.no_grad()
    def publish(self) -> None:
        """Write the weights into our model, which is what gets scored."""
        for ours, theirs in zip(self.model.layers, self.layers, strict=True):
            one: Any = ours  # a Module types its attributes as tensors or modules
            conv: Any = theirs
            one.weight.copy_(conv.lin.weight.T)

    def whole(self) -> PyGBatch:
        matrix = self.graph.matrix()
        rows = np.repeat(np.arange(len(self.graph)), np.diff(matrix.indptr))
        values = matrix.data.astype(np.float32)
        edges = pyg_edges(matrix.indices, rows, values, len(self.graph), csr=self.csr)
        return self.x, *edges, self.train, self.train

    def batches(self, batch_size: int, seed: int) -> Iterator[PyGBatch]:
        """Mini-batches without an end."""
        if own_loader():
            return self._theirs(batch_size, seed)
        return self._ours(batch_size, seed)

    def _ours(self, batch_size: int, seed: int) -> Iterator[PyGBatch]:
        sampler = make_sampler("neighbor", sizes=SIZE)
        nodes = train_nodes(self.graph)
        loader = Loader(self.graph, nodes, sampler, batch_size=batch_size, seed=seed, threads=0)
        for epoch in range(sys.maxsize):
            for batch in loader.epoch(epoch):
                lower, upper = batch.blocks
                yield (
                    self.x.index_select(0, torch.from_numpy(batch.inputs)),
                    *pyg_edges(*subgraph(batch), len(batch.inputs), csr=self.csr),
                    torch.from_numpy(lower.dst_in_src[upper.dst_in_src]),
                    torch.from_numpy(batch.nodes).long(),
                )

    def _theirs(self, batch_size: int, seed: int) -> Iterator[PyGBatch]:
        """Sampled edges of equal worth, P made of them anew: what PyG's examples do."""
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.nn.conv.gcn_conv import gcn_norm

        rows = np.repeat(np.arange(len(self.graph)), np.diff(self.graph.indptr))
        index = torch.from_numpy(np.stack([self.graph.indices, rows]).astype(np.int64))
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would like pyg-lib better than torch-sparse
            loader = NeighborLoader(
                Data(x=self.x, edge_index=index), [SIZE] * self.model.depth, self.train,
                batch_size=batch_size, shuffle=True,
            )  # fmt: skip

        def drawn() -> Iterator[PyGBatch]:
            while True:
                for batch in loader:
                    edges, values = gcn_norm(batch.edge_index, None, batch.num_nodes)
                    src, dst = edges.numpy()
                    yield (
                        batch.x,
                        *pyg_edges(src, dst, values.numpy(), batch.num_nodes, csr=self.csr),
                        torch.arange(batch.batch_size),
                        batch.n_id[: batch.batch_size],
                    )

        return drawn()


def features(graph: Graph) -> Tensor:
    """x as a dense tensor: PyG's layers take no other."""
    x: Any = graph.x
    dense = x.toarray() if hasattr(x, "indptr") else x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a saved graph is read-only, and so are we
        return torch.from_numpy(np.asarray(dense, np.float32))


def faster(graph: Graph, model: Model, spec: Spec) -> str:
    """``csr`` or ``edge``: the form of edges with which PyG takes less time on this graph."""
    csr = _seconds(Trainer(graph, model, csr=True), spec)
    # Messages take memory, and time, for every edge: do not wait for a form that lost already.
    if spec.whole and 3 * 4 * graph.edges * spec.width > 4 << 30:
        return "csr"
    edge = _seconds(Trainer(graph, model, csr=False), spec)
    return "edge" if edge < csr else "csr"


def _seconds(trainer: Trainer, spec: Spec) -> float:
    """Of a step, after one to warm up."""
    steps = _steps(trainer, spec)
    next(steps)
    began = process_time()
    count = 1 if spec.whole else _PROBES
    for _ in range(count):
        next(steps)
    return (process_time() - began) / count


def _steps(trainer: Trainer, spec: Spec) -> Iterator[float]:
    """Steps without an end; what they need is made now, before the first of them."""
    if spec.batch_size is None:
        batches: Iterator[PyGBatch] = repeat(trainer.whole())
    else:
        batches = trainer.batches(spec.batch_size, spec.seed)
    return map(trainer.step, batches)


def train(graph: Graph, model: Model, form: str, spec: Spec, watch: Callable[[], None]) -> None:
    """Step until ``watch``, which is called before every step, has seen enough."""
    csr = form == "csr"
    trainer = Trainer(graph, model, csr=csr, optimizer=spec.optimizer, lr=spec.lr)
    steps = _steps(trainer, spec)
    watch()
    while True:
        next(steps)
        trainer.publish()
        watch()
