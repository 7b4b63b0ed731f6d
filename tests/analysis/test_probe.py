"""`GradientProbe` against brute force: the numbers, their error bars, and that it only looks."""

from __future__ import annotations

import copy
import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from helpers import SMALL, dense_block, propagation_of, weighted_by
from learning import bits, drive, frozen, labelled, make_engine, small_model
from sgcn import Key, SgcnError, fit
from sgcn.analysis import GradientProbe, Mean, Split
from sgcn.analysis.probe import Measured
from sgcn.estimators import make_estimator
from sgcn.estimators.engine import Engine
from sgcn.nn import ACTIVATIONS
from sgcn.task import Task
from sgcn.training.events import StepEvent
from sgcn.training.sinks import Memory

GRAPH = labelled()


# -- moments ------------------------------------------------------------------------------------


def errors_of(rng, n: int, bias: float) -> np.ndarray:
    """n errors in 30 dimensions: squared bias ``bias``, variance 30 / 4."""
    return rng.normal(scale=0.5, size=(n, 30)) + math.sqrt(bias / 30)


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_few_draws_do_not_shift_the_parts(bias):
    """Means over many repetitions of four draws; |mean e|^2 itself would be 7.5 / 4 too large."""
    rng = np.random.default_rng(0)
    found = [Split.of(e @ e.T, 1.0) for e in (errors_of(rng, 4, bias) for _ in range(2000))]
    for part, wanted in (("mse", bias + 7.5), ("bias2", bias), ("variance", 7.5)):
        mean = Mean.of([getattr(split, part).value for split in found])
        assert abs(mean.value - wanted) < 4.5 * mean.error
        assert mean.error < 0.1


def test_the_parts_are_those_of_their_definitions():
    e = errors_of(np.random.default_rng(1), 9, 1.0)
    split = Split.of(e @ e.T, 2.0)
    variance = np.square(e - e.mean(0)).sum() / 8
    assert split.variance.value == pytest.approx(variance / 2)
    assert split.bias2.value == pytest.approx((np.square(e.mean(0)).sum() - variance / 9) / 2)
    each = np.square(e).sum(1) / 2
    assert split.mse.error == pytest.approx(each.std(ddof=1) / 3)
    assert split.mse.value == pytest.approx(split.bias2.value + split.variance.value)


@pytest.mark.parametrize("part", ["mse", "bias2", "variance"])
def test_error_bars_are_the_spread_of_repetitions(part):
    rng = np.random.default_rng(2)
    found = [Split.of(e @ e.T, 1.0) for e in (errors_of(rng, 16, 2.0) for _ in range(600))]
    spread = np.std([getattr(split, part).value for split in found])
    claimed = math.sqrt(np.mean([getattr(split, part).error ** 2 for split in found]))
    assert claimed == pytest.approx(spread, rel=0.15)


def test_error_bars_of_no_bias_are_not_too_small():
    rng = np.random.default_rng(3)
    found = [Split.of(e @ e.T, 1.0) for e in (errors_of(rng, 8, 0.0) for _ in range(600))]
    spread = np.std([split.bias2.value for split in found])
    claimed = math.sqrt(np.mean([split.bias2.error**2 for split in found]))
    assert spread < claimed < 2.5 * spread


def test_two_draws_have_a_bias_without_an_error_bar():
    split = Split.of(np.array([[2.0, 0.5], [0.5, 4.0]]), 1.0)
    assert (split.mse.value, split.bias2.value, split.variance.value) == (3.0, 0.5, 2.5)
    assert split.mse.error == 1.0
    assert math.isnan(split.bias2.error)


def test_a_gradient_of_zero_has_no_relative_error():
    split = Split.of(np.ones((3, 3)), 0.0)
    assert math.isnan(split.mse.value)


# -- against brute force ------------------------------------------------------------------------


def ready(estimator="sgcn", sampler="neighbor", steps: int = 3, graph=GRAPH, **options) -> Engine:
    """An engine that has taken some steps."""
    engine = make_engine(graph, estimator, sampler, **options)
    list(drive(engine, steps))
    return engine


