"""Which seeds come next, and the batches that are made of them, drawn ahead by threads."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from sgcn.block import Batch, Int32
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.options import check, integer, optional
from sgcn.rng import Key, check_seed
from sgcn.samplers import NodeSet, Sampler, make_sampler


class Source(ABC):
    """Which seeds come next: a function of (epoch, step), so that any step can be asked for."""

    @abstractmethod
    def __len__(self) -> int:
        """Batches in an epoch."""

    @abstractmethod
    def seeds(self, epoch: int, step: int) -> NodeSet:
        """What the sampler is given at ``step`` of ``epoch``."""


class NodeSource(Source):
    """Passes over ``nodes`` in a random order, one an epoch; or ``batches_per_epoch`` batches.

    Subgraph samplers draw nodes by themselves: they get all ``nodes`` each time.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Any,
        sampler: Sampler,
        *,
        batch_size: int,
        seed: int = 0,
        batches_per_epoch: int | None = None,
    ) -> None:
        self.nodes = NodeSet(nodes, len(graph))
        if len(self.nodes.ids) == 0:
            raise SgcnError("there are no nodes to make batches of, expected at least one")
        self.batch_size, self.seed = batch_size, seed
        self._shuffled = not sampler.draws_nodes
        self._steps = batches_per_epoch or sampler.batches(graph, self.nodes, batch_size)
        self._orders: dict[int, Int32] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._steps

    def seeds(self, epoch: int, step: int) -> NodeSet:
        if not self._shuffled:
            return self.nodes
        start = step * self.batch_size
        return self.nodes.some(self._order(epoch)[start : start + self.batch_size])

    def _order(self, epoch: int) -> Int32:
        """The seeds of an epoch; the orders of two epochs are kept."""
        with self._lock:
            if epoch not in self._orders:
                self._orders = {e: order for e, order in self._orders.items() if e == epoch - 1}
                ids, key = self.nodes.ids, Key(self.seed, epoch)
                # One pass may end with a short batch; more batches than that begin another order.
                rounds = (len(self) - 1) * self.batch_size // len(ids) + 1
                orders = [permutation(len(ids), key.shuffle_stream(r)) for r in range(rounds)]
                self._orders[epoch] = ids[np.concatenate(orders)]
            return self._orders[epoch]


class PoolSource(Source):
    """The nodes of a large-batch snapshot, over and over; they are in random order already."""

    def __init__(self, pool: Int32, nodes: int, sampler: Sampler, batch_size: int) -> None:
        self.pool, self.batch_size = NodeSet(pool, nodes), min(batch_size, len(pool))
        self._shuffled = not sampler.draws_nodes

    def __len__(self) -> int:
        return -(-len(self.pool.ids) // self.batch_size)

    def seeds(self, epoch: int, step: int) -> NodeSet:
        if not self._shuffled:
            return self.pool
        ids, first = self.pool.ids, (epoch * len(self) + step) * self.batch_size
        return self.pool.some(ids[np.arange(first, first + self.batch_size) % len(ids)])


class Loader:
    """Batches over ``nodes``: one pass an epoch, or ``batches_per_epoch`` of them.

    ``threads`` sample ahead, at most two batches each; 0 samples in the caller's thread. Batches
    depend on (seed, epoch, step) alone, so any number of threads yields the same ones. Every
    iteration over the loader is the next epoch.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Any,
        sampler: Sampler | str,
        *,
        batch_size: int = 512,
        depth: int = 2,
        seed: int = 0,
        threads: int = 1,
        batches_per_epoch: int | None = None,
    ) -> None:
        batch_size = check("batch_size", batch_size, integer())
        batches_per_epoch = check("batches_per_epoch", batches_per_epoch, optional(integer()))
        sampler = make_sampler(sampler) if isinstance(sampler, str) else sampler
        self.graph, self.sampler, self.depth = graph, sampler, check("depth", depth, integer())
        self.threads = check("threads", threads, integer(0))
        self.source = NodeSource(
            graph, nodes, sampler,
            batch_size=batch_size, seed=check_seed(seed), batches_per_epoch=batches_per_epoch,
        )  # fmt: skip
        self.seed, self.batch_size, self._next_epoch = self.source.seed, batch_size, 0

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self.source)

    def __iter__(self) -> Iterator[Batch]:
        self._next_epoch += 1
        return self.epoch(self._next_epoch - 1)

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from step ``start`` on."""
        draw, steps = partial(self._draw, epoch), range(start, len(self))
        if self.threads == 0:
            yield from map(draw, steps)
            return
        workers = [_Worker(draw, steps[k :: self.threads]) for k in range(self.threads)]
        try:
            for k in range(len(steps)):
                yield workers[k % self.threads].take()
        finally:
            for worker in workers:
                worker.stop()

    def seeds(self, epoch: int, step: int) -> NodeSet:
        """What the sampler is given at ``step`` of ``epoch``."""
        return self.source.seeds(epoch, step)

    def _draw(self, epoch: int, step: int) -> Batch:
        try:
            key = Key(self.seed, epoch, step)
            return self.sampler.sample(self.graph, self.seeds(epoch, step), key, self.depth)
        except Exception as error:
            error.add_note(f"while sampling step {step} of epoch {epoch}")
            raise


class _Worker:
    """A thread that draws every n-th batch, at most two ahead of the one that was taken last.

    Two queues without locks of their own: a pool with its futures costs as much as a small batch.
    """

    def __init__(self, draw: Callable[[int], Batch], steps: range) -> None:
        self._room: SimpleQueue[None] = SimpleQueue()  # an item for each batch that may be drawn
        self._drawn: SimpleQueue[Batch | Exception] = SimpleQueue()
        self._stopped = False
        for _ in range(2):
            self._room.put(None)
        # A daemon: an epoch that was left in the middle must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, args=(draw, steps), daemon=True)
        self._thread.start()

    def _run(self, draw: Callable[[int], Batch], steps: range) -> None:
        for step in steps:
            self._room.get()
            if self._stopped:
                return
            try:
                self._drawn.put(draw(step))
            except Exception as error:
                self._drawn.put(error)
                return

    def take(self) -> Batch:
        drawn = self._drawn.get()
        if isinstance(drawn, Exception):
            raise drawn
        self._room.put(None)
        return drawn

    def stop(self) -> None:
        self._stopped = True
        self._room.put(None)
        self._thread.join()
