"""`fit`: reproducible, honest about what is best, and careful with memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import sgcn
from helpers import SMALL
from learning import bits, drive, early, labelled, make_engine, small_model
from sgcn import SAMPLERS, Graph, Key, SgcnError, fit, make_model, make_sampler
from sgcn.compute.exact import predict
from sgcn.errors import TrainingDiverged
from sgcn.estimators import ESTIMATORS, make_estimator, operands
from sgcn.estimators.engine import worth_preaggregating
from sgcn.rows import store_of
from sgcn.task import Task, split_nodes
from sgcn.training.events import EpochEvent, ScoreEvent, StepEvent
from sgcn.training.options import OptimizerOptions, Training
from sgcn.training.sinks import Memory

GRAPH = labelled()


def weights(model) -> list[bytes]:
    return bits(*model.state_dict().values())


def trained(estimator="anchored", sampler="neighbor", kind="mean", graph=GRAPH, **options):
    """The model, the result and all events of a short fit."""
    model, memory = small_model(kind, dropout=options.pop("dropout", 0.0)), Memory()
    sampler = SMALL[sampler] if isinstance(sampler, str) and sampler in SMALL else sampler
    estimator = early(estimator) if isinstance(estimator, str) else estimator
    result = fit(
        model, graph, estimator=estimator, sampler=sampler, sinks=[memory],
        **({"epochs": 4, "batch_size": 8, "evaluate_every": 4, "patience": None} | options),
    )  # fmt: skip
    return model, result, memory.events


def of_kind(events, kind) -> list:
    return [event for event in events if isinstance(event, kind)]


# -- reproducible -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_same_for_any_number_of_threads(estimator):
    runs = [trained(estimator, threads=threads)[0] for threads in (0, 1, 2, 1)]
    assert all(weights(run) == weights(runs[0]) for run in runs[1:])


@pytest.mark.parametrize("sampler", ["ladies-keep", "saint-node", "cluster"])
def test_large_batches_too(sampler):
    estimator = make_estimator("sgcn++", snapshot_nodes=0.5, gap=3)
    runs = [trained(estimator, sampler, threads=threads)[0] for threads in (0, 1, 2)]
    assert all(weights(run) == weights(runs[0]) for run in runs[1:])


def test_kernel_threads_do_not_matter():
    """More threads in torch and numba: the same sums in the same order."""
    before = torch.get_num_threads()
    one = trained("sgcn++", kind="concat")[0]
    try:
        torch.set_num_threads(2)
        two = trained("sgcn++", kind="concat")[0]
    finally:
        torch.set_num_threads(before)
    assert weights(one) == weights(two)


def test_the_threads_of_torch_are_the_users():
    """In a process of its own: numba's threads start once, and reset those of torch."""
    program = """
        import torch
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1
        from sgcn import fit, make_model
        from sgcn.data import load
        graph = load("synthetic:nodes=200,degree=3,features=4,classes=3")
        fit(make_model(4, 3, widths=4, seed=0), graph, epochs=1)
        raise SystemExit(torch.get_num_threads() != 1)
    """
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", dedent(program)], env=environment, check=False)
    assert done.returncode == 0


def test_seeds_differ():
    assert weights(trained(seed=1)[0]) != weights(trained(seed=2)[0])
    assert weights(trained(seed=1, dropout=0.5)[0]) == weights(trained(seed=1, dropout=0.5)[0])


# -- what is best -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["sgcn", "sgcn++"])
@pytest.mark.parametrize("best_by", ["f1_micro", "loss"])
def test_the_best_weights_are_kept(best_by, estimator):
    """A learning rate that overshoots: the last weights are not the best."""
    model, result, events = trained(
        estimator, best_by=best_by, epochs=12, lr=0.2, average=0.0, preaggregate=False
    )
    told = of_kind(events, ScoreEvent)
    sign = 1.0 if best_by == "f1_micro" else -1.0
    scores = [sign * event.validation[best_by] for event in told]
    first = scores.index(max(scores))  # of equals the first
    assert 0 < first < len(scores) - 1, "the case is too easy"
    assert sign * result.validation[best_by] == pytest.approx(max(scores), rel=1e-5)
    assert result.best_step == told[first].step
    for k, event in enumerate(told):
        assert event.best == (scores[k] > max(scores[:k], default=-np.inf))
    task, test = Task.of(GRAPH), torch.from_numpy(split_nodes(GRAPH, 2))
    logits = predict(model, GRAPH, store_of(GRAPH.x))[test.long()]
    assert result.test == task.score(logits, test)


