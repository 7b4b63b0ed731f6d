"""The experiments of the paper: what is run, which numbers are told, and what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from sgcn.experiments.core import (
    BATCHES,
    MEMORY,
    PROBE,
    ROWS,
    TIMES,
    TRAIN,
    Case,
    Experiment,
    Plan,
    case,
    rows,
)
from sgcn.experiments.data import PAPER_DATA, Dataset, paper
from sgcn.experiments.measures import PARTS

_CURVES = ("training_loss", "validation_loss", "validation_f1")
_NUMBERS = ("test_f1", "final_training_loss", "lowest_validation_loss", "training_seconds")
_BOTH = ("sgcn", "sgcn++")
_RELATIVE = (
    "relative to the exact one, |g - G|² / |G|², and a number for a run is the geometric mean over "
    "its steps; the paper's is absolute."
)


def _paper_f1(dataset: str, case: Case, quantity: str) -> Sequence[float]:
    if quantity != "test_f1":
        return ()
    found: Sequence[float] = paper()["f1"][case.sampler][case.estimator][dataset]
    return found


def _paper_seconds(dataset: str, case: Case, quantity: str) -> Sequence[float]:
    found = paper()["seconds"][case.estimator].get(quantity)
    return () if found is None else [found[dataset]]


def _sampled(plan: Plan) -> list[str]:
    return [sampler for sampler in plan.samplers if sampler != "full"]


def _timed(plan: Plan, data: Dataset) -> list[Case]:
    # A time for each step is the same after 20 epochs as after 200.
    epochs = {"epochs": min(plan.epochs, 20)}
    return rows(plan, data, ["ladies"], _BOTH, kinds=(TIMES,), training=epochs)


def _weighed(plan: Plan, data: Dataset) -> list[Case]:
    epochs = {"epochs": min(plan.epochs, 3)}  # memory is that of its largest step
    samplers = ("ladies",) if plan.quick else ("neighbor", "ladies", "saint")
    return rows(plan, data, samplers, _BOTH, kinds=(MEMORY,), training=epochs)


def _first_and_last(plan: Plan, data: Dataset) -> list[Case]:
    """The first and the last row of each sampler: for VRGCN, SGCN+ is the plain one."""
    return [
        case(plan, data, sampler, ROWS[sampler][at]) for sampler in _sampled(plan) for at in (0, -1)
    ]


def _first_steps(plan: Plan, data: Dataset) -> list[Case]:
    """The paper shows 200 steps."""
    epochs = {"epochs": min(plan.epochs, 20)}
    samplers = ("neighbor",) if plan.quick else ("neighbor", "fastgcn", "ladies", "saint")
    return rows(plan, data, samplers, kinds=(TRAIN, PROBE), training=epochs)


def _gaps(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, "ladies", kind, f"K={gap}", estimator={"gap": gap, "restart": "never"})
        for kind in ("sgcn++", "sgcn+")
        for gap in ((5, 20) if plan.quick else (5, 10, 15, 20))
    ]


def _growing_gaps(plan: Plan, data: Dataset) -> list[Case]:
    gap, growth = (5, 0.5) if plan.quick else (10, 0.1)  # ten snapshots come late in a quick run
    schedule = {"gap": gap, "restart": "never"}
    return [
        case(plan, data, "ladies", "sgcn++", words, estimator=schedule | {"growth": g})
        for words, g in ((f"K={gap}", 0.0), (f"K={gap}+{growth}s", growth))
    ]


_SNAPSHOT_SIZES = (20_000, 40_000, 60_000, 80_000)
_REDDIT_TRAINING_NODES = 153_000  # about; on other graphs B' is the same share of theirs


def _snapshot_sizes(plan: Plan, data: Dataset) -> list[Case]:
    counted = data.paper == "reddit" and not plan.quick
    settings: dict[str, float] = {}
    for size in _SNAPSHOT_SIZES[:: 3 if plan.quick else 1]:
        share = round(size / _REDDIT_TRAINING_NODES, 2)
        settings |= {f"B'={size // 1000}k": size} if counted else {f"B'={share:.0%}": share}
    return [
        case(plan, data, "ladies", kind, words,
             estimator={"restart": "never", "snapshot_nodes": nodes})
        for kind in ("sgcn++", "sgcn+")
        for words, nodes in settings.items()
    ]  # fmt: skip


def _batch_sizes(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, "ladies", "sgcn++", f"B={size}", estimator={"restart": "never"},
             training={"batch_size": size})
        for size in ((256, 2048) if plan.quick else (256, 512, 1024, 2048))
    ]  # fmt: skip


def _subgraph_sizes(plan: Plan, data: Dataset) -> list[Case]:
    return [
        case(plan, data, "saint", kind, f"B={size}", sampler={"size": size},
             training={"batch_size": size})
        for kind in _BOTH
        for size in ((512, 2048) if plan.quick else (512, 1024, 2048, 4096))
    ]  # fmt: skip


_PATIENCE = 200  # steps without a lower validation loss


def _optimizers(plan: Plan, data: Dataset) -> list[Case]:
    """SGD needs a hundred times the steps: both stop by patience, not by a number of epochs."""
    longer = 100 if plan.epochs >= 200 else 1
    rates = {"Adam 0.01": ("adam", 0.01, 1), "SGD 0.1": ("sgd", 0.1, longer)}
    patience = {"patience": _PATIENCE // BATCHES}
    return [
        case(plan, data, "ladies", kind, words, optimizer={"name": name, "lr": lr},
             task={"best_by": "loss"}, training=patience | {"epochs": more * plan.epochs})
        for words, (name, lr, more) in rates.items()
        for kind in _BOTH
    ]  # fmt: skip


#: By their names on the command line.
EXPERIMENTS: dict[str, Experiment] = {
    "f1-table": Experiment(
        title="F1 of every sampler with every estimator",
        data=PAPER_DATA,
        cases=lambda plan, data: rows(plan, data, plan.samplers),
        numbers=("test_f1", "best_validation_f1", "snapshots", "training_seconds"),
        reference=_paper_f1,
    ),
    "time-table": Experiment(
        title="Seconds of LADIES in five parts",
        data=PAPER_DATA,
        cases=_timed,
        numbers=(*PARTS, "total"),
        reference=_paper_seconds,
        note="Ten regular steps, and for SGCN++ one snapshot before them. Transfer is the reading "
        "of history rows: no device is involved, and rows of features are read inside the "
        "products, which is computing. A snapshot of the whole graph samples nothing. The paper's "
        "times are of an Intel i9-10850K with an RTX 3090: compare the shares, not the seconds.",
    ),
    "decomposition": Experiment(
        title="Doubly variance reduction, LADIES",
        data=("flickr",),
        cases=lambda plan, data: rows(plan, data, ["ladies"], kinds=(TRAIN, PROBE)),
        numbers=("final_training_loss", "lowest_validation_loss", "gradient_mse"),
        curves=("training_loss", "validation_loss", "gradient_mse"),
        note=f"The error of the gradient is {_RELATIVE}",
    ),
    "convergence": Experiment(
        title="Validation loss of SGCN and SGCN++",
        data=PAPER_DATA,
        cases=_first_and_last,
        numbers=("lowest_validation_loss", "best_validation_f1"),
        curves=("validation_loss",),
        panels="{graph}, {sampler}",
    ),
    "gradient-mse": Experiment(
        title="Error of the stochastic gradient in the first steps",
        data=("reddit",),
        cases=_first_steps,
        numbers=("gradient_mse", "final_training_loss"),
        curves=("gradient_mse", "training_loss"),
        panels="{graph}, {sampler}",
        note=f"The error is {_RELATIVE}",
    ),
    "memory": Experiment(
        title="Memory of SGCN and SGCN++",
        data=("flickr", "ppi"),
        cases=_weighed,
        numbers=("peak_rss_mb", "rss_mb", "tables_mb", "device_mb"),
        note="Every run has a process of its own. RSS counts the program and the graph too; the "
        "tables are the history of SGCN++. The paper's figure has the memory of a GPU: `device mb` "
        "is empty where there is none.",
    ),
    "wall-clock": Experiment(
        title="Losses against seconds of training",
        data=("reddit", "ppi-large"),
        cases=lambda plan, data: rows(plan, data, _sampled(plan)),
        numbers=("training_seconds", "final_training_loss", "lowest_validation_loss"),
        curves=("training_loss", "validation_loss"),
        x="seconds",
        panels="{graph}, {sampler}",
        note="Seconds are those of sampling, reading rows and computing, snapshots included; "
        "evaluations between snapshots are left out. Several --jobs compete for the machine's "
        "memory: take one for seconds that count.",
    ),
    "snapshot-gap": Experiment(
        title="Snapshot gap K without restarts, LADIES",
        data=("reddit",),
        cases=_gaps,
        numbers=_NUMBERS,
        curves=_CURVES,
        panels="{graph}, {estimator}",
        lines="{setting}",
        note="The paper does not name the sampler of this figure; LADIES is that of its others.",
    ),
    "large-batch": Experiment(
        title="Size B' of large-batch snapshots without restarts, LADIES",
        data=("reddit",),
        cases=_snapshot_sizes,
        numbers=_NUMBERS,
        curves=_CURVES,
        panels="{graph}, {estimator}",
        lines="{setting}",
        note="On graphs other than Reddit's, B' is the share of the training nodes that the "
        "paper's sizes are of Reddit's. The paper does not name the sampler of this figure.",
    ),
    "growing-gap": Experiment(
        title="Growing snapshot gap, SGCN++ with LADIES, without restarts",
        data=("ppi",),
        cases=_growing_gaps,
        numbers=("test_f1", "lowest_validation_loss", "snapshots", "training_seconds"),
        curves=_CURVES[1:],
        x="seconds",
        lines="{setting}",
        note="The paper does not name the sampler of this figure. The gap is the integer part of "
        "K + 0.1 s, so the two differ only after ten snapshots.",
    ),
    "batch-size": Experiment(
        title="Mini-batch size B, SGCN++ with LADIES, without restarts",
        data=("ppi-large",),
        cases=_batch_sizes,
        numbers=_NUMBERS,
        curves=_CURVES,
        lines="{setting}",
        note="The paper's snapshots have B' = 80,000 nodes, more than the graph: here they cover "
        "all of it. The paper does not name the sampler of this figure; LADIES keeps 512 draws in "
        "a layer.",
    ),
    "saint-batch-size": Experiment(
        title="Subgraph size of GraphSAINT",
        data=("reddit",),
        cases=_subgraph_sizes,
        numbers=("test_f1", "lowest_validation_loss", "training_seconds"),
        note="The paper does not state its sizes; 2,048 is its default.",
    ),
    "sgd-vs-adam": Experiment(
        title="SGD and Adam, LADIES",
        data=("ppi",),
        cases=_optimizers,
        numbers=_NUMBERS,
        curves=_CURVES,
        panels="{graph}, {setting}",
        note="Training stops when the validation loss has not come down for 200 steps. At the "
        "paper's budget SGD may take 100 times the epochs of Adam, as in the paper.",
    ),
}
