"""Contract 3: where weights do not move, corrections vanish: estimator = snapshot, to the bit.

Every sampler x forward rule with a history x gradient rule with one, learning rate 0. The gradient
is the snapshot's plus a difference of two equal passes, which is zero. Embeddings are the table's
rows plus such a difference. Only `vrgcn` sums its embeddings anew, in another order of neighbours:
there float32 rounding remains (1e-5 of the norm, as in contract 2).
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from helpers import SMALL
from learning import KINDS, OWN_ROWS, bits, drive, frozen, labelled, make_engine, small_model
from sgcn.estimators import make_estimator
from sgcn.rows import DenseRows, SparseRows

GRAPH = labelled()
FORWARD = ("recursive", "anchored", "vrgcn")
GRADIENT = ("recursive", "anchored")


def check(
    sampler, forward, gradient, kind="mean", depth=2, dropout=0.0, early=False, **options
) -> None:
    estimator = make_estimator(
        "sgcn", forward=forward, gradient=gradient, gap=5, restart="never", **options
    )
    model = small_model(kind, depth, dropout=dropout)
    engine = make_engine(GRAPH, estimator, sampler, model, preaggregate=early)
    tables: list = []
    known: list = []
    for step, outcome in enumerate(drive(engine, 8, frozen)):
        if outcome.snapshot:
            tables = deepcopy(engine.histories)
            known = bits(*outcome.gradient.values())
        else:
            assert bits(*outcome.gradient.values()) == known, f"step {step}"
            if early:  # its first layer is what the live weights make of it, masks and rounding too
                continue
            pending, run = outcome.passes.step, outcome.passes.live
            kept = run.h[:-1] if forward == "vrgcn" else run.z
            for table, ids, rows in zip(tables, pending.nodes[: len(kept)], kept, strict=True):
                wanted = table.read(ids)
                if forward == "vrgcn":
                    assert (rows - wanted).norm() <= 1e-5 * wanted.norm()
                else:
                    assert bits(rows) == bits(wanted), f"step {step}"
            assert outcome.norm_growth == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("gradient", GRADIENT)
@pytest.mark.parametrize("forward", FORWARD)
@pytest.mark.parametrize("sampler", SMALL)
def test_every_sampler(sampler, forward, gradient):
    check(sampler, forward, gradient, depth=3, layer_gradients=True)


@pytest.mark.parametrize("gradient", GRADIENT)
@pytest.mark.parametrize("forward", FORWARD)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "mean"])
def test_every_layer(kind, forward, gradient):
    check("ladies-keep", forward, gradient, kind)


@pytest.mark.parametrize("sampler", OWN_ROWS)
def test_concat_with_every_sampler(sampler):
    check(sampler, "recursive", "recursive", "concat")


@pytest.mark.parametrize("gradient", GRADIENT)
@pytest.mark.parametrize("forward", ["recursive", "anchored"])
@pytest.mark.parametrize("sampler", ["neighbor", "saint-node"])
def test_with_dropout(sampler, forward, gradient):
    """Both passes of a step use one mask: with two of them the difference would be noise."""
    check(sampler, forward, gradient, dropout=0.5)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["mean", "concat", "gin", "residual", "cat"])
@pytest.mark.parametrize("forward", ["recursive", "anchored"])
def test_preaggregated(forward, kind, dropout):
    """Both P X and the rows that are a node's own have masks."""
    check("neighbor", forward, "anchored", kind, dropout=dropout, early=True)


def test_masks_differ_between_steps_and_layers():
    engine = make_engine(GRAPH, "sgcn++", "exact", small_model(dropout=0.5))
    engine.operands.features = DenseRows(torch.ones(60, 5))
    a, b = (
        [step.masked(0, step.x).dense(), step.masked(1, torch.ones(60, 5))]
        for step in (o.passes.step for o in drive(engine, 3, frozen) if not o.snapshot)
    )
    for masks in (a, b):
        assert set(masks[0].unique().tolist()) == {0.0, 2.0}
        assert not torch.equal(masks[0][:20], masks[1][:20])
    assert not torch.equal(a[1], b[1])


@pytest.mark.parametrize("early", [False, True])
def test_masks_of_features(early):
    """Stored values of a sparse X stay or go; of P X every number of the rows that a step reads."""
    x = sp.csr_array(np.where(GRAPH.x > 0, GRAPH.x, 0))
    graph, model = labelled(x=x), small_model("concat", dropout=0.5)
    engine = make_engine(graph, "anchored++", "neighbor", model, preaggregate=early)
    (step,) = [o.passes.step for o in drive(engine, 2) if not o.snapshot]
    found = step.masked(0, step.x)
    assert found is step.masked(0, step.x)  # of both passes
    assert isinstance(found.store, SparseRows)
    read = step.operators[0].aggregate(found) if early else found.dense()
    whole = torch.from_numpy(graph.matrix() @ x.toarray() if early else x.toarray())
    whole = whole.float()[step.x.ids.long()]
    assert ((read == 0) | torch.isclose(read, 2 * whole, rtol=1e-5)).all()
    assert 0.3 < (read[whole > 0] == 0).float().mean() < 0.7
    if early:  # another mask than that of X
        assert ((read == 0) != (found.dense() == 0))[step.x.dense() > 0].any()


@pytest.mark.parametrize("forward", ["recursive", "anchored"])
@pytest.mark.parametrize("sampler", OWN_ROWS)
def test_embeddings_alone(sampler, forward):
    """With the plain gradient no stale pass runs: the reference takes the same road anyway."""
    estimator = make_estimator("sgcn", forward=forward, gap=5, restart="never")
    engine = make_engine(GRAPH, estimator, sampler, small_model("concat", 3))
    for outcome in drive(engine, 5, frozen):
        if outcome.snapshot:
            tables = deepcopy(engine.histories)
            continue
        pending, run = outcome.passes.step, outcome.passes.live
        for table, ids, z in zip(tables, pending.nodes, run.z, strict=True):
            assert bits(z) == bits(table.read(ids))


def test_a_moved_weight_is_seen():
    """The contract is not met by accident: with a learning rate the correction is there."""
    engine = make_engine(GRAPH, "sgcn++")
    snapshot, regular = drive(engine, 2)
    assert bits(*snapshot.gradient.values()) != bits(*regular.gradient.values())
