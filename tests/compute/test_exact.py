"""The exact pass in chunks is the pass at once, to 1e-6, for any size of chunk."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from learning import (
    KINDS,
    distance,
    drive,
    early,
    exact_gradient,
    labelled,
    make_engine,
    small_model,
)
from sgcn.compute.exact import predict
from sgcn.estimators.operands import sum_features
from sgcn.rows import store_of
from sgcn.task import split_nodes

GRAPH = labelled()
CHUNKS = (1, 7, 29, 59, 60, 1000)


def near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """To float32 rounding, which the norm of rows of six numbers makes a little larger."""
    assert float((found - wanted).norm()) <= 2e-6 * float(wanted.norm())


def found_by(graph, kind, depth, chunk, **options):
    engine = make_engine(graph, early("full"), "exact", small_model(kind, depth), chunk=chunk,
                         **options)  # fmt: skip
    exact = engine.operands.exact_pass(engine.weights)
    return exact, exact.backward(engine.operands.loss())


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("kind", KINDS)
def test_any_chunk_finds_the_same(kind, chunk):
    options = {"scored": split_nodes(GRAPH, 1)}
    whole, (loss, gradient, layer_gradients) = found_by(GRAPH, kind, 3, None, **options)
    parts, (loss_, gradient_, layer_gradients_) = found_by(GRAPH, kind, 3, chunk, **options)
    assert loss_ == pytest.approx(loss, rel=1e-6)
    assert distance(gradient_, gradient) <= 1e-6
    for found, wanted in zip(layer_gradients_, layer_gradients, strict=True):
        near(found, wanted)
    for level in range(3):
        near(parts.z[level], whole.z[level])
        assert parts.square(level) == pytest.approx(whole.square(level), rel=1e-6)
    near(parts.logits(), whole.logits())
    near(parts.logits(torch.tensor([3, 0, 5])), whole.logits(torch.tensor([3, 0, 5])))


@pytest.mark.parametrize("options", [{"directed": True}, {"normalization": "row"}])
def test_it_is_the_dense_gradient(options):
    graph = labelled(**options)
    engine = make_engine(graph, early("full"), "exact", chunk=13)
    _, gradient, _ = engine.exact().backward(engine.operands.loss(needed_only=False))
    for name, wanted in exact_gradient(engine.model, graph).items():
        assert float((gradient[name] - wanted).norm()) < 1e-5 * float(wanted.norm())


@pytest.mark.parametrize("preaggregate", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_any_kind(sparse, preaggregate):
    x = np.where(GRAPH.x > 0.3, GRAPH.x, 0.0).astype(np.float32)
    graph = labelled(x=sp.csr_array(x) if sparse else x)
    _, (_, whole, _) = found_by(graph, "concat", 2, None, preaggregate=preaggregate)
    _, (_, parts, _) = found_by(graph, "concat", 2, 11, preaggregate=preaggregate)
    assert distance(parts, whole) <= 1e-6


@pytest.mark.parametrize("storage", ["memory", "disk"])
@pytest.mark.parametrize("name", ["sgcn++", "anchored++", "vrgcn++", "first"])
def test_training_with_chunks(name, storage, tmp_path):
    """Snapshots in chunks leave the same histories behind, so regular steps go on the same."""
    runs = []
    for chunk in (None, 17):
        made = early(name, gap=4, table_storage=storage)
        engine = make_engine(GRAPH, made, "neighbor", chunk=chunk, scratch=tmp_path)
        runs.append([outcome.gradient for outcome in drive(engine, 6)])
    for whole, parts in zip(*runs, strict=True):
        for key, wanted in whole.items():
            assert float((parts[key] - wanted).norm()) < 1e-5 * float(wanted.norm())


def test_prediction_keeps_one_layer():
    model, features = small_model("mean", 3), store_of(GRAPH.x)
    near(predict(model, GRAPH, features, chunk=9), predict(model, GRAPH, features))


def test_a_loss_left_out_is_seen():
    """Not met by accident: without the rows of one chunk the gradient is another one."""
    engine = make_engine(GRAPH, early("full"), "exact", chunk=20)
    loss = engine.operands.loss(needed_only=False)
    exact = engine.exact()
    _, right, _ = exact.backward(loss)
    _, wrong, _ = exact.backward(lambda logits, lo, hi: None if lo == 20 else loss(logits, lo, hi))
    name = "layers.0.weight"
    assert float((wrong[name] - right[name]).norm()) > 1e-2 * float(right[name].norm())


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_of_features(chunk, sparse):
    x = sp.csr_matrix(GRAPH.x) if sparse else GRAPH.x
    near(
        sum_features(GRAPH, store_of(x), chunk=chunk).table,
        torch.from_numpy(GRAPH.matrix() @ GRAPH.x),
    )


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(
    ("kind", "preaggregate"),
    [(k, p) for k in KINDS for p in (False, True) if not p or k in ("mean", "concat", "gin")],
)
def test_large_batches(kind, preaggregate, chunk):
    nodes = split_nodes(GRAPH, 0)[::-2].copy()
    found = []
    for size in (None, chunk):
        engine = make_engine(GRAPH, early("full"), "exact", small_model(kind, 2), chunk=size,
                             preaggregate=preaggregate)  # fmt: skip
        exact = engine.operands.exact_pass_on(nodes, engine.weights)
        found.append((exact, exact.backward(engine.operands.loss_on(nodes))))
    (wanted, (loss, gradient, ds)), (exact, (other_loss, other_gradient, other_ds)) = found
    assert other_loss == pytest.approx(loss, rel=1e-6)
    for z, other in zip([*wanted.z, *ds], [*exact.z, *other_ds], strict=True):
        near(other, z)
    for name, g in gradient.items():
        near(other_gradient[name], g)
