"""What an experiment is: cases to run, numbers to read off the runs, and a figure of them.

`case` has the settings of the paper's section on experiments, as configurations of `sgcn train`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgcn.estimators import make_estimator
from sgcn.experiments.data import Dataset, paper
from sgcn.runs.layout import read_events

#: What a run does: train; train and measure memory or times; train and measure gradients.
TRAIN, MEMORY, TIMES, PROBE = "train", "memory", "times", "probe"
BATCHES = 10  # in an epoch

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
_SAMPLERS: dict[str, dict[str, Any]] = {
    "exact": {"name": "exact"},
    "vrgcn": {"name": "vrgcn", "sizes": 2},
    "neighbor": {"name": "neighbor", "sizes": 5},
    "fastgcn": {"name": "fastgcn", "sizes": 4096},
    "ladies": {"name": "ladies", "sizes": 512},
    "saint": {"name": "saint", "size": 2048},
    "full": {"name": "neighbor"},
}
#: Rows whose estimator has another name here.
_OURS = {
    ("exact", "sgcn++"): "first",
    ("vrgcn", "sgcn+"): "vrgcn",
    ("vrgcn", "sgcn++"): "vrgcn++",
}
#: How the paper names samplers.
TITLES = {
    "exact": "Exact", "vrgcn": "VRGCN", "neighbor": "GraphSAGE", "fastgcn": "FastGCN",
    "ladies": "LADIES", "saint": "GraphSAINT", "full": "full batch",
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """How much is done. `quick` shows that everything works; `paper` has the paper's settings."""

    budget: str
    epochs: int
    width: int
    runs: int
    probes: int
    samplers: tuple[str, ...]
    restart: str = "norm"  # the rule of the paper's algorithms; its text names `gradient` as well

    @property
    def quick(self) -> bool:
        return self.budget == "quick"


PLANS = {
    "quick": Plan("quick", 10, 64, 2, 4, ("neighbor", "ladies", "full")),
    "paper": Plan("paper", 200, 256, 3, 16, tuple(ROWS)),
}


@dataclass(frozen=True)
class Case:
    """A configuration on a graph, trained once for each seed: one line of a table or figure."""

    data: Dataset
    sampler: str
    estimator: str  # as the paper names it: the row `vrgcn, sgcn++` has an estimator of its own
    values: dict[str, Any]  # of `make_config`, without the seed
    setting: str = ""  # what is varied beside the two, in words
    kinds: tuple[str, ...] = (TRAIN,)

    @property
    def words(self) -> str:
        words = (self.data.label, self.sampler, self.estimator, self.setting)
        return " ".join(word for word in words if word)

    @property
    def columns(self) -> dict[str, str]:
        """How it is called in tables."""
        return {
            "data": self.data.label,
            "comparison": self.data.note,
            "sampler": self.sampler,
            "estimator": self.estimator,
            "setting": self.setting,
        }

    def label(self, form: str) -> str:
        """How it is called in figures: ``form`` has {graph}, {sampler}, {estimator}, {setting}."""
        names = {"graph": self.data.title, "sampler": TITLES[self.sampler]}
        return form.format(**self.columns | names).strip()


def case(
    plan: Plan, data: Dataset, sampler: str, estimator: str, /, setting: str = "",
    kinds: tuple[str, ...] = (TRAIN,), **changes: Mapping[str, Any],
) -> Case:  # fmt: skip
    """A row of the paper on ``data``, with ``changes`` to the sections of its configuration."""
    values: dict[str, Any] = {
        "task": {},
        "model": {"layers": 2, "widths": plan.width, "activation": "elu", "head": True},
        "sampler": _SAMPLERS[sampler],
        "estimator": {"name": _OURS.get((sampler, estimator), estimator)},
        "optimizer": {"name": "adam", "lr": 0.01},
        "training": {
            "epochs": plan.epochs,
            "batches_per_epoch": BATCHES,
            "batch_size": 2048 if sampler == "saint" else 512,
            "preaggregate": False,
            "average": 0.0,
        },
    }
    values = {section: options | changes.get(section, {}) for section, options in values.items()}
    chosen = values["estimator"]
    if sampler != "full" and make_estimator(chosen["name"]).takes_snapshots:
        # K = 10, restarts, and large batches where the paper has them.
        schedule = {"gap": 10, "restart": plan.restart}
        if chosen.get("restart", plan.restart) == "norm":
            schedule |= {"alpha": 1.1, "beta": 1.1}
        share = paper()["snapshot_share"].get(data.paper)
        schedule |= {} if share is None else {"snapshot_nodes": share}
        values["estimator"] = schedule | chosen
    return Case(data, sampler, estimator, {"data": data.source, **values}, setting, kinds)


def rows(
    plan: Plan, data: Dataset, samplers: Iterable[str], of: Sequence[str] = (), **options: Any
) -> list[Case]:
    """The rows of ``samplers``: all of the paper's, or those ``of`` these estimators."""
    return [
        case(plan, data, sampler, estimator, **options)
        for sampler in samplers
        for estimator in of or ROWS[sampler]
    ]


@dataclass(frozen=True)
class Run:
    """A case with a seed, done: what each kind of run left, by kind."""

    case: Case
    seed: int
    results: dict[str, dict[str, Any]]
    folders: dict[str, Path]

    @property
    def failed(self) -> str | None:
        """Why training broke off, if it did."""
        return next((r["failed"] for r in self.results.values() if r["failed"]), None)

    @property
    def epochs(self) -> int:
        return int(self.case.values["training"]["epochs"])

    @property
    def restart(self) -> str | None:
        """What calls an early snapshot; None where the paper has no snapshots."""
        rule: str | None = self.case.values["estimator"].get("restart")
        return rule

    @property
    def summary(self) -> dict[str, dict[str, float]]:
        """Of the training run."""
        found = next(result for kind, result in self.results.items() if kind != PROBE)
        summary: dict[str, dict[str, float]] = found["summary"]
        return summary

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of the training run: ``step`` or ``score``."""
        return [event for event in self._events if event["event"] == kind]

    @functools.cached_property
    def _events(self) -> list[dict[str, Any]]:
        return read_events(next(self.folders[kind] for kind in self.folders if kind != PROBE))


def by_case(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each case together, in the order of the cases."""
    groups: dict[int, list[Run]] = {}
    for run in runs:
        groups.setdefault(id(run.case), []).append(run)
    return list(groups.values())


#: The paper's mean and spread of a quantity in a case, for the named dataset.
Reference = Callable[[str, Case, str], Sequence[float]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    title: str
    data: tuple[str, ...]  # the paper's
    cases: Callable[[Plan, Dataset], list[Case]]
    numbers: tuple[str, ...]  # one for each run, see `measures.NUMBERS`
    curves: tuple[str, ...] = ()  # many for each run, see `measures.CURVES`
    #: The figure shows the curves against ``x``, a row of axes for each of ``panels``, a line for
    #: each of ``lines`` (forms of `Case.label`); without curves it shows the numbers.
    x: str = "step"
    panels: str = "{graph}"
    lines: str = "{estimator}"
    reference: Reference = lambda dataset, case, quantity: ()
    note: str = ""  # what a reader must know to compare with the paper


def paper_of(experiment: Experiment, case: Case, quantity: str) -> Sequence[float]:
    """The paper's mean and spread of a quantity; of the dataset that a stand-in stands for."""
    dataset = case.data.paper
    return () if dataset is None else experiment.reference(dataset, case, quantity)
