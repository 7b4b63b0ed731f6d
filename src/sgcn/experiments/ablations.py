"""What one setting changes: snapshot gap and size, batch size, subgraph size, optimiser."""

from __future__ import annotations

from functools import partial

from sgcn.experiments.core import Case, Experiment, Plan
from sgcn.experiments.data import Dataset
from sgcn.experiments.figures import against, curves, graph_and_estimator, setting
from sgcn.experiments.settings import BATCHES, case

_CURVES = ("training_loss", "validation_loss", "validation_f1")
_NUMBERS = ("test_f1", "final_training_loss", "lowest_validation_loss", "training_seconds")


# -- snapshots --------------------------------------------------------------------------------


def _gaps(plan: Plan, data: Dataset) -> list[Case]:
    gaps = (5, 20) if plan.quick else (5, 10, 15, 20)
    return [
        case(plan, data, "ladies", kind, setting=f"K={gap}", at=gap, gap=gap, restart="never")
        for kind in ("sgcn++", "sgcn+")
        for gap in gaps
    ]


SNAPSHOT_GAP = Experiment(
    title="Snapshot gap K without restarts, LADIES",
    data=("reddit",),
    cases=_gaps,
    numbers=_NUMBERS,
    draw=partial(curves, quantities=_CURVES, series=setting, row=graph_and_estimator),
    curves=_CURVES,
    note="The paper does not name the sampler of this figure; LADIES is that of its others.",
)


def _growing_gaps(plan: Plan, data: Dataset) -> list[Case]:
    gap, growth = (5, 0.5) if plan.quick else (10, 0.1)  # ten snapshots come late in a quick run
    return [
        case(plan, data, "ladies", "sgcn++", setting=words, gap=gap, growth=g, restart="never")
        for words, g in ((f"K={gap}", 0.0), (f"K={gap}+{growth}s", growth))
    ]


GROWING_GAP = Experiment(
    title="Growing snapshot gap, SGCN++ with LADIES, without restarts",
    data=("ppi",),
    cases=_growing_gaps,
    numbers=("test_f1", "lowest_validation_loss", "snapshots", "training_seconds"),
    draw=partial(curves, quantities=_CURVES[1:], series=setting, x="seconds"),
    curves=_CURVES[1:],
    note="The paper does not name the sampler of this figure. The gap is the integer part of "
    "K + 0.1 s, so the two differ only after ten snapshots.",
)

_SNAPSHOT_SIZES = (20_000, 40_000, 60_000, 80_000)
_REDDIT_TRAINING_NODES = 153_000  # about; on other graphs B' is the same share of theirs


def _snapshot_sizes(plan: Plan, data: Dataset) -> list[Case]:
    counted = data.paper == "reddit" and not plan.quick
    settings: dict[str, float] = {}
    for size in _SNAPSHOT_SIZES[:: 3 if plan.quick else 1]:
        share = round(size / _REDDIT_TRAINING_NODES, 2)
        settings |= {f"B'={size // 1000}k": size} if counted else {f"B'={share:.0%}": share}
    return [
        case(
            plan, data, "ladies", kind, setting=words, at=nodes, restart="never",
            snapshot_nodes=nodes,
        )
        for kind in ("sgcn++", "sgcn+")
        for words, nodes in settings.items()
    ]  # fmt: skip


LARGE_BATCH = Experiment(
    title="Size B' of large-batch snapshots without restarts, LADIES",
    data=("reddit",),
    cases=_snapshot_sizes,
    numbers=_NUMBERS,
    draw=partial(curves, quantities=_CURVES, series=setting, row=graph_and_estimator),
    curves=_CURVES,
    note="On graphs other than Reddit's, B' is the share of the training nodes that the paper's "
    "sizes are of Reddit's. The paper does not name the sampler of this figure.",
)


# -- batches ----------------------------------------------------------------------------------


def _batch_sizes(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (256, 2048) if plan.quick else (256, 512, 1024, 2048)
    return [
        case(
            plan, data, "ladies", "sgcn++", setting=f"B={size}", at=size, batch_size=size,
            restart="never",
        )
        for size in sizes
    ]  # fmt: skip


BATCH_SIZE = Experiment(
    title="Mini-batch size B, SGCN++ with LADIES, without restarts",
    data=("ppi-large",),
    cases=_batch_sizes,
    numbers=_NUMBERS,
    draw=partial(curves, quantities=_CURVES, series=setting),
    curves=_CURVES,
    note="The paper's snapshots have B' = 80,000 nodes, more than the graph: here they cover all "
    "of it. The paper does not name the sampler of this figure; LADIES keeps 512 draws in a layer.",
)


def _subgraph_sizes(plan: Plan, data: Dataset) -> list[Case]:
    sizes = (512, 2048) if plan.quick else (512, 1024, 2048, 4096)
    return [
        case(
            plan, data, "saint", kind, setting=f"B={size}", at=size, batch_size=size,
            changes={"sampler": {"size": size}},
        )
        for kind in ("sgcn", "sgcn++")
        for size in sizes
    ]  # fmt: skip


SAINT_BATCH_SIZE = Experiment(
    title="Subgraph size of GraphSAINT",
    data=("reddit",),
    cases=_subgraph_sizes,
    numbers=("test_f1", "lowest_validation_loss", "training_seconds"),
    draw=partial(
        against,
        quantities={"lowest_validation_loss": "lowest validation loss", "test_f1": "test F1 (%)"},
        x="nodes drawn for a subgraph",
    ),
    note="The paper does not state its sizes; 2,048 is its default.",
)


# -- the optimiser ----------------------------------------------------------------------------

_PATIENCE = 200  # steps without a lower validation loss


def _optimizers(plan: Plan, data: Dataset) -> list[Case]:
    """SGD needs a hundred times the steps: both stop by patience, not by a number of epochs."""
    longer = 100 if plan.epochs >= 200 else 1
    rates = {"Adam 0.01": ("adam", 0.01, 1), "SGD 0.1": ("sgd", 0.1, longer)}
    patience = {"patience": _PATIENCE // BATCHES, "best_by": "loss"}
    return [
        case(
            plan, data, "ladies", kind, setting=words, epochs=more * plan.epochs,
            changes={"optimizer": {"name": name, "lr": lr}, "training": patience},
        )
        for words, (name, lr, more) in rates.items()
        for kind in ("sgcn", "sgcn++")
    ]  # fmt: skip


SGD_VS_ADAM = Experiment(
    title="SGD and Adam, LADIES",
    data=("ppi",),
    cases=_optimizers,
    numbers=_NUMBERS,
    draw=partial(
        curves,
        quantities=_CURVES,
        row=lambda run: f"{run.case.data.title}, {run.case.setting}",
    ),
    curves=_CURVES,
    note="Training stops when the validation loss has not come down for 200 steps. At the paper's "
    "budget SGD may take 100 times the epochs of Adam, as in the paper.",
)
