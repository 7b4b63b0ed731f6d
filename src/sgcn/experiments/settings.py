"""The settings of the paper's section on experiments, as configurations of `sgcn train`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgcn.estimators import make_estimator
from sgcn.experiments.core import TRAIN, Case, Plan
from sgcn.experiments.data import Dataset, paper

SAMPLERS: dict[str, dict[str, Any]] = {
    "exact": {},
    "vrgcn": {"sizes": 2},
    "neighbor": {"sizes": 5},
    "fastgcn": {"sizes": 4096},
    "ladies": {"sizes": 512},
    "saint": {"size": 2048},
}
#: The paper's rows: estimators of each sampler. `full` samples nothing.
ROWS: dict[str, tuple[str, ...]] = {
    "exact": ("sgcn", "sgcn++"),
    "vrgcn": ("sgcn+", "sgcn++"),
    "neighbor": ("sgcn", "sgcn+", "sgcn++"),
    "fastgcn": ("sgcn", "sgcn+", "sgcn++"),
    "ladies": ("sgcn", "sgcn+", "sgcn++"),
    "saint": ("sgcn", "sgcn+", "sgcn++"),
    "full": ("full",),
}
#: Rows whose estimator has another name here.
_OURS = {
    ("exact", "sgcn++"): "first",
    ("vrgcn", "sgcn+"): "vrgcn",
    ("vrgcn", "sgcn++"): "vrgcn++",
}
BATCHES = 10  # in an epoch


def case(
    plan: Plan,
    data: Dataset,
    sampler: str,
    estimator: str,
    *,
    setting: str = "",
    at: float | None = None,
    kinds: tuple[str, ...] = (TRAIN,),
    epochs: int | None = None,
    batch_size: int | None = None,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    **schedule: Any,
) -> Case:
    """A row of the paper on ``data``.

    ``schedule`` changes options of estimators with snapshots, ``changes`` those of other sections.
    """
    values: dict[str, Any] = {
        "data": data.source,
        "model": {"layers": 2, "widths": plan.width, "activation": "elu", "head": True},
        "sampler": {"name": "neighbor"},
        "estimator": {"name": _OURS.get((sampler, estimator), estimator)},
        "optimizer": {"name": "adam", "lr": 0.01},
        "training": {
            "epochs": epochs or plan.epochs,
            "batches_per_epoch": BATCHES,
            "batch_size": batch_size or (2048 if sampler == "saint" else 512),
            "preaggregate": False,
            "average": 0.0,
        },
    }
    if sampler != "full":
        values["sampler"] = {"name": sampler, **SAMPLERS[sampler]}
        if make_estimator(values["estimator"]["name"]).takes_snapshots:
            values["estimator"] |= _schedule(data, {"restart": plan.restart} | schedule)
    for section, options in (changes or {}).items():
        values[section] = values[section] | options
    return Case(data, sampler, estimator, values, setting, at, kinds)


def _schedule(data: Dataset, changes: Mapping[str, Any]) -> dict[str, Any]:
    """K = 10, restarts, and large batches where the paper has them."""
    schedule: dict[str, Any] = {"gap": 10, "restart": changes["restart"]}
    if changes["restart"] == "norm":
        schedule |= {"alpha": 1.1, "beta": 1.1}
    share = paper()["snapshot_share"].get(data.paper)
    return schedule | ({} if share is None else {"snapshot_nodes": share}) | changes
