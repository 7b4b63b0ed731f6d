"""What an experiment is: cases to run, numbers to read off the runs, and a figure of them.

`case` has the settings of the paper's section on experiments, as configurations of `sgcn train`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sgcn.estimators import make_estimator
from sgcn.experiments.data import Dataset, paper
from sgcn.runs.layout import read_events

#: What a run does: train; train and measure memory or times; train and measure gradients.
TRAIN, MEMORY, TIMES, PROBE = "train", "memory", "times", "probe"
BATCHES = 10  # in an epoch
T = TypeVar("T")


class Row(NamedTuple):
    """A sampler of the paper: its name there, its options, and what its estimators are here."""

    title: str
    options: dict[str, Any]
    estimators: dict[str, str]


_ALL = {"sgcn": "sgcn", "sgcn+": "sgcn+", "sgcn++": "sgcn++"}
#: The paper's rows. `full` samples nothing.
ROWS: dict[str, Row] = {
    "exact": Row("Exact", {"name": "exact"}, {"sgcn": "sgcn", "sgcn++": "first"}),
    "vrgcn": Row("VRGCN", {"name": "vrgcn", "sizes": 2}, {"sgcn+": "vrgcn", "sgcn++": "vrgcn++"}),
    "neighbor": Row("GraphSAGE", {"name": "neighbor", "sizes": 5}, _ALL),
    "fastgcn": Row("FastGCN", {"name": "fastgcn", "sizes": 4096}, _ALL),
    "ladies": Row("LADIES", {"name": "ladies", "sizes": 512}, _ALL),
    "saint": Row("GraphSAINT", {"name": "saint", "size": 2048}, _ALL),
    "full": Row("full batch", {"name": "neighbor"}, {"full": "full"}),
}


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
    kinds: tuple[str, ...] = (TRAIN,)  # the first one trains

    @property
    def words(self) -> str:
        words = (self.data.label, self.sampler, self.estimator, self.setting)
        return " ".join(filter(None, words))

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
        names = {"graph": self.data.title, "sampler": ROWS[self.sampler].title}
        return form.format(**self.columns | names).strip()


def case(
    plan: Plan, data: Dataset, sampler: str, estimator: str, /, setting: str = "",
    kinds: tuple[str, ...] = (TRAIN,), **changes: Mapping[str, Any],
) -> Case:  # fmt: skip
    """A row of the paper on ``data``, with ``changes`` to the sections of its configuration."""
    values: dict[str, Any] = {
        "model": {"layers": 2, "widths": plan.width, "activation": "elu", "head": True},
        "sampler": ROWS[sampler].options,
        "estimator": {"name": ROWS[sampler].estimators[estimator]},
        "optimizer": {"name": "adam", "lr": 0.01},
        "training": {
            "epochs": plan.epochs,
            "batches_per_epoch": BATCHES,
            "batch_size": 2048 if sampler == "saint" else 512,
            "preaggregate": False,
            "average": 0.0,
            "patience": None,
            "evaluate_every": BATCHES,
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
    plan: Plan, data: Dataset, samplers: Iterable[str], of: Sequence[str] = (),
    settings: Mapping[str, dict[str, Any]] | None = None, **options: Any,
) -> list[Case]:  # fmt: skip
    """The rows of ``samplers``: all of the paper's, or those ``of`` these estimators.

    Each in all ``settings``: what is changed, by its words.
    """
    return [
        case(plan, data, sampler, estimator, words, **options | changes)
        for sampler in samplers
        for estimator in of or ROWS[sampler].estimators
        for words, changes in (settings or {"": {}}).items()
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
    def summary(self) -> dict[str, dict[str, float]]:
        """Of the training run."""
        summary: dict[str, dict[str, float]] = self.results[self.case.kinds[0]]["summary"]
        return summary

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The events of the training run: ``step`` or ``score``."""
        return [event for event in self._events if event["event"] == kind]

    @functools.cached_property
    def _events(self) -> list[dict[str, Any]]:
        return read_events(self.folders[self.case.kinds[0]])


def grouped(runs: Iterable[Run], key: Callable[[Run], T]) -> dict[T, list[Run]]:
    """The runs of each key together, in the order in which they come."""
    groups: dict[T, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def by_case(runs: Iterable[Run]) -> list[list[Run]]:
    return list(grouped(runs, lambda run: id(run.case)).values())


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

    def paper(self, case: Case, quantity: str) -> list[float | None]:
        """The paper's mean and spread of a quantity, of the dataset that a stand-in stands for."""
        dataset = case.data.paper
        known = () if dataset is None else self.reference(dataset, case, quantity)
        return [*known, None, None][:2]
