"""What a sampler is, and the pieces that several of them share."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.block import Batch, Block, Float32, Int32
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import ColumnLaw, batches
from sgcn.kernels import Scratch as Arrays
from sgcn.kernels import blocks as kernels
from sgcn.options import Options, one_of, option, per_layer
from sgcn.rng import Key, Stream

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTINGS = ("unbiased", "hajek", "row")


class NodeSet:
    """A set of nodes, and the membership mask that subgraph samplers ask it for; made once."""

    def __init__(self, ids: Any, nodes: int) -> None:
        self.ids = checked_nodes(ids, nodes)
        self.nodes = nodes

    def some(self, ids: Int32) -> NodeSet:
        """The set of ``ids``, which are of this one: nothing is checked again."""
        made = NodeSet.__new__(NodeSet)
        made.ids, made.nodes = ids, self.nodes
        return made

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self.nodes, np.bool_)
        mask[self.ids] = True
        return mask

    @cached_property
    def size(self) -> int:
        """How many distinct nodes there are."""
        return int(self.mask.sum())


class Scratch(threading.local):
    """A thread's reusable arrays; every kernel leaves them as it found them."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def get(self, name: str, size: int, dtype: Any, fill: int = 0) -> Any:
        array = self._arrays.get(name)
        if array is None or len(array) < size:
            array = np.full(size, fill, dtype)
            self._arrays[name] = array
        return array

    def position(self, graph: Graph) -> Int32:
        position: Int32 = self.get("position", len(graph), np.int32, -1)
        return position

    def of(self, graph: Graph) -> Arrays:
        """What kernels need that look for sources among all nodes."""
        member = self.get("member", len(graph) // 64 + 1, np.uint64)
        return Arrays(self.position(graph), member)


scratch = Scratch()


class Estimates(Enum):
    """What the blocks M of a sampler estimate."""

    P = "P"
    SCALED_P = "P with rows scaled to sum 1"  # as published code has it
    PART_OF_P = "P without the entries between parts"
    OTHER = "another matrix than P"  # no rule may correct M by exact sums with P


@dataclass(frozen=True)
class State:
    """What a sampler has learned: frozen within a step, kept by checkpoints."""

    tensors: dict[str, Tensor]
    version: int = 0

    def next(self, tensors: dict[str, Tensor]) -> State:
        """What follows this state."""
        return State(tensors, self.version + 1)


@dataclass(frozen=True, eq=False)
class Feedback:
    """What a step tells the sampler that drew its batch; lists go with ``batch.blocks``."""

    batch: Batch
    hidden: list[Tensor]  # H of the destinations of each block
    layer_gradients: list[Tensor]  # the gradient by H, of each block but the last


@dataclass(frozen=True)
class Sampler(Options, ABC):
    """Hyper-parameters and a rule, so one sampler serves any graph.

    A sampler that learns has `init`, `update` and `_sample_with`; its state is kept by whoever
    trains. The others have none.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    #: Subgraph samplers choose their own nodes: ``seeds`` are then the nodes that have a loss.
    draws_nodes: ClassVar[bool] = False

    @property
    def estimates(self) -> Estimates:
        """What E[M] is near to."""
        scaled = getattr(self, "weighting", "unbiased") == "row"
        return Estimates.SCALED_P if scaled else Estimates.P

    @property
    def keeps_destinations(self) -> bool:
        """Whether every destination is among the sources of its block."""
        return bool(getattr(self, "keep_destinations", True))

    def init(self, graph: Graph) -> State | None:
        """The state to begin with; None for a sampler that does not learn."""
        return None

    def update(self, state: State, feedback: Feedback) -> State:
        """The state after a step."""
        return state

    def sample(
        self, graph: Graph, seeds: Any, key: Key, depth: int = 2, state: State | None = None
    ) -> Batch:
        """The batch named by ``key``: a pure function of its arguments.

        ``seeds`` are the nodes to compute (duplicates allowed: they count more in the loss), or a
        `NodeSet`. ``depth`` is the number of layers.
        """
        if depth < 1:
            raise SgcnError(f"depth is {depth}, expected at least one layer")
        nodes = seeds if isinstance(seeds, NodeSet) else NodeSet(seeds, len(graph))
        if nodes.nodes != len(graph):
            raise SgcnError(
                f"seeds are a NodeSet of a graph with {nodes.nodes} nodes, expected {len(graph)}"
            )
        if state is None:
            return self._sample(graph, nodes, key, depth)
        return replace(self._sample_with(state, graph, nodes, key, depth), version=state.version)

    def batches(self, graph: Graph, nodes: NodeSet, batch_size: int) -> int:
        """How many batches make one pass over ``nodes``."""
        return -(-len(nodes.ids) // batch_size)

    @abstractmethod
    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        """Draw a batch, of a sampler that does not learn or has not begun to."""

    def _sample_with(
        self, state: State, graph: Graph, seeds: NodeSet, key: Key, depth: int
    ) -> Batch:
        """Draw a batch with what was learned."""
        return self._sample(graph, seeds, key, depth)


@dataclass(frozen=True)
class LayerSampler(Sampler):
    """A sampler that walks down from the seeds and draws one block a layer."""

    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        rows, loss_weights = batches.distinct(seeds.ids, scratch.position(graph))
        drawn: list[Block] = []
        for layer in range(depth, 0, -1):
            drawn.append(self.block(graph, rows, key.stream(Stream.LAYER, layer), layer, depth))
            rows = drawn[-1].src
        return Batch(tuple(reversed(drawn)), loss_weights)

    @abstractmethod
    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        """The block of one layer for the destinations ``rows``."""


@dataclass(frozen=True)
class OneCallSampler(LayerSampler):
    """A layer sampler that draws all layers in one call of a kernel, see `sgcn.kernels.batches`."""

    #: Takes P, seeds, sizes and streams of layers, and then `_arguments`; gives distinct seeds,
    #: loss weights and the blocks of the layers; exact ones too, if any.
    kernel: ClassVar[Callable[..., Any]]

    sizes: int | tuple[int, ...]
    weighting: str

    @abstractmethod
    def _arguments(self, graph: Graph, target: Float32) -> tuple[Any, ...]:
        """The last arguments of the kernel; rows are scaled to the sums ``target``."""

    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        layers = range(depth, 0, -1)
        streams = np.array([key.stream(Stream.LAYER, layer) for layer in layers])
        rows, loss_weights, *drawn = self._draw(graph, seeds.ids, layers, streams, depth)
        dsts = [rows, *(parts[3] for parts in drawn[0])]
        made = (tuple(map(_block, parts[::-1], dsts[-2::-1])) for parts in drawn)
        return Batch(next(made), loss_weights, next(made, ()))

    def block(self, graph: Graph, rows: Int32, stream: np.uint64, layer: int, depth: int) -> Block:
        _, _, drawn, *_ = self._draw(graph, rows, [layer], np.array([stream]), depth)
        return _block(drawn[0], rows)

    def _draw(
        self, graph: Graph, seeds: Int32, layers: Sequence[int], streams: Any, depth: int
    ) -> Any:
        sizes = np.array([size_of_layer(self.sizes, layer, depth) for layer in layers])
        more = self._arguments(graph, row_targets(graph, self.weighting))
        return self.kernel(graph.propagation, seeds, sizes, streams, *more)


def _block(parts: Sequence[Any], dst: Int32) -> Block:
    indptr, indices, weights, src, dst_in_src = parts
    return Block(indptr, indices, weights, src, dst, dst_in_src)


def subgraph_batch(parts: Sequence[Any], loss_weights: Float32, depth: int) -> Batch:
    """A block whose sources are its destinations serves all layers."""
    return Batch((_block(parts, parts[3]),) * depth, loss_weights)


def weighting_option(default: str) -> Any:
    return option(default, one_of(*WEIGHTINGS), "how kept entries are scaled (docs/samplers.md)")


def sizes_option(default: int, what: str) -> Any:
    return option(default, per_layer(), f"{what}: one number, or one a layer, layer 1 first")


def size_of_layer(sizes: int | tuple[int, ...], layer: int, depth: int) -> int:
    """The size for ``layer`` (1..depth)."""
    if not isinstance(sizes, tuple):
        return sizes
    if len(sizes) != depth:
        raise SgcnError(
            f"sizes has {len(sizes)} entries {sizes}, expected one number or one for each of the "
            f"{depth} layers"
        )
    return sizes[layer - 1]


def row_targets(graph: Graph, weighting: str) -> Float32:
    """The sums that ``weighting`` scales every row of P to; none for unbiased weights."""
    if weighting == "hajek":
        return graph.memo("row_sums", lambda: kernels.row_sums(graph.propagation))
    if weighting == "row":
        return graph.memo("ones", lambda: np.ones(len(graph), np.float32))
    return np.empty(0, np.float32)


def weigh(graph: Graph, rows: Int32, indptr: Any, weights: Float32, weighting: str) -> None:
    """Turn unbiased row weights, in place, into those of ``weighting``."""
    if weighting != "unbiased":
        kernels.rescale_rows(indptr, weights, rows, row_targets(graph, weighting))


def exact_block(graph: Graph, rows: Int32) -> Block:
    """P[rows, :], rows first among the sources."""
    p = graph.propagation
    indptr = kernels.row_pointers(p, rows)
    # NumPy's own memory: a large array has large pages, and a fault for each of them.
    indices = np.empty(indptr[-1], np.int32)
    weights = np.empty(indptr[-1], np.float32)
    src = kernels.exact_block(p, rows, indptr, indices, weights, scratch.position(graph))
    return Block(indptr, indices, weights, src, rows, np.arange(len(rows), dtype=np.int32))


def column_law(graph: Graph) -> ColumnLaw:
    """FastGCN's law over all nodes."""

    def make() -> ColumnLaw:
        law = kernels.column_law(graph.propagation)
        return ColumnLaw(law, *kernels.alias_table(law))

    return graph.memo("column_law", make)


def checked_nodes(ids: Any, nodes: int) -> Int32:
    """``ids`` as int32, if they are node ids of a graph of ``nodes`` nodes."""
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    ids = np.asarray(ids)
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise SgcnError(
            f"seeds are {ids.dtype} of shape {ids.shape}, expected a vector of whole node ids"
        )
    if ids.size and not (ids.min() >= 0 and ids.max() < nodes):
        worst = ids.min() if ids.min() < 0 else ids.max()
        raise SgcnError(f"seeds hold node {worst}, expected ids from 0 to {nodes - 1}")
    # One that may be written to: kernels are compiled anew for what is read-only.
    return np.require(ids, np.int32, ["C", "W"])
