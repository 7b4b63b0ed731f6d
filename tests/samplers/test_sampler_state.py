"""Samplers that learn: state, feedback, versions, checkpoints; and what samplers declare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

from helpers import SMALL
from learning import bits, drive, labelled, make_engine, small_model
from sgcn import Key, SgcnError, fit
from sgcn.estimators import make_estimator
from sgcn.samplers import make_sampler
from sgcn.samplers.base import Estimates, State
from sgcn.samplers.neighbor import Neighbor
from sgcn.training.sinks import Memory

GRAPH = labelled()


@dataclass(frozen=True)
class Curious(Neighbor):
    """Remembers how large the gradients by H^1 were, and takes more neighbours where it is late."""

    name: ClassVar[str] = "curious"
    summary: ClassVar[str] = "for tests"

    def init(self, graph):
        return State({"seen": torch.zeros(len(graph)), "size": torch.tensor([1])})

    def update(self, state, feedback):
        seen = state.tensors["seen"].clone()
        ids = torch.from_numpy(feedback.batch.blocks[0].dst).long()
        assert len(feedback.hidden) == len(feedback.batch.blocks)
        assert len(feedback.layer_gradients) == len(feedback.hidden) - 1
        for hidden, block in zip(feedback.hidden, feedback.batch.blocks, strict=True):
            assert len(hidden) == len(block.dst)
        if feedback.layer_gradients:
            seen[ids] += feedback.layer_gradients[0].norm(dim=1)
        size = torch.tensor([1 + int(seen.sum() * 1e6) % 3])
        return state.next({"seen": seen, "size": size})

    def _sample_with(self, state, graph, seeds, key, depth):
        return replace(self, sizes=int(state.tensors["size"]))._sample(graph, seeds, key, depth)


def trained(tmp_path=None, threads=1, stop=None, estimator="sgcn", epochs=4):
    memory, model = Memory(), small_model()

    def end(engine, loader, step):
        if step == stop:
            raise KeyboardInterrupt

    options = {"state": tmp_path, "checkpoint_seconds": 0.0} if tmp_path else {}
    fit(
        model, GRAPH, sampler=Curious(), estimator=estimator, epochs=epochs, batch_size=6,
        threads=threads, sinks=[memory], callbacks=[end], preaggregate=False, **options,
    )  # fmt: skip
    return bits(*model.state_dict().values()), [e.loss for e in memory.events if e.event == "step"]


def test_the_state_follows_every_step():
    engine = make_engine(GRAPH, "sgcn", Curious())
    versions = [engine.sampler_state.version for _ in drive(engine, 5)]
    assert versions == [0, 1, 2, 3, 4]
    batch = engine.draw(engine.train[:4], Key(1))
    assert batch.version == engine.sampler_state.version == 5
    assert float(engine.sampler_state.tensors["seen"].sum()) > 0


@pytest.mark.parametrize("name", ["sgcn", "sgcn+", "sgcn++", "anchored++", "vrgcn", "first"])
@pytest.mark.parametrize("preaggregate", [False, True])
def test_every_estimator_gives_feedback(name, preaggregate):
    """The checks are in `Curious.update`."""
    engine = make_engine(GRAPH, name, Curious(), small_model("mean", 3), preaggregate=preaggregate)
    list(drive(engine, 4))
    assert engine.sampler_state.version >= 3


def test_a_state_is_frozen_within_a_step():
    engine = make_engine(GRAPH, "sgcn++", Curious())
    list(drive(engine, 3))
    before = engine.sampler_state
    engine.regular(engine.draw(engine.train[:4], Key(2)), Key(2))
    assert engine.sampler_state is before


@pytest.mark.parametrize("estimator", ["sgcn", "anchored"])
def test_threads_do_not_matter(estimator):
    """Batches that were drawn ahead with an older state are not used."""
    assert trained(threads=0, estimator=estimator) == trained(threads=2, estimator=estimator)


@pytest.mark.parametrize("estimator", ["sgcn", "sgcn++"])
def test_what_was_learned_survives_a_stop(tmp_path, estimator):
    weights, _ = trained(estimator=estimator)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "s", stop=13, estimator=estimator)
    resumed, _ = trained(tmp_path / "s", estimator=estimator)
    assert resumed == weights


def test_samplers_without_a_state_have_none():
    for sampler in SMALL.values():
        assert sampler.init(GRAPH) is None
        assert sampler.sample(GRAPH, [0], Key(0)).version == 0


# -- what a sampler declares ---------------------------------------------------------------------


class Elsewhere(Neighbor):
    """Blocks of another matrix, as a sampler of random walks has them."""

    estimates = Estimates.OTHER


def test_what_blocks_estimate():
    assert make_sampler("neighbor").estimates is Estimates.P
    assert make_sampler("ladies", weighting="row").estimates is Estimates.SCALED_P
    assert make_sampler("cluster", parts_per_batch=1).estimates is Estimates.PART_OF_P


@pytest.mark.parametrize("name", ["sgcn++", "anchored", "vrgcn", "full"])
def test_rules_with_snapshots_refuse_another_matrix(name):
    with pytest.raises(SgcnError, match="estimate another matrix than P"):
        make_engine(GRAPH, make_estimator(name), Elsewhere())


def test_plain_sampling_takes_any_matrix():
    list(drive(make_engine(GRAPH, make_estimator("sgcn"), Elsewhere()), 3))


@pytest.mark.parametrize("kind", ["concat", "gin", "residual", "attention"])
def test_layers_that_read_the_node_itself(kind):
    sampler = make_sampler("ladies", sizes=9, keep_destinations=False)
    with pytest.raises(SgcnError, match="keep_destinations"):
        make_engine(GRAPH, "sgcn", sampler, small_model(kind))
    make_engine(GRAPH, "sgcn", sampler, small_model("mean"))


def test_sources_give_another_epoch_each_time():
    from sgcn import Loader

    loader = Loader(GRAPH, np.arange(60), make_sampler("neighbor"), batch_size=20)
    epochs = [np.concatenate([batch.nodes for batch in loader]) for _ in range(3)]
    assert all(sorted(epoch) == list(range(60)) for epoch in epochs)
    assert len({epoch.tobytes() for epoch in epochs}) == 3