def test_scores_are_what_they_say():
    """Micro-F1 and loss against their definitions."""
    graph = labelled(multi_label=True)
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(size=(60, 4))).float()
    nodes = torch.arange(60)
    found = Task.of(graph).score(logits, nodes)
    guess, truth = logits.numpy() > 0, np.asarray(graph.y) > 0
    hits, misses = (guess & truth).sum(), (guess ^ truth).sum()
    assert found["f1_micro"] == pytest.approx(2 * hits / (2 * hits + misses))
    p = 1 / (1 + np.exp(-logits.numpy().astype(float)))
    assert found["loss"] == pytest.approx(-np.log(np.where(truth, p, 1 - p)).mean(), rel=1e-5)
    single = Task.of(GRAPH).score(logits, nodes)
    assert single["f1_micro"] == (logits.numpy().argmax(1) == GRAPH.y).mean()


def test_patience():
    _, result, _ = trained(epochs=60, lr=0.2, patience=12, best_by="loss")
    assert result.steps == result.best_step + 12 < 240


def test_patience_waits_for_a_score():
    """Ten steps between scores: a step that has none cannot be worse than the best."""
    _, result, events = trained("sgcn", epochs=30, lr=1e-9, patience=1, evaluate_every=10)
    scored = [event.step for event in of_kind(events, ScoreEvent)]
    assert scored == [10, 20]
    assert result.steps == 20


def test_numbers_of_numpy_and_a_folder_as_text(tmp_path, monkeypatch):
    """They end in checkpoints too, and those are found again."""
    monkeypatch.chdir(tmp_path)
    whole = {"batch_size": 8, "steps": 6, "seed": 3, "evaluate_every": 2, "threads": 1}
    made = [
        fit(small_model(), labelled(), state=f"{kind.__name__}",
            sampler=make_sampler("neighbor", sizes=kind(2)), checkpoint_seconds=np.float32(0.0),
            **{name: kind(value) for name, value in whole.items()})
        for kind in (int, np.int64, np.int64)
    ]  # fmt: skip
    assert (tmp_path / "int64" / "current").is_file()
    assert made[0].test == made[1].test == made[2].test
    assert [row["loss"] for row in made[0].history.steps] == [
        row["loss"] for row in made[2].history.steps
    ]