def recorded(engine: Engine, probe: GradientProbe, size: int):
    """What the probe measures, and the draws that it saw."""
    draws, draw = [], engine.draw
    engine.draw = lambda seeds, key: draws.append((draw(seeds, key), key)) or draws[-1][0]
    found = probe.measure(engine, size, 4)
    engine.draw = draw
    return found, draws


def flat(gradient) -> np.ndarray:
    return np.concatenate([g.double().numpy().ravel() for g in gradient.values()])


@pytest.mark.parametrize("sampler", ["neighbor", "ladies-keep", "saint-node", "cluster"])
@pytest.mark.parametrize("estimator", ["sgcn", "sgcn+", "sgcn++", "vrgcn++", "anchored"])
def test_the_error_is_that_of_regular_steps(estimator, sampler):
    engine = ready(estimator, sampler)
    found, draws = recorded(engine, GradientProbe(probes=5), 12)
    gradients = [flat(engine.regular(batch, key).gradient) for batch, key in draws]
    other = make_engine(GRAPH, "full", sampler, engine.model)
    wanted = flat(other.snapshot().gradient)
    size = np.square(wanted).sum()
    mse = np.mean([np.square(g - wanted).sum() for g in gradients]) / size
    assert found.total.mse.value == pytest.approx(mse, rel=1e-4)
    variance = np.square(np.stack(gradients) - np.mean(gradients, 0)).sum() / 4 / size
    assert found.total.variance.value == pytest.approx(variance, rel=1e-4)
    assert found.gradient_norm == pytest.approx(math.sqrt(size), rel=1e-5)
    for split in [found.total, *(layer.gradient for layer in found.layers)]:
        assert split.mse.value == pytest.approx(split.bias2.value + split.variance.value)
    assert [layer.layer for layer in found.layers] == ["1", "2", "head"]


def test_layers_add_up_to_the_whole():
    """Each layer is relative to its own gradient: weighed by those, they give the total."""
    engine = ready("sgcn")
    found = GradientProbe(probes=5).measure(engine, 12)
    wanted = make_engine(GRAPH, "full", "neighbor", engine.model).snapshot().gradient
    sizes = [
        sum(float(g.square().sum()) for name, g in wanted.items() if name.startswith(prefix))
        for prefix in ("layers.0.", "layers.1.", "head.")
    ]
    parts = [layer.gradient.mse.value for layer in found.layers]
    total = np.dot(sizes, parts) / sum(sizes)
    assert found.total.mse.value == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("sampler", ["neighbor", "ladies-keep", "fastgcn", "saint-node"])
def test_embeddings_and_layer_gradients_against_dense_ones(sampler):
    engine = ready("sgcn", sampler, model=small_model("mean", 3, bias=False))
    found, draws = recorded(engine, GradientProbe(probes=4), 12)
    P, x = torch.from_numpy(propagation_of(GRAPH)), torch.from_numpy(GRAPH.x).double()
    wide = copy.deepcopy(engine.model).double()
    zeroth, first = [], []
    for batch, _ in draws:
        blocks = [torch.from_numpy(dense_block(block, len(GRAPH))) for block in batch.blocks]
        weights = torch.zeros(len(GRAPH)).double()
        weights[batch.nodes] = torch.from_numpy(batch.loss_weights).double()
        ours, theirs = (dense_pass(wide, m, x, weights) for m in (blocks, [P] * 3))
        rows = [torch.from_numpy(block.dst).long() for block in batch.blocks]
        zeroth.append([
            float((a[r] - b[r]).square().sum() / b[r].square().sum())
            for a, b, r in zip(ours[0], theirs[0], rows, strict=True)
        ])  # fmt: skip
        first.append([
            float((a - b).square().sum() / b.square().sum())
            for a, b in zip(ours[1][:2], theirs[1][:2], strict=True)
        ])  # fmt: skip
    for level in range(3):
        wanted = Mean.of([row[level] for row in zeroth])
        assert found.layers[level].embedding.value == pytest.approx(wanted.value, rel=1e-3)
        assert found.layers[level].embedding.error == pytest.approx(wanted.error, rel=1e-3)
    for level in range(2):
        wanted = Mean.of([row[level] for row in first])
        assert found.layers[level].layer_gradient.value == pytest.approx(wanted.value, rel=1e-3)
    assert found.layers[2].layer_gradient is None
    assert found.layers[3].embedding is None


