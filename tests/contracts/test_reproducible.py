"""Contract 5, sampling: a key names a batch, whatever draws it and wherever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from helpers import SMALL, digest, zoo_graph
from sgcn import Key, Loader

TESTS = Path(__file__).parents[1]
WEIGHTED = "weighted"  # the zoo's graph with the most to get wrong


def epoch_digests(name: str, threads: int, graph: str = "power-law", depth: int = 2) -> list[str]:
    loader = Loader(
        zoo_graph(graph), range(0, 60, 2), SMALL[name], batch_size=4, depth=depth, seed=5,
        threads=threads, batches_per_epoch=12,
    )  # fmt: skip
    return [digest(batch) for batch in loader.epoch(3)]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", SMALL)
def test_any_number_of_threads_gives_the_same_batches(name, depth, threads):
    assert epoch_digests(name, threads, depth=depth) == epoch_digests(name, 0, depth=depth)


@pytest.mark.parametrize("name", SMALL)
def test_batches_do_not_depend_on_what_was_drawn_before(name):
    """Backwards, twice, and in between on another graph: a sampler has no state."""
    graph, other = zoo_graph("power-law"), zoo_graph(WEIGHTED)
    forwards = [digest(SMALL[name].sample(graph, [0, 5, 9], Key(1, 0, s))) for s in range(6)]
    backwards = []
    for step in reversed(range(6)):
        SMALL[name].sample(other, [1, 2], Key(9, 9, step), depth=3)
        backwards.append(digest(SMALL[name].sample(graph, [0, 5, 9], Key(1, 0, step))))
    assert backwards[::-1] == forwards


@pytest.mark.parametrize("name", SMALL)
def test_threads_that_share_a_graph_and_a_sampler(name):
    """Without a loader too: eight threads at once, each with scratch arrays of its own."""
    graph = zoo_graph("power-law")
    wanted = [digest(SMALL[name].sample(graph, [0, 5], Key(1, 0, s))) for s in range(40)]
    got: dict[int, str] = {}

    def draw(first: int) -> None:
        for step in range(first, 40, 8):
            got[step] = digest(SMALL[name].sample(graph, [0, 5], Key(1, 0, step)))

    workers = [threading.Thread(target=draw, args=(first,)) for first in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [got[step] for step in range(40)] == wanted


OTHER_PROCESS = """
import json
from test_reproducible import SMALL, WEIGHTED, epoch_digests
print(json.dumps({name: epoch_digests(name, 2, WEIGHTED) for name in SMALL}))
"""


@pytest.fixture(scope="module")
def of_another_process() -> dict[str, list[str]]:
    paths = os.pathsep.join([str(TESTS), str(TESTS / "contracts")])
    run = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS],
        env=os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", SMALL)
def test_another_process_gives_the_same_batches(name, of_another_process):
    assert of_another_process[name] == epoch_digests(name, 0, WEIGHTED)
