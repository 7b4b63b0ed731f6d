"""What an experiment is: cases to run, numbers to read off the runs, and a figure of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgcn.experiments.data import Dataset
from sgcn.runs.layout import read_events

#: What a run does: train; train and measure memory or times; train and measure gradients.
TRAIN, MEMORY, TIMES, PROBE = "train", "memory", "times", "probe"


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
    "paper": Plan(
        "paper", 200, 256, 3, 16,
        ("exact", "vrgcn", "neighbor", "fastgcn", "ladies", "saint", "full"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A configuration on a graph, trained once for each seed: one line of a table or figure."""

    data: Dataset
    sampler: str
    estimator: str  # as the paper names it: the row `vrgcn, sgcn++` has an estimator of its own
    values: dict[str, Any]  # of `make_config`, without the seed
    setting: str = ""  # what is varied beside the two, in words
    at: float | None = None  # and as a number, where it is one
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

    @functools.cached_property
    def events(self) -> list[dict[str, Any]]:
        folder = next(self.folders[kind] for kind in self.folders if kind != PROBE)
        return read_events(folder)


#: The paper's mean and spread of a quantity in a case, for the named dataset.
Reference = Callable[[str, Case, str], Sequence[float] | None]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    title: str
    data: tuple[str, ...]  # the paper's
    cases: Callable[[Plan, Dataset], list[Case]]
    numbers: tuple[str, ...]  # one for each run, see `measures.NUMBERS`
    draw: Callable[[Sequence[Run]], Any]  # a matplotlib figure
    curves: tuple[str, ...] = ()  # many for each run, see `measures.CURVES`
    reference: Reference = field(default=lambda dataset, case, quantity: None)
    note: str = ""  # what a reader must know to compare with the paper