def dense_pass(model, matrices, x, weights):
    """H of every layer, and the gradients of the weighted loss by them."""
    hs, h = [], x
    for matrix, layer in zip(matrices, model.layers, strict=True):
        h = ACTIVATIONS["elu"](matrix @ h @ layer.weight)
        hs.append(h)
    loss = torch.nn.functional.cross_entropy(
        model.head(h), torch.from_numpy(GRAPH.y), reduction="none"
    )
    return [h.detach() for h in hs], torch.autograd.grad(loss @ weights, hs)


@dataclass(frozen=True, eq=False)
class LinearTask(Task):
    """loss(i) = <c_i, logits_i>."""

    def loss(self, logits, nodes, weights=None):
        return (logits * self.labels.index_select(0, nodes)).sum(1) @ weights


def linear(sampler) -> Engine:
    """A model whose gradient is linear in each block, so that unbiased blocks leave no bias."""
    engine = make_engine(GRAPH, "sgcn", sampler, small_model(bias=False, activation="identity"))
    targets = np.random.default_rng(2).normal(size=(len(GRAPH), 4))
    engine.operands.task = LinearTask(torch.from_numpy(targets).float(), 4)
    return engine


def brute_force(engine: Engine, samples: int, size: int) -> Mean:
    """Relative variance by other draws, dense matrices and float64 algebra: no pass, no probe."""
    n, rng = len(GRAPH), np.random.default_rng(8)
    P, x = propagation_of(GRAPH), GRAPH.x.astype(np.float64)
    C = engine.operands.task.labels.double().numpy()
    W1, W2 = (layer.weight.detach().double().numpy() for layer in engine.model.layers)
    V = engine.model.head.weight.detach().double().numpy()  # logits = H V^T + v

    def gradient(M1, M2, weights):
        G = weights[:, None] * C  # by the logits
        H1 = M1 @ x @ W1
        by_z2 = G @ V
        by_w1 = (M1 @ x).T @ (M2.T @ by_z2 @ W2.T)
        return np.concatenate([
            by_w1.ravel(), ((M2 @ H1).T @ by_z2).ravel(), (G.T @ (M2 @ H1 @ W2)).ravel(), G.sum(0),
        ])  # fmt: skip

    share = np.zeros(n)
    share[engine.train] = 1 / len(engine.train)
    wanted, each = gradient(P, P, share), []
    for k in range(samples):
        seeds = rng.choice(engine.train, size, replace=False)
        batch = engine.sampler.sample(GRAPH, seeds, Key(77, k), 2)
        weights = np.zeros(n)
        weights[batch.nodes] = batch.loss_weights
        each.append(gradient(*(dense_block(block, n) for block in batch.blocks), weights))
    away = np.square(np.stack(each) - np.mean(each, 0)).sum(1) * samples / (samples - 1)
    return Mean.of(away / np.square(wanted).sum())


@pytest.mark.parametrize("name", ["neighbor", "labor", "ladies-keep"])
def test_unbiased_blocks_of_a_linear_model(name):
    engine = linear(weighted_by(SMALL[name], "unbiased"))
    found = GradientProbe(probes=200).measure(engine, 10).total
    assert abs(found.bias2.value) < 4 * found.bias2.error
    other = brute_force(engine, 500, 10)
    known = math.hypot(other.error, found.variance.error)
    assert abs(found.variance.value - other.value) < 4 * known
    assert known < 0.25 * other.value


