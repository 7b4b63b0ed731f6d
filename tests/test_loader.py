"""The loader: what an epoch holds, and threads that neither run away, hang nor hide an error."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from helpers import digest, zoo_graph
from sgcn import Batch, Graph, Key, Loader, NodeSet, SgcnError, make_sampler
from sgcn.samplers.exact import Exact

THREADS = [0, 1, 2, 4]


@pytest.fixture
def ring() -> Graph:
    return Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)


def seeds_of(loader: Loader, epoch: int = 0, start: int = 0) -> list[list[int]]:
    return [batch.nodes.tolist() for batch in loader.epoch(epoch, start)]


@dataclass(frozen=True)
class Spy(Exact):
    """`exact`, with a hook before every sample."""

    name = "spy"

    def _sample(self, graph: Graph, seeds: NodeSet, key: Key, depth: int) -> Batch:
        self.before(key.step, seeds.ids)
        return super()._sample(graph, seeds, key, depth)


def flat(lists: list[list[int]]) -> list[int]:
    return [node for nodes in lists for node in nodes]


def spy(before: Callable[[int, np.ndarray], object]) -> Spy:
    return type("Spy", (Spy,), {"before": staticmethod(before)})()


# -- what an epoch holds ------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("batch_size", [1, 7, 10, 20, 99])
def test_an_epoch_has_every_node_once(ring, threads, batch_size):
    nodes = np.arange(3, 23)
    loader = Loader(ring, nodes, make_sampler("exact"), batch_size=batch_size, threads=threads)
    batches = seeds_of(loader)
    assert len(batches) == len(loader) == -(-20 // batch_size)
    assert sorted(flat(batches)) == nodes.tolist()
    assert {len(batch) for batch in batches[:-1]} <= {batch_size}


def test_epochs_and_seeds_have_orders_of_their_own(ring):
    orders = [
        flat(seeds_of(Loader(ring, range(30), make_sampler("exact"), batch_size=8, seed=s), e))
        for s in (0, 1)
        for e in (0, 1)
    ]
    assert len({tuple(order) for order in orders}) == 4


@pytest.mark.parametrize("batches", [1, 2, 3, 4, 6, 7, 9, 12])
@pytest.mark.parametrize("batch_size", [4, 5, 10, 30])
def test_any_number_of_batches(ring, batches, batch_size):
    """Fewer than a pass: a part of it. More: one random order after another, no batch empty."""
    seen: list[list[int]] = []
    sampler = spy(lambda step, seeds: seen.append(seeds.tolist()))
    loader = Loader(
        ring, range(10), sampler, batch_size=batch_size, batches_per_epoch=batches, threads=0
    )
    assert len(list(loader.epoch(0))) == len(loader) == len(seen) == batches
    assert all(len(seeds) == batch_size for seeds in seen[:-1])
    assert 0 < len(seen[-1]) <= batch_size
    nodes = flat(seen)
    for start in range(0, len(nodes), 10):
        order = nodes[start : start + 10]
        assert len(set(order)) == len(order)


@pytest.mark.parametrize("threads", THREADS)
def test_start_resumes_with_the_same_batches(ring, threads):
    loader = Loader(
        ring, range(30), make_sampler("neighbor", sizes=1), batch_size=4, threads=threads
    )
    whole = [digest(batch) for batch in loader.epoch(2)]
    for start in (0, 3, 7, 8):
        assert [digest(batch) for batch in loader.epoch(2, start)] == whole[start:]


def test_every_iteration_is_the_next_epoch(ring):
    loader = Loader(ring, range(30), make_sampler("neighbor", sizes=1), batch_size=8)
    passes = [[digest(batch) for batch in loader] for _ in range(3)]
    assert passes == [[digest(batch) for batch in loader.epoch(epoch)] for epoch in range(3)]
    assert len({batch for epoch in passes for batch in epoch}) == 3 * 4


def test_a_sampler_by_its_name(ring):
    batches = (list(Loader(ring, np.arange(30), s)) for s in ("neighbor", make_sampler("neighbor")))
    first, second = ([digest(batch) for batch in each] for each in batches)
    assert first == second


def test_a_batch_is_printed_in_a_line(ring):
    (batch,) = Loader(ring, np.arange(30), "exact", depth=1)
    assert repr(batch) == "Batch(Block(30 x 30, 90 edges))"


def test_whole_numbers_of_numpy(ring):
    numbers = {"batch_size": 7, "depth": 2, "seed": 3, "threads": 1, "batches_per_epoch": 5}
    made = [
        Loader(ring, range(30), make_sampler("neighbor", sizes=kind(2)),
               **{name: kind(value) for name, value in numbers.items()})
        for kind in (int, np.int64, np.uint8)
    ]  # fmt: skip
    first, *others = ([digest(batch) for batch in loader] for loader in made)
    assert others == [first, first]


@pytest.mark.parametrize("name", ["saint", "cluster"])
def test_subgraph_samplers_get_the_whole_set_of_nodes(name):
    graph = zoo_graph("power-law")
    loader = Loader(graph, range(0, 60, 2), make_sampler(name), batch_size=10, depth=3)
    batches = list(loader)
    assert len(batches) == len(loader)
    for batch in batches:
        assert len(batch.blocks) == 3
        assert ((batch.loss_weights > 0) == (batch.nodes % 2 == 0)).all()


def test_an_epoch_of_a_subgraph_sampler_is_a_pass_in_its_own_units():
    graph = zoo_graph("power-law")
    train, n = range(0, len(graph), 2), len(graph)
    for options, met in (
        ({"variant": "node", "size": 8}, 8),
        ({"variant": "edge", "size": 8}, 16),
        ({"variant": "walk", "size": 8, "walk_length": 3}, 32),
    ):
        assert len(Loader(graph, train, make_sampler("saint", **options))) == -(-n // met)
    sampler = make_sampler("cluster", parts=6, parts_per_batch=2)
    loader = Loader(graph, train, sampler)
    assert len(loader) == 3
    assert sorted(np.concatenate([batch.nodes for batch in loader])) == list(range(n))


# -- threads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
def test_an_error_of_a_worker_reaches_the_consumer(ring, threads):
    def fail_at_three(step: int, seeds: np.ndarray) -> None:
        if step == 3:
            raise RuntimeError("no luck")

    loader = Loader(ring, range(30), spy(fail_at_three), batch_size=3, threads=threads)
    got = []
    with pytest.raises(RuntimeError, match="no luck") as error:
        got.extend(loader.epoch(5))
    assert error.value.__notes__ == ["while sampling step 3 of epoch 5"]
    assert len(got) == 3


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_prefetch_is_bounded(ring, threads):
    """Never more than 2 x threads + 1 batches are drawn that nobody has taken."""
    started: list[int] = []
    sampler = spy(lambda step, seeds: started.append(step))
    loader = Loader(ring, range(30), sampler, batch_size=1, threads=threads)
    for taken, _ in enumerate(loader.epoch()):
        time.sleep(0.002)  # long enough for idle threads to run ahead, if they could
        assert len(started) - taken <= 2 * threads + 1
    assert sorted(started) == list(range(30))


@pytest.mark.parametrize("end", ["close", "drop"])
def test_leaving_early_does_not_hang(ring, end):
    loader = Loader(ring, range(30), make_sampler("exact"), batch_size=1, threads=2)

    def leave() -> None:
        batches = loader.epoch()
        next(batches)
        if end == "close":
            batches.close()
        del batches

    consumer = threading.Thread(target=leave, daemon=True)
    consumer.start()
    consumer.join(timeout=60)
    assert not consumer.is_alive()
    assert not [t for t in threading.enumerate() if t.name.startswith("sgcn-sample")]


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("batch_size", 0, "batch_size is 0, expected a whole number >= 1"),
        ("batch_size", 2.5, "batch_size is 2.5, expected a whole number >= 1"),
        ("depth", 0, "depth is 0, expected a whole number >= 1"),
        ("threads", -1, "threads is -1, expected a whole number >= 0"),
        ("threads", True, "threads is True, expected a whole number >= 0"),
        ("batches_per_epoch", 0, "batches_per_epoch is 0, expected a whole number >= 1, or none"),
        ("seed", -1, r"seed is -1, expected a whole number from 0 to 2\*\*63 - 1"),
        ("nodes", [], "there are no nodes to make batches of, expected at least one"),
        ("nodes", [30], "seeds hold node 30, expected ids from 0 to 29"),
    ],
)
def test_bad_arguments_get_one_sentence(ring, option, value, message):
    arguments = {"nodes": [1], option: value}
    with pytest.raises(SgcnError, match=f"^{message}$"):
        Loader(ring, sampler=make_sampler("exact"), **arguments)


def test_an_epoch_left_in_the_middle_lets_the_process_end():
    script = (
        "import numpy as np; from sgcn import Graph, Loader, make_sampler\n"
        "graph = Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)\n"
        "batches = Loader(graph, np.arange(30), make_sampler('exact'), batch_size=2).epoch(0)\n"
        "next(batches); print('left')"
    )
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")
