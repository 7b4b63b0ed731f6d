"""The experiments of the paper: what is run, which numbers are told, and what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from sgcn.experiments.claims import Claim, added_computing, corrected, less_lost, settings
from sgcn.experiments.core import (
    MEMORY,
    OURS,
    PROBE,
    ROWS,
    TIMES,
    TRAIN,
    Case,
    Experiment,
    Plan,
    default_row,
    rows,
)
from sgcn.experiments.data import PAPER_DATA, Dataset, paper
from sgcn.experiments.measures import PARTS, SIZES

_CURVES = ("training_loss", "validation_loss", "validation_f1")
_NUMBERS = ("test_f1", "final_training_loss", "lowest_validation_loss", "cpu_seconds")
_BOTH = ("sgcn", "sgcn++")
_NEVER = {"restart": "never"}
_RELATIVE = (
    "relative to the exact one, |g - G|² / |G|², and a number for a run is the geometric mean over "
    "its steps; the paper's is absolute."
)


def _paper_f1(dataset: str, case: Case, quantity: str) -> Sequence[float]:
    if quantity != "test_f1":
        return ()
    row: dict[str, Sequence[float]] = paper()["f1"][case.sampler].get(case.estimator, {})
    return row.get(dataset, ())


def _paper_seconds(dataset: str, case: Case, quantity: str) -> Sequence[float]:
    found = paper()["seconds"][case.estimator].get(quantity)
    return () if found is None else [found[dataset]]


def _all_rows(plan: Plan, data: Dataset) -> list[Case]:
    """The paper's, ours on samplers that have all of the paper's, and what `sgcn train` does."""
    made = []
    for sampler in plan.samplers:
        ours = OURS if len(ROWS[sampler].estimators) == 3 else ()
        made += rows(plan, data, [sampler], [*ROWS[sampler].estimators, *ours])
        made += [default_row(plan, data)] if sampler == "neighbor" else []
    return made


def _sampled(plan: Plan) -> list[str]:
    return [sampler for sampler in plan.samplers if sampler != "full"]


def _short(plan: Plan) -> dict[str, int]:
    """The paper shows 200 steps, and a time for each step is the same after 20 epochs."""
    return {"epochs": min(plan.epochs, 20)}


def _weighed(plan: Plan, data: Dataset) -> list[Case]:
    epochs = {"epochs": min(plan.epochs, 3)}  # memory is that of its largest step
    samplers = ("ladies",) if plan.quick else ("neighbor", "ladies", "saint")
    return rows(plan, data, samplers, _BOTH, kinds=(MEMORY,), training=epochs)


def _first_and_last(plan: Plan, data: Dataset) -> list[Case]:
    """The first and the last row of each sampler: for VRGCN, SGCN+ is the plain one."""
    return [rows(plan, data, [sampler])[at] for sampler in _sampled(plan) for at in (0, -1)]


def _first_steps(plan: Plan, data: Dataset) -> list[Case]:
    samplers = ("neighbor",) if plan.quick else ("neighbor", "fastgcn", "ladies", "saint")
    return rows(plan, data, samplers, kinds=(TRAIN, PROBE), training=_short(plan))


def _gaps(plan: Plan, data: Dataset) -> list[Case]:
    gaps = (5, 20) if plan.quick else (5, 10, 15, 20)
    settings = {f"K={k}": {"estimator": _NEVER | {"gap": k + plan.how.extra}} for k in gaps}
    return rows(plan, data, ["ladies"], ("sgcn++", "sgcn+"), settings)


def _growing_gaps(plan: Plan, data: Dataset) -> list[Case]:
    k, growth = (5, 0.5) if plan.quick else (10, 0.1)  # ten snapshots come late in a quick run
    growths = {f"K={k}": 0.0, f"K={k}+{growth}s": growth}
    schedule = _NEVER | {"gap": k + plan.how.extra}
    settings = {words: {"estimator": schedule | {"growth": g}} for words, g in growths.items()}
    return rows(plan, data, ["ladies"], ["sgcn++"], settings)


_REDDIT_TRAINING_NODES = 153_000  # about; on other graphs B' is the same share of theirs


def _snapshot_sizes(plan: Plan, data: Dataset) -> list[Case]:
    counted = data.paper == "reddit" and not plan.quick
    nodes: dict[str, float] = {}
    for size in (20_000, 80_000) if plan.quick else (20_000, 40_000, 60_000, 80_000):
        share = round(size / _REDDIT_TRAINING_NODES, 2)
        nodes |= {f"B'={size // 1000}k": size} if counted else {f"B'={share:.0%}": share}
    settings = {words: {"estimator": _NEVER | {"snapshot_nodes": b}} for words, b in nodes.items()}
    return rows(plan, data, ["ladies"], ("sgcn++", "sgcn+"), settings)


def _batch_sizes(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (256, 2048) if plan.quick else (256, 512, 1024, 2048)
    settings = {f"B={size}": {"training": {"batch_size": size}} for size in sizes}
    return rows(plan, data, ["ladies"], ["sgcn++"], settings, estimator=_NEVER)


def _subgraph_sizes(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (512, 2048) if plan.quick else (512, 1024, 2048, 4096)
    settings = {
        f"B={size}": {"sampler": {"size": size}, "training": {"batch_size": size}}
        for size in sizes
    }  # fmt: skip
    return rows(plan, data, ["saint"], _BOTH, settings)


def _optimizers(plan: Plan, data: Dataset) -> list[Case]:
    """SGD needs a hundred times the steps: both stop by patience, not by a number of epochs."""
    longer = 100 if plan.epochs >= 200 else 1
    adam = plan.how.lr
    rates = {f"Adam {adam}": ("adam", adam, 1), "SGD 0.1": ("sgd", 0.1, longer)}
    settings = {
        words: {"optimizer": {"name": name, "lr": lr}, "task": {"best_by": "loss"},
                "training": {"patience": 200, "epochs": more * plan.epochs}}
        for words, (name, lr, more) in rates.items()
    }  # fmt: skip
    return sorted(rows(plan, data, ["ladies"], _BOTH, settings), key=lambda one: one.setting)


#: By their names on the command line: title, the paper's data, cases, numbers and curves.
# fmt: off
EXPERIMENTS: dict[str, Experiment] = {
    "f1-table": Experiment(
        "F1 of every sampler with every estimator", PAPER_DATA,
        _all_rows, ("test_f1", "cpu_seconds", "snapshots", "best_validation_f1", "lr"),
        reference=_paper_f1,
        claim=Claim(
            "SGCN++ has a higher test F1 than the plain row of every sampler",
            corrected("test_f1", 1.0), "points of F1",
        ),
        note="The paper has no `anchored`, `anchored++` and `default`, which are ours. `anchored` "
        "has the snapshots of SGCN++, `anchored++` those of its own schedule. `default` is `sgcn "
        "train` without options but for width and steps: anchored++ with Muon, P X computed once, "
        "the average of weights, the best validation F1; nothing is tried beforehand. Ours have "
        "the samplers' own weights and no bias. Seconds are the processor's, without looks at the "
        "validation nodes in between.",
    ),
    "time-table": Experiment(
        "Seconds of LADIES in five parts", PAPER_DATA,
        lambda plan, data: rows(
            plan, data, ["ladies"], _BOTH, kinds=(TIMES,), training=_short(plan)
        ),
        (*PARTS, "total"),
        reference=_paper_seconds,
        claim=Claim(
            "the computing that snapshots add is little beside the sampling of mini-batches",
            added_computing, "seconds of sampling over those of added computing",
        ),
        note="Ten regular steps, and for SGCN++ one snapshot before them. Transfer is the reading "
        "of history rows: no device is involved, and rows of features are read inside the "
        "products, which is computing. A snapshot of the whole graph samples nothing. The paper's "
        "times are of an Intel i9-10850K with an RTX 3090: compare the shares, not the seconds.",
    ),
    "decomposition": Experiment(
        "Doubly variance reduction, LADIES", ("flickr",),
        lambda plan, data: rows(plan, data, ["ladies"], kinds=(TRAIN, PROBE)),
        ("final_training_loss", "lowest_validation_loss", "gradient_mse"),
        ("training_loss", "validation_loss", "gradient_mse"),
        claim=Claim(
            "SGCN++ has a smaller error of the gradient than SGCN",
            corrected("gradient_mse", -1.0, share=True), "% of the error less",
        ),
        note=f"The error of the gradient is {_RELATIVE}",
    ),
    "convergence": Experiment(
        "Validation loss of SGCN and SGCN++", PAPER_DATA, _first_and_last,
        ("lowest_validation_loss", "best_validation_f1"), ("validation_loss",),
        claim=Claim(
            "SGCN++ reaches a lower validation loss than the plain row of every sampler",
            corrected("lowest_validation_loss", -1.0), "less loss",
        ),
        panels="{graph}, {sampler}",
    ),
    "gradient-mse": Experiment(
        "Error of the stochastic gradient in the first steps", ("reddit",), _first_steps,
        ("gradient_mse", "final_training_loss"), ("gradient_mse", "training_loss"),
        claim=Claim(
            "SGCN++ has a smaller error of the gradient than SGCN with every sampler",
            corrected("gradient_mse", -1.0, share=True), "% of the error less",
        ),
        panels="{graph}, {sampler}",
        note=f"The error is {_RELATIVE}",
    ),
    "memory": Experiment(
        "Memory of SGCN and SGCN++", ("flickr", "ppi"), _weighed, SIZES,
        claim=Claim(
            "SGCN++ takes hardly more memory than SGCN (here: less than a tenth more)",
            corrected("peak_rss_mb", 1.0, share=True), "% of the peak more", 10.0,
        ),
        note="Every run has a process of its own. RSS counts the program and the graph too; the "
        "tables are the history of SGCN++. The paper's figure has the memory of a GPU: `device mb` "
        "is empty where there is none.",
    ),
    "wall-clock": Experiment(
        "Losses against seconds of training", ("reddit", "ppi-large"),
        lambda plan, data: rows(plan, data, _sampled(plan)),
        ("cpu_seconds", "final_training_loss", "lowest_validation_loss"),
        ("training_loss", "validation_loss"),
        claim=Claim(
            "SGCN++ reaches a lower validation loss than SGCN, if in more seconds",
            corrected("lowest_validation_loss", -1.0), "less loss",
        ),
        x="seconds", panels="{graph}, {sampler}",
        note="Seconds are the processor's, snapshots included; looks at the validation nodes in "
        "between are left out. Several --jobs compete for the machine's memory: take one for "
        "seconds that count.",
    ),
    "snapshot-gap": Experiment(
        "Snapshot gap K without restarts, LADIES", ("reddit",), _gaps, _NUMBERS, _CURVES,
        claim=Claim(
            "a smaller gap gives a higher F1", settings("test_f1", -1.0),
            "points of F1 at the smallest gap over the largest",
        ),
        panels="{graph}, {estimator}", lines="{setting}",
        note="The paper does not name the sampler of this figure; LADIES is that of its others.",
    ),
    "large-batch": Experiment(
        "Size B' of large-batch snapshots without restarts, LADIES", ("reddit",), _snapshot_sizes,
        _NUMBERS, _CURVES, panels="{graph}, {estimator}", lines="{setting}",
        claim=Claim(
            None, settings("test_f1", 1.0), "points of F1 of the largest snapshots over the least"
        ),
        note="On graphs other than Reddit's, B' is the share of the training nodes that the "
        "paper's sizes are of Reddit's. The paper does not name the sampler of this figure.",
    ),
    "growing-gap": Experiment(
        "Growing snapshot gap, SGCN++ with LADIES, without restarts", ("ppi",), _growing_gaps,
        ("test_f1", "lowest_validation_loss", "snapshots", "cpu_seconds"), _CURVES[1:],
        claim=Claim(
            "a growing gap saves little time (here: less than a tenth)",
            settings("cpu_seconds", -1.0, share=True), "% of the time less", 10.0,
        ),
        x="seconds", lines="{setting}",
        note="The paper does not name the sampler of this figure. The gap is the integer part of "
        "K + 0.1 s, so the two differ only after ten snapshots.",
    ),
    "batch-size": Experiment(
        "Mini-batch size B, SGCN++ with LADIES, without restarts", ("ppi-large",), _batch_sizes,
        _NUMBERS, _CURVES, lines="{setting}",
        claim=Claim(
            None, settings("test_f1", 1.0), "points of F1 of the largest batches over the smallest"
        ),
        note="The paper's snapshots have B' = 80,000 nodes, more than the graph: here they cover "
        "all of it. The paper does not name the sampler of this figure; LADIES keeps 512 draws in "
        "a layer.",
    ),
    "saint-batch-size": Experiment(
        "Subgraph size of GraphSAINT", ("reddit",), _subgraph_sizes,
        ("test_f1", "lowest_validation_loss", "cpu_seconds"),
        claim=Claim(
            "SGCN++ can do with smaller mini-batches than SGCN", less_lost,
            "points of F1 that it loses less from the largest size to the smallest",
        ),
        note="The paper does not state its sizes; 2,048 is its default.",
    ),
    "sgd-vs-adam": Experiment(
        "SGD and Adam, LADIES", ("ppi",), _optimizers, _NUMBERS, _CURVES,
        claim=Claim(
            "training with Adam ends far above SGD", settings("test_f1", -1.0), "points of F1"
        ),
        panels="{graph}, {setting}",
        note="Both keep their learning rates under every reading but for Adam's 0.01 as printed or "
        "0.001 as in the code. Training stops when the validation loss has not come down for 200 "
        "steps. At the paper's budget SGD may take 100 times the epochs of Adam, as in the paper.",
    ),
}