@pytest.mark.parametrize("name", ["neighbor", "fastgcn", "ladies-keep"])
def test_row_weighting_shows_its_bias(name):
    engine = linear(weighted_by(SMALL[name], "row"))
    found = GradientProbe(probes=150).measure(engine, 30).total
    assert found.bias2.value > 6 * found.bias2.error


# -- what must come out as nothing --------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        *((name, {}) for name in ("sgcn", "sgcn+", "sgcn++", "vrgcn", "anchored")),
        *((name, {"layer_gradients": True}) for name in ("sgcn++", "anchored")),
    ],
)
def test_nothing_sampled_nothing_wrong(estimator, options):
    """`exact` and all training nodes: rounding is all that is left, in every quantity."""
    made = make_estimator(estimator, restart="never", **options)
    engine = make_engine(GRAPH, made, "exact")
    list(drive(engine, 4, size=None))
    found = GradientProbe(probes=3).measure(engine, 1000)
    numbers = [found.total.mse, *(layer.gradient.mse for layer in found.layers)]
    numbers += [layer.embedding for layer in found.layers[:2]]
    numbers += [layer.layer_gradient for layer in found.layers[:1]]
    assert all(0 <= number.value < 1e-9 for number in numbers)


def test_the_table_of_layer_gradients_is_that_of_the_whole_loss():
    """Where the weights rest its rows are exact, whatever was sampled; those of a batch are not."""
    far = []
    for with_d in (True, False):
        estimator = make_estimator("sgcn++", layer_gradients=with_d, restart="never")
        engine = make_engine(GRAPH, estimator, "neighbor")
        list(drive(engine, 4, frozen))
        far.append(GradientProbe(probes=3).measure(engine, 12).layers[0].layer_gradient.value)
    assert far[0] < 1e-9
    assert far[1] > 0.1


def test_a_wrong_state_is_seen():
    engine = make_engine(GRAPH, "anchored", "exact")
    list(drive(engine, 4, size=None))
    past, table = engine.past, engine.histories[0]
    past.last = {name: 1.1 * g for name, g in past.last.items()}
    assert GradientProbe(probes=3).measure(engine, 1000).total.bias2.value > 1e-3
    table.all_rows().add_(1.0)
    assert GradientProbe(probes=3).measure(engine, 1000).layers[0].embedding.value > 1e-3


def test_a_whole_batch_of_exact_blocks_leaves_the_choice_of_seeds():
    """Embeddings and layer gradients know nothing of which seeds were drawn; the gradient does."""
    engine = ready("sgcn", "exact")
    found = GradientProbe(probes=4).measure(engine, 6)
    assert found.total.variance.value > 0.05
    assert found.layers[0].embedding.value < 1e-9
    assert found.layers[0].layer_gradient.value < 1e-9


# -- probing only looks -------------------------------------------------------------------------

RUNS = {
    "sgcn": ("neighbor", {}),
    "sgcn+": ("ladies-keep", {"restart": "norm"}),
    "sgcn++": ("saint-node", {"layer_gradients": True, "restart": "norm", "beta": 1.5}),
    "first": ("cluster", {"restart": "gradient", "distance": 0.5}),
    "vrgcn++": ("neighbor", {"snapshot_nodes": 0.5}),
    "anchored": ("labor", {"gap": 4, "table_storage": "disk"}),
}


@pytest.mark.parametrize("estimator", RUNS)
def test_the_run_is_the_same_with_and_without(estimator):
    sampler, options = RUNS[estimator]
    found = []
    for callbacks in ([], [GradientProbe(probes=3, every=1, first=0)]):
        memory, model = Memory(), small_model(dropout=0.1)
        fit(
            model, GRAPH, sampler=SMALL[sampler], estimator=make_estimator(estimator, **options),
            epochs=4, batch_size=6, seed=1, threads=2, sinks=[memory], callbacks=callbacks,
        )  # fmt: skip
        steps = [e for e in memory.events if isinstance(e, StepEvent)]
        told = [(e.loss, e.gradient_norm, e.norm_growth, e.snapshot, e.restart) for e in steps]
        found.append((told, bits(*model.state_dict().values())))
    assert found[0] == found[1]
    sampled = [step for step, one in enumerate(found[0][0]) if not one[3]]
    assert sampled
    # A step may be measured and then turn into a restart; all that stayed regular were.
    assert set(sampled) <= {step.step for step in callbacks[0].steps}