@pytest.mark.parametrize(
    ("options", "steps"),
    [({"epochs": 3}, 12), ({"steps": 7}, 7), ({"epochs": 3, "steps": 7}, 7),
     ({"epochs": 1, "steps": 7}, 4)],
)  # fmt: skip
def test_a_run_ends_with_its_epochs_or_steps(options, steps):
    """A number of steps may end in the middle of an epoch, with a score and an epoch's event."""
    _, result, events = trained("sgcn", **({"epochs": None} | options))
    assert result.steps == steps
    assert of_kind(events, ScoreEvent)[-1].step == steps
    last = of_kind(events, EpochEvent)[-1]
    assert (last.step, last.epoch) == (steps, (steps - 1) // 4)
    losses = [event.loss for event in of_kind(events, StepEvent) if event.epoch == last.epoch]
    assert last.loss == pytest.approx(np.mean(losses))


def test_the_default_estimator_takes_effect_in_a_short_run():
    result = fit(small_model(), GRAPH, batch_size=8, epochs=5)
    assert result.steps == 20
    assert result.snapshots == 9  # two plain steps, and then every other one


def test_without_a_number_a_run_ends_by_patience():
    graph = labelled()
    fitted = fit(small_model(), graph, batch_size=30, threads=0)
    assert fitted.best_step < fitted.steps < 3000
    assert fitted.steps - fitted.best_step >= 500


@pytest.mark.parametrize(
    "options", [{"epochs": 0}, {"evaluate_every": 0}, {"patience": 0}, {"epochs": 1.5}]
)
def test_counts_are_checked(options):
    (name, value), *_ = options.items()
    with pytest.raises(SgcnError, match=f"{name} is {value}, expected a whole number >= 1"):
        trained(**options)



@pytest.mark.parametrize(
    ("estimator", "every", "wanted"),
    [
        ("sgcn", 4, [4, 8, 12, 16, 20, 24, 28]),
        ("sgcn", 10, [10, 20, 28]),  # and after the last step
        ("sgcn", 50, [28]),
        ("sgcn", None, [10, 20, 28]),  # a score costs more than a step
    ],
)
def test_evaluate_every(estimator, every, wanted):
    _, _, events = trained(estimator, epochs=7, evaluate_every=every)
    assert [event.step for event in of_kind(events, ScoreEvent)] == wanted


def test_snapshots_give_the_validation_score_for_free(monkeypatch):
    """No pass of its own in an epoch with a snapshot, except for the last weights and the end."""
    from sgcn.training import loop as training

    passes = []
    monkeypatch.setattr(
        training, "predict", lambda *a, **k: passes.append(1) or predict(*a, **k)
    )
    # 10 steps an epoch, K = 10.
    _, result, events = trained(
        "sgcn++", epochs=5, batch_size=3, average=0.0, evaluate_every=20
    )
    assert len(passes) == 2
    scores = of_kind(events, ScoreEvent)
    assert len(scores) == result.snapshots + 1
    steps = {event.step: event for event in of_kind(events, StepEvent)}
    assert all(steps[score.step].snapshot for score in scores[:-1])


@pytest.mark.parametrize("sampler", ["neighbor", "cluster"])
def test_the_last_layer_has_the_rows_that_are_asked_for(sampler):
    """Those with a loss and those that are scored; a subgraph reads the histories of all."""
    train, validation = (split_nodes(GRAPH, part) for part in (0, 1))
    engine = make_engine(GRAPH, "anchored", sampler, scored=validation)
    outcome = engine.snapshot()
    rows = [len(table.all_rows()) for table in engine.histories]
    some = len(train) + len(validation) if sampler == "neighbor" else len(GRAPH)
    assert rows == [len(GRAPH), some]
    logits = predict(engine.model, GRAPH, engine.operands.features)
    torch.testing.assert_close(outcome.scored, logits[torch.from_numpy(validation)])
    table = engine.histories[-1]
    needed = engine.operands.needed_rows
    assert needed is None or torch.equal(table.read(torch.from_numpy(needed)), table.all_rows())
    assert make_engine(GRAPH, "anchored", sampler).snapshot().scored is None
    assert make_engine(GRAPH, "sgcn", sampler).operands.needed_rows is None  # it takes none


# -- P X, once ----------------------------------------------------------------------------------


def test_sums_of_features_are_computed_once_where_they_can_be(monkeypatch):
    for kind, depth, dropout, wanted in (
        ("mean", 2, 0.0, True), ("concat", 3, 0.0, True), ("gin", 2, 0.0, True),
        ("mean", 1, 0.0, False), ("mean", 2, 0.5, True), ("attention", 2, 0.0, False),
    ):  # fmt: skip
        model = small_model(kind, depth, dropout=dropout)
        assert worth_preaggregating(model, GRAPH, SMALL["neighbor"]) == wanted
    seen = []
    for choice in (None, True, False):
        trained("sgcn", preaggregate=choice, callbacks=[lambda engine, *_: seen.append(engine)])
    assert {engine.operands.sampled_depth for engine in seen[: len(seen) // 3]} == {1}
    assert seen[-1].operands.sampled_depth == 2
    monkeypatch.setattr(operands, "physical_memory", lambda: GRAPH.x.nbytes * 4 - 1)
    assert not worth_preaggregating(small_model(), GRAPH, SMALL["neighbor"])


@pytest.mark.parametrize(("stored", "wanted"), [(40, True), (10, False)])
def test_sums_of_sparse_features_are_computed_where_they_cost_less(stored, wanted):
    """A row of P X has 1000 numbers, and stands for some rows with ``stored`` values each."""
    x = sp.random_array((60, 1000), density=stored / 1000, format="csr", rng=0, dtype=np.float32)
    model = make_model(1000, 4, widths=8)
    assert worth_preaggregating(model, labelled(x=x), SMALL["neighbor"]) == wanted
    assert worth_preaggregating(model, labelled(x=x.toarray()), SMALL["neighbor"])


def test_a_size_for_every_layer_has_every_layer_sampled():
    sampler, seen = make_sampler("neighbor", sizes=(3, 2)), []
    trained("anchored", sampler, callbacks=[lambda engine, *_: seen.append(engine)])
    assert {engine.operands.sampled_depth for engine in seen} == {2}


# -- the average of weights ---------------------------------------------------------------------


def test_the_average_is_what_is_scored_and_kept():
    """Against its recursion in double precision, over the weights that callbacks see."""
    path = []

    def see(engine, loader, step):
        path.append([p.detach().double().clone() for p in engine.model.parameters()])

    options = {"average": 0.7, "best_by": "loss"}
    model, result, events = trained("anchored", epochs=3, **options)
    assert of_kind(events, ScoreEvent)[-1].best, "the last weights have to be the best here"
    trained("anchored", epochs=4, callbacks=[see], **options)  # sees those after the third epoch
    wanted, *seen = path[: 3 * len(path) // 4 + 1]
    for step, now in enumerate(seen, start=1):
        fade = min(0.7, step / (step + 9))
        wanted = [fade * a + (1 - fade) * w for a, w in zip(wanted, now, strict=True)]
    for found, average in zip(model.parameters(), wanted, strict=True):
        torch.testing.assert_close(found.double(), average, rtol=1e-5, atol=1e-6)
    task, nodes = Task.of(GRAPH), torch.from_numpy(split_nodes(GRAPH, 1))
    logits = predict(model, GRAPH, store_of(GRAPH.x))[nodes.long()]
    assert result.validation == task.score(logits, nodes)


def test_training_goes_on_from_the_weights_and_not_from_their_average():
    losses = [
        [event.loss for event in of_kind(trained(average=average)[2], StepEvent)]
        for average in (0.5, 0.9)
    ]
    assert losses[0] == losses[1]


def test_a_checkpoint_without_an_average(tmp_path):
    """Of a run that kept none: one sentence, before any step."""
    options = {"state": tmp_path, "checkpoint_seconds": 0.0}
    trained("sgcn", average=0.0, **options)
    with pytest.raises(SgcnError, match=r"does not fit this model.*average"):
        trained("sgcn", epochs=9, **options)


@pytest.mark.parametrize("average", [-0.1, 1.0])
def test_a_decay_that_is_none(average):
    with pytest.raises(SgcnError, match=r"average is .*expected a number from 0 to below 1"):
        trained(average=average)


# -- the loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampler", "per_epoch", "steps"),
    [("neighbor", None, 4), ("neighbor", 1, 1), ("neighbor", 10, 10), ("cluster", 10, 10)],
)
def test_batches_per_epoch(sampler, per_epoch, steps):
    _, result, events = trained(sampler=sampler, batches_per_epoch=per_epoch)
    assert result.steps == 4 * steps
    assert [event.step for event in of_kind(events, StepEvent)] == list(range(4 * steps))
    assert [event.epoch for event in of_kind(events, EpochEvent)] == [0, 1, 2, 3]


def test_inductive_training_sees_only_training_nodes():
    """Other nodes' features may be anything."""
    other = np.asarray(GRAPH.split) != 0
    x = np.where(other[:, None], 100.0, GRAPH.x).astype(np.float32)
    spoilt = labelled(x=x, split=GRAPH.split)
    last = {"evaluate_every": 16}
    for estimator in ("sgcn", "sgcn++"):
        models = [trained(estimator, graph=g, inductive=True, **last)[0] for g in (GRAPH, spoilt)]
        assert weights(models[0]) == weights(models[1])
    assert weights(trained(graph=spoilt, **last)[0]) != weights(trained(**last)[0])


OPTIMIZERS = {
    "adam": "adam",
    "sgd": "sgd",
    "rmsprop": "rmsprop",
    "adamw": "adamw",
    "by hand": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("estimator", ["sgcn", "sgcn++", "anchored"])
def test_any_optimiser(optimizer, estimator):
    rate = {} if optimizer == "by hand" else {"lr": 0.02}
    _, _, events = trained(estimator, optimizer=OPTIMIZERS[optimizer], epochs=12, **rate)
    losses = [event.loss for event in of_kind(events, EpochEvent)]
    assert losses[-1] < losses[0]


def test_options_beside_an_optimiser_that_is_a_function():
    with pytest.raises(SgcnError, match=r"lr is 0\.5 beside an optimiser that is made"):
        trained("sgcn", optimizer=OPTIMIZERS["by hand"], lr=0.5)
    told = Training.of({"optimizer": {"schedule": "cosine"}})
    with pytest.raises(SgcnError, match="schedule is 'cosine' beside an optimiser that is made"):
        trained("sgcn", optimizer=OPTIMIZERS["by hand"], training=told)


def test_an_optimiser_that_is_made():
    """It takes the same steps as one by name; one of other parameters is refused."""
    models = small_model(), small_model()
    made = torch.optim.SGD(models[0].parameters(), lr=0.05, momentum=0.9)
    options = {"epochs": 3, "batch_size": 8, "estimator": "sgcn"}
    fit(models[0], GRAPH, optimizer=made, **options)
    fit(models[1], GRAPH, optimizer="sgd", lr=0.05, momentum=0.9, **options)
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    with pytest.raises(SgcnError, match="made for other parameters than the model's"):
        fit(small_model(), GRAPH, optimizer=made)
    with pytest.raises(SgcnError, match="LBFGS runs the model many times"):
        fit(models[0], GRAPH, optimizer=torch.optim.LBFGS)
    with pytest.raises(SgcnError, match=r"gave 3, expected one of torch.optim"):
        fit(models[0], GRAPH, optimizer=lambda parameters: 3)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad", "RMSprop"])
def test_optimisers_by_name_step_like_those_of_torch(name):
    """Also where a gradient or a parameter is not laid out row by row."""
    steps = {}
    for ours in (True, False):
        model = small_model("concat")
        model.head.weight = nn.Parameter(model.head.weight.detach().T.contiguous().T)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
        if ours:
            optimizer = OptimizerOptions(name.lower(), 0.1).make(model.parameters())
        engine = make_engine(labelled(multi_label=True), "sgcn", "neighbor", model)
        list(drive(engine, 5, lambda _, optimizer=optimizer: optimizer))
        steps[ours] = [p.detach() for p in model.parameters()]
    for one, other in zip(*steps.values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["concat", "attention"])
def test_multi_label(estimator, kind):
    graph = labelled(multi_label=True)
    sampler = make_sampler("neighbor")
    _, result, events = trained(estimator, sampler, kind, graph, epochs=15, lr=0.03)
    losses = [event.loss for event in of_kind(events, EpochEvent)]
    assert losses[-1] < 0.9 * losses[0]
    assert 0.5 < result.test["f1_micro"] <= 1.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("sampler", SMALL)
def test_every_estimator_learns_with_every_sampler(sampler, estimator):
    """Also with large-batch snapshots, whose tables know some rows only."""
    for nodes in (None, 0.5):
        made = early(estimator, snapshot_nodes=nodes)
        _, result, _ = trained(made, sampler, epochs=2)
        assert np.isfinite(list(result.test.values())).all()
        assert result.snapshots > 0 or not made.takes_snapshots


def test_every_default_sampler_learns():
    graph = labelled(nodes=200)
    for sampler in SAMPLERS:
        _, _, events = trained("anchored", make_sampler(sampler), graph=graph, epochs=6)
        losses = [event.loss for event in of_kind(events, EpochEvent)]
        assert losses[-1] < losses[0], sampler


@pytest.mark.parametrize("table_dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("table_storage", ["memory", "disk"])
def test_tables_of_every_kind(table_dtype, table_storage, tmp_path, monkeypatch):
    """On disk they are the same numbers; nothing of them is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    options = {"table_dtype": table_dtype, "layer_gradients": True}
    estimator = make_estimator("sgcn++", table_storage=table_storage, **options)
    model, result, _ = trained(estimator, epochs=6, state=tmp_path / "state")
    assert np.isfinite(result.test["loss"])
    assert weights(model) == weights(trained(make_estimator("sgcn++", **options), epochs=6)[0])
    assert not [path for path in tmp_path.rglob("*") if "table" in path.name]


def test_unlabelled_and_missing_nodes():
    y = np.where(np.arange(60) % 3 == 0, -1, GRAPH.y)
    _, result, _ = trained(graph=labelled(y=y))
    assert np.isfinite(result.test["loss"])
    only_training = labelled(split=np.zeros(60, np.int8))
    _, result, _ = trained(graph=only_training)
    assert np.isnan(result.test["loss"])  # there is nothing to score, and it says so
    assert np.isnan(result.validation["f1_micro"])


# -- what goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [1, 5])
@pytest.mark.parametrize("best_by", ["f1_micro", "loss"])
@pytest.mark.parametrize("estimator", ["full", "sgcn", "sgcn++", "anchored", "vrgcn"])
def test_a_huge_learning_rate_ends_with_a_sentence(estimator, best_by, epochs):
    """Also when only the last step blows up and the next look at the weights is a score."""
    with pytest.raises(TrainingDiverged, match=r"blew up.*learning rate") as caught:
        trained(
            estimator, optimizer="sgd", lr=1e30, epochs=epochs, best_by=best_by, batch_size=30
        )
    assert "\n" not in str(caught.value)


def test_a_loss_below_zero_is_no_divergence():
    """What counts is how far it rose."""

    def shifted(outputs, targets):
        return nn.functional.cross_entropy(outputs, targets, reduction="none") - 2.0

    result = fit(small_model(), GRAPH, loss=shifted, epochs=20, batch_size=8, progress=False)
    assert result.validation["loss"] < 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"optimizer": "sgd", "nesterov": True}, "sgd: Nesterov momentum requires a momentum"),
        ({"estimator": "sgcn+++"}, r"did you mean 'sgcn\+\+'"),
        ({"sampler": "ladis"}, "did you mean 'ladies'"),
        ({"optimizer": "adm"}, "did you mean 'adam'"),
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": float("nan")}, "lr is nan"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batches_per_epoch": 0}, "batches_per_epoch is 0"),
        ({"best_by": "f2"}, "best_by is 'f2'"),
        ({"seed": -1}, "seed is -1"),
        ({"graph": labelled(y=np.full(60, -1))}, "labels no node"),
        ({"graph": labelled(split=np.ones(60, np.int8))}, "no labelled training nodes"),
        ({"graph": labelled(x=None)}, "no features"),
        ({"graph": labelled(y=None)}, "no labels"),
        ({"graph": labelled(split=None)}, "no split"),
        ({"graph": labelled(y=np.full(60, -2))}, "y holds -2"),
        ({"graph": labelled(y=np.full((60, 2), 3))}, "other than 0 and 1"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(SgcnError, match=words) as caught:
        trained(**options)
    assert "\n" not in str(caught.value)


class Other(nn.Module):
    """A model that is none of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(5, 4)

    def forward(self, x, edges):
        return self.inner(x)


UNFIT = {
    "compiled": (lambda: torch.compile(small_model()), r"one of torch.compile.*model._orig_mod"),
    "no Model": (Other, r"a Other, expected a sgcn.Model.*Model\(\[conv1, conv2\], head\)"),
    "elsewhere": (lambda: small_model().to("meta"), r"float32 on meta, expected.*cpu\(\)"),
    "float64": (lambda: small_model().double(), r"torch.float64 on cpu.*model.float\(\)"),
    "too narrow": (lambda: make_model(4, 4, widths=6), "with 5 features.*make_model.5, 4"),
    "too wide": (lambda: make_model(9, 4, layer="concat", widths=6), "with 5 features"),
    "too few outputs": (lambda: make_model(5, 3, widths=6), "gives 3 outputs.* y holds 4 classes"),
    "too many outputs": (lambda: make_model(5, 5, widths=6), "gives 5 outputs.* y holds 4 classes"),
    "PyG": (
        lambda: pytest.importorskip("torch_geometric.nn").GCN(5, 8, 2, 4),
        "a GCN, expected a sgcn.Model.*convolutions of PyG made with normalize=False",
    ),
}  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's compiler
def test_models_that_do_not_fit(case, sparse):
    make, words = UNFIT[case]
    graph = labelled(x=sp.csr_array(GRAPH.x)) if sparse else GRAPH
    for preaggregate in (None, True):
        with pytest.raises(SgcnError, match=words) as caught:
            fit(make(), graph, epochs=1, preaggregate=preaggregate)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["dense", "sparse", "half"])
def test_features_that_are_no_numbers(kind, value):
    x = GRAPH.x.copy()
    x[-1, -1] = value
    x = {"dense": x, "sparse": sp.csr_array(x), "half": x.astype(np.float16)}[kind]
    with pytest.raises(SgcnError, match="the graph has features that are NaN or infinite"):
        fit(small_model(), labelled(x=x), epochs=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gap": 0}, "gap is 0"),
        ({"restart": "norm", "alpha": 0.9}, "alpha is 0.9"),
        ({"alpha": 1.2}, "no option 'alpha' .it belongs to restart = norm"),
        ({"snapshot_nodes": 0}, "snapshot_nodes is 0"),
        ({"snapshot_nodes": 1.5}, "snapshot_nodes is 1.5"),
        ({"forward": "recursiv"}, "forward is 'recursiv'"),
        ({"gapp": 3}, "did you mean 'gap'"),
    ],
)
def test_bad_estimators(options, words):
    with pytest.raises(SgcnError, match=words):
        make_estimator("sgcn++", **options)


# -- cost ---------------------------------------------------------------------------------------

BIG = 3000


class Largest(TorchDispatchMode):
    """The most rows that any new tensor has; views of what was there before are not new."""

    def __init__(self, *known: torch.Tensor) -> None:
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}
        self.rows = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            counts = isinstance(tensor, torch.Tensor) and tensor.ndim > 0
            if counts and tensor.untyped_storage().data_ptr() not in self.known:
                self.rows = max(self.rows, tensor.shape[0])
        return out


@pytest.fixture(scope="module")
def big() -> Graph:
    return labelled(nodes=BIG)


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name != "full"])
@pytest.mark.parametrize("snapshot_nodes", [None, 0.5])
def test_a_regular_step_copies_no_table(big, estimator, snapshot_nodes):
    """No tensor of N rows is made between snapshots, whatever the rule."""
    made = early(estimator, snapshot_nodes=snapshot_nodes, restart="never")
    if made.gradient.needs_snapshot:
        made = made.with_options(layer_gradients=True)
    engine = make_engine(big, made, replace(SMALL["neighbor"], sizes=1))
    list(drive(engine, 2, size=4))
    tables = engine.histories + engine.past.histories
    assert bool(tables) == made.takes_snapshots or estimator == "first"
    key = Key(9)
    batch = engine.draw(engine.train[:4] if engine.pool is None else engine.pool[:4], key)
    operands = engine.operands
    held = [operands.features.table, operands.task.labels, *(table.all_rows() for table in tables)]
    held += [table.valid for table in tables if table.valid is not None]
    with Largest(*held) as largest:
        outcome = engine.regular(batch, key)
        engine.remember(outcome)
        engine.commit(outcome)
    assert 0 < largest.rows < BIG / 2  # the widest are the neighbours that `vrgcn` reads


def test_the_counter_of_rows_counts(big):
    engine = make_engine(big, "sgcn++")
    with Largest() as largest:
        engine.snapshot()
    assert largest.rows == BIG


def test_public_names():
    for name in sgcn.__all__:
        assert getattr(sgcn, name) is not None
    assert {"fit", "make_model", "Model", "make_estimator", "Estimator", "ESTIMATORS"} <= set(
        sgcn.__all__
    )
