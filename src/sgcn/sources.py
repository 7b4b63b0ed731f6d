"""`Loader`: the batches of an epoch, in order, drawn ahead of time by threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np

from sgcn.block import Batch
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.rng import Key, check_seed
from sgcn.samplers.base import NodeSet, Sampler


class Loader:
    """Batches over ``nodes``: one pass an epoch, or ``batches_per_epoch`` of them.

    ``threads`` sample ahead, at most two batches each; 0 samples in the caller's thread. Batches
    depend on (seed, epoch, step) alone, so any number of threads yields the same ones.
    """

    def __init__(
        self,
        graph: Graph,
        nodes: Any,
        sampler: Sampler,
        *,
        batch_size: int = 512,
        depth: int = 2,
        seed: int = 0,
        threads: int = 1,
        batches_per_epoch: int | None = None,
    ) -> None:
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("depth", depth, 1),
            ("threads", threads, 0),
            ("batches_per_epoch", 1 if batches_per_epoch is None else batches_per_epoch, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SgcnError(f"{name} is {value!r}, expected a whole number >= {least}")
        self.graph = graph
        self.nodes = NodeSet(nodes, len(graph))
        if len(self.nodes.ids) == 0:
            raise SgcnError("there are no nodes to make batches of, expected at least one")
        self.sampler = sampler
        self.batch_size = batch_size
        self.depth = depth
        self.seed = check_seed(seed)
        self.threads = threads
        self._plans: dict[int, _Plan] = {}
        self._lock = threading.Lock()
        self._steps = batches_per_epoch or sampler.batches(graph, self.nodes, batch_size)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self._steps

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[Batch]:
        """The batches of ``epoch`` from step ``start`` on."""
        plan = _Plan(self, epoch)
        if self.threads == 0:
            yield from (plan.batch(step) for step in range(start, len(self)))
            return
        steps = range(start, len(self))
        workers = [_Worker(plan, steps[k :: self.threads]) for k in range(self.threads)]
        try:
            for k in range(len(steps)):
                yield workers[k % self.threads].take()
        finally:
            for worker in workers:
                worker.stop()

    def __iter__(self) -> Iterator[Batch]:
        return self.epoch(0)

    def seeds(self, epoch: int, step: int) -> NodeSet:
        """What the sampler is given at ``step`` of ``epoch``."""
        with self._lock:
            if epoch not in self._plans:
                self._plans = {e: p for e, p in self._plans.items() if e == epoch - 1}
                self._plans[epoch] = _Plan(self, epoch)
            return self._plans[epoch].seeds(step)


class _Plan:
    """Which seeds each step of an epoch takes: slices of one random order after another."""

    def __init__(self, loader: Loader, epoch: int) -> None:
        self.loader = loader
        self.epoch = epoch
        self.order = np.empty(0, np.int32)
        if not loader.sampler.draws_nodes:
            nodes, key = loader.nodes.ids, Key(loader.seed, epoch)
            # A single pass may end with a short batch; more batches than that start another order.
            rounds = (len(loader) - 1) * loader.batch_size // len(nodes) + 1
            orders = (permutation(len(nodes), key.shuffle_stream(r)) for r in range(rounds))
            self.order = nodes[np.concatenate(list(orders))]

    def seeds(self, step: int) -> NodeSet:
        loader = self.loader
        if loader.sampler.draws_nodes:
            return loader.nodes
        start = step * loader.batch_size
        return loader.nodes.some(self.order[start : start + loader.batch_size])

    def batch(self, step: int) -> Batch:
        loader = self.loader
        try:
            key = Key(loader.seed, self.epoch, step)
            return loader.sampler.sample(loader.graph, self.seeds(step), key, loader.depth)
        except Exception as error:
            error.add_note(f"while sampling step {step} of epoch {self.epoch}")
            raise


class _Worker:
    """A thread that draws every n-th batch, at most two ahead of the one that was taken last.

    Two queues without locks of their own: a pool with its futures costs as much as a small batch.
    """

    def __init__(self, plan: _Plan, steps: range) -> None:
        self._room: SimpleQueue[None] = SimpleQueue()  # an item for each batch that may be drawn
        self._drawn: SimpleQueue[Batch | Exception] = SimpleQueue()
        self._stopped = False
        for _ in range(2):
            self._room.put(None)
        # A daemon: an epoch that was left in the middle must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, args=(plan, steps), daemon=True)
        self._thread.start()

    def _run(self, plan: _Plan, steps: range) -> None:
        for step in steps:
            self._room.get()
            if self._stopped:
                return
            try:
                self._drawn.put(plan.batch(step))
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


class Prefetcher:
    """Runs jobs ahead of their use in threads; with no threads it runs them when they are taken.

    For loops that cannot say for certain what comes next: a job that was announced and is never
    taken costs only its time.
    """

    def __init__(self, threads: int) -> None:
        self._ahead: dict[Hashable, Future[Any]] = {}
        self._pool = ThreadPoolExecutor(threads, "sgcn-sample") if threads else None

    def take(self, jobs: Sequence[tuple[Hashable, Callable[[], Any]]]) -> Any:
        """The result of the first of ``jobs``, named pairs; the others are started as well."""
        if self._pool is None:
            return jobs[0][1]()
        wanted = {key for key, _ in jobs}
        for key in [key for key in self._ahead if key not in wanted]:
            self._ahead.pop(key).cancel()
        for key, job in jobs:
            if key not in self._ahead:
                self._ahead[key] = self._pool.submit(job)
        return self._ahead.pop(jobs[0][0]).result()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