def test_draws_are_their_own():
    """Not those of the run, and others at another step and for another seed."""
    engine = ready("sgcn")
    seen = [recorded(engine, GradientProbe(probes=4, seed=seed), 6)[1] for seed in (0, 1)]
    keys = [key for draws in seen for _, key in draws]
    assert len(set(keys)) == 8
    assert not {key.seed for key in keys} & {0, 1, 5}
    nodes = [frozenset(batch.nodes.tolist()) for draws in seen for batch, _ in draws]
    assert len(set(nodes)) > 4
    again = recorded(engine, GradientProbe(probes=4), 6)[1]
    assert [key for _, key in again] == keys[:4]


def test_draws_come_from_the_large_batch():
    estimator = make_estimator("anchored", snapshot_nodes=0.4, restart="never")
    for sampler in ("neighbor", "saint-node"):
        engine = ready(estimator, sampler)
        for batch, _ in recorded(engine, GradientProbe(probes=3), 5)[1]:
            counted = batch.nodes[batch.loss_weights > 0]
            assert set(counted.tolist()) <= set(engine.pool.tolist())
            if sampler == "neighbor":
                assert len(counted) == 5


# -- as a callback ------------------------------------------------------------------------------


def measured_steps(estimator, epochs: int = 4, **options) -> list[int]:
    probe = GradientProbe(probes=2, **options)
    fit(small_model(), GRAPH, estimator=estimator, epochs=epochs, batch_size=3, callbacks=[probe])
    return [step.step for step in probe.steps]


def test_which_steps_are_measured():
    assert measured_steps("sgcn") == [3, 10, 17, 24, 31, 38]
    assert measured_steps("sgcn", every=15, first=0, last=30) == [0, 15, 30]
    planned = make_estimator("anchored", gap=10, restart="never")
    assert measured_steps(planned) == [3, 11, 17, 24, 31, 38]
    assert measured_steps(planned, every=1, last=12) == [*range(3, 10), 11, 12]
    assert measured_steps("full") == []


def test_the_summary_is_the_mean_over_steps():
    probe = GradientProbe(probes=4, every=3)
    fit(small_model(), GRAPH, estimator="anchored", epochs=2, batch_size=3, callbacks=[probe])
    found = probe.summary()
    steps = found["steps"]
    assert len(steps) > 3
    for name in ("relative_mse", "relative_bias2", "relative_variance"):
        assert found[name] == pytest.approx(np.mean([step[name] for step in steps]))
        each = [step[f"{name}_error"] for step in steps]
        assert found[f"{name}_error"] == pytest.approx(np.linalg.norm(each) / len(steps))
        for level in range(3):
            layer = [step["by_layer"][level][name] for step in steps]
            assert found["by_layer"][level][name] == pytest.approx(np.mean(layer))
    first = [step["by_layer"][0]["embedding_mse"] for step in steps]
    assert found["by_layer"][0]["embedding_mse"] == pytest.approx(np.mean(first))
    assert found["by_layer"][2]["embedding_mse"] is None
    assert found["geometric_relative_mse"] < found["relative_mse"]
    assert {step["since_snapshot"] for step in steps} <= set(range(1, 10))


def test_nothing_measured_is_a_summary_too():
    found = GradientProbe().summary()
    assert found["relative_mse"] is None
    assert found["geometric_relative_mse"] is None
    assert found["by_layer"] == found["by_distance"] == found["steps"] == []


def test_distances_are_binned_by_doubling():
    """1, 2, 3 to 4, 5 to 8, ..; a step before the first snapshot is in none."""
    errors = {None: 9.0, 1: 1.0, 2: 2.0, 3: 4.0, 4: 16.0, 5: 3.0, 8: 3.0, 9: 0.0, 16: 5.0, 17: 7.0}
    nothing = Mean(0.0, 0.0)
    steps = [
        Measured(0, since, 1.0, Split(Mean(mse, 0.5), nothing, nothing), [])
        for since, mse in errors.items()
    ]
    found = GradientProbe(steps=steps).summary()["by_distance"]
    assert [(d["from"], d["to"], d["measured"]) for d in found] == [
        (1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 8, 2), (9, 16, 2), (17, 32, 1),
    ]  # fmt: skip
    assert [d["relative_mse"] for d in found] == [1.0, 2.0, 10.0, 3.0, 2.5, 7.0]
    assert found[2]["geometric_relative_mse"] == pytest.approx(8.0)
    assert found[4]["geometric_relative_mse"] is None  # of an error of 0
    assert found[2]["relative_mse_error"] == pytest.approx(0.5 / 2**0.5)


@pytest.mark.parametrize("head", [True, False])
@pytest.mark.parametrize("preaggregate", [True, False])
@pytest.mark.parametrize("estimator", ["anchored", "sgcn++"])
def test_other_models(head, preaggregate, estimator):
    """Rows of P X are exact, whatever the tables have missed since the snapshot."""
    engine = make_engine(
        GRAPH, estimator, "neighbor", small_model(head=head), preaggregate=preaggregate
    )
    list(drive(engine, 3))
    found = GradientProbe(probes=4).measure(engine, 12)
    assert [layer.layer for layer in found.layers] == ["1", "2", *["head"] * head]
    assert 0 < found.total.mse.value < 1
    assert (found.layers[0].embedding.value < 1e-12) == preaggregate


def test_before_the_first_snapshot():
    """The errors are those of plain sampling, also with a rule that would keep D."""
    made = make_estimator("sgcn++", layer_gradients=True, warmup=9)
    errors = []
    for estimator in (made, "sgcn"):
        engine = make_engine(GRAPH, estimator, "neighbor")
        list(drive(engine, 3))
        errors.append(GradientProbe(probes=4).measure(engine, 12).total.mse.value)
    assert errors[0] == errors[1] > 0


def test_weights_that_blew_up():
    engine = ready("sgcn")
    with torch.no_grad():
        engine.model.head.weight.fill_(math.inf)
    with pytest.raises(SgcnError, match="step 4 is not finite: training blew up"):
        GradientProbe(probes=2).measure(engine, 12, 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [("probes", 1), ("probes", 2.5), ("probes", True), ("every", 0), ("first", -1), ("seed", -1)],
)
def test_bad_options(name, value):
    with pytest.raises(SgcnError, match=f"{name} is {value}, expected"):
        GradientProbe(**{name: value})


def test_a_layer_without_weights_keeps_its_place():
    """It has no gradient to be wrong about; embeddings stay with the layers that they are of."""
    engine = ready("sgcn")
    exact = engine.exact

    def without(*args):
        found = exact()
        backward = found.backward

        def some(loss):
            value, gradient, d = backward(loss)
            return value, {n: g for n, g in gradient.items() if not n.startswith("layers.0.")}, d

        found.backward = some
        return found

    whole = GradientProbe(probes=3).measure(engine, 12)
    engine.exact = without
    form = engine.form
    engine.form = lambda passes: dataclasses.replace(
        formed := form(passes),
        gradient={n: g for n, g in formed.gradient.items() if not n.startswith("layers.0.")},
    )
    found = GradientProbe(probes=3).measure(engine, 12)
    assert [layer.layer for layer in found.layers] == ["1", "2", "head"]
    assert math.isnan(found.layers[0].gradient.mse.value)
    assert found.layers[1].gradient == whole.layers[1].gradient
    assert [one.embedding for one in found.layers] == [one.embedding for one in whole.layers]
