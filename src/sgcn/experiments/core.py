"""What an experiment is: cases to run, numbers to read off the runs, and a figure of them.

`case` has the settings of the paper's section on experiments, as configurations of `sgcn train`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sgcn.estimators import make_estimator
from sgcn.experiments.data import Dataset, paper

if TYPE_CHECKING:
    from sgcn.experiments.claims import Claim

#: What a run does: train; train and measure memory or times; train and measure gradients.
TRAIN, MEMORY, TIMES, PROBE = "train", "memory", "times", "probe"
BATCHES = 10  # sampled steps in an epoch
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


#: Corrections of ours, on the samplers whose blocks all rules can correct.
OURS = ("anchored", "anchored++")
#: `sgcn train` without options, but for width and steps.
DEFAULT = "default"


Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Reading:
    """How the settings of the paper are understood; ``words`` are for every page."""

    words: str
    lr: float
    extra: int = 0  # steps that an epoch with a snapshot has beside the sampled ones
    sections: Sections = field(default_factory=dict)  # of every row
    theirs: Sections = field(default_factory=dict)  # of the paper's rows
    rates: tuple[float, ...] = ()  # learning rates that every row chooses from


_CODE = Reading(
    "as the authors' code has it: Adam with learning rate 0.001, features standardised by training "
    "nodes, a snapshot and ten sampled steps an epoch, the weights of the lowest validation loss, "
    "rows of samples scaled to sum 1, layers with a bias",
    0.001, 1, {"graph": {"features": "standard"}, "task": {"best_by": "loss"}},
    {"sampler": {"weighting": "row"}, "model": {"bias": True}},
)  # fmt: skip
READINGS = {
    "code": _CODE,
    "text": Reading(
        "as the paper prints it: Adam with learning rate 0.01, a snapshot in every ten steps; what "
        "it leaves open is as in `sgcn train`", 0.01,
    ),
    "best": replace(
        _CODE, rates=(0.001, 0.003, 0.01, 0.03),
        words="as `code`, but every row has the learning rate of 0.001, 0.003, 0.01 and 0.03 that "
        "gave it the lowest validation loss with seed 0",
    ),
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
    reading: str = "code"

    @property
    def quick(self) -> bool:
        return self.budget == "quick"

    @property
    def how(self) -> Reading:
        return READINGS[self.reading]


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
    rates: tuple[float, ...] = ()  # learning rates to choose from, by the first seed

    def at(self, lr: float) -> Case:
        """With this learning rate, and no more choice."""
        optimizer = self.values["optimizer"] | {"lr": lr}
        return replace(self, values=self.values | {"optimizer": optimizer}, rates=())

    @property
    def words(self) -> str:
        words = (self.data.label, self.sampler, self.estimator, self.setting)
        return " ".join(filter(None, words))

    @property
    def place(self) -> str:
        return f"{self.data.label} {self.sampler}"

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
    """A row on ``data``, with ``changes`` to the sections of its configuration."""
    how, name = plan.how, ROWS[sampler].estimators.get(estimator, estimator)
    snapshots = sampler != "full" and make_estimator(name).takes_snapshots
    per_epoch = BATCHES + (how.extra if snapshots else 0)
    values: dict[str, Any] = {
        "task": {},
        "model": {"layers": 2, "widths": plan.width, "activation": "elu", "head": True},
        "sampler": ROWS[sampler].options,
        "estimator": {"name": name},
        "optimizer": {"name": "adam", "lr": how.lr},
        "training": {
            "epochs": plan.epochs,
            "batches_per_epoch": per_epoch,
            "batch_size": 2048 if sampler == "saint" else 512,
            "preaggregate": False,
            "average": 0.0,
            "patience": None,
            "evaluate_every": per_epoch,
        },
    }
    for sections in (how.sections, {} if estimator in OURS else how.theirs, changes):
        for section, options in sections.items():
            values[section] = values.get(section, {}) | dict(options)
    if sampler in ("exact", "full"):  # nothing is drawn that could be weighted
        values["sampler"] = ROWS[sampler].options
    chosen = values["estimator"]
    if snapshots:
        # Large batches where the paper has them; K = 10 and restarts but in `anchored++`.
        share = paper()["snapshot_share"].get(data.paper)
        usual: dict[str, Any] = {} if share is None else {"snapshot_nodes": share}
        if name != "anchored++":
            usual |= {"gap": BATCHES + how.extra, "restart": plan.restart}
            if chosen.get("restart", plan.restart) == "norm":
                usual |= {"alpha": 1.1, "beta": 1.1}
        values["estimator"] = usual | chosen
    rates = () if "optimizer" in changes else how.rates
    return Case(data, sampler, estimator, {"data": data.source, **values}, setting, kinds, rates)


def default_row(plan: Plan, data: Dataset) -> Case:
    """`sgcn train` without options, at the width and the steps of the others: nothing is tried."""
    steps = BATCHES + plan.how.extra
    values = {
        "data": data.source,
        "model": {"widths": plan.width, "dropout": 0.0},
        "sampler": {"name": "neighbor"},
        "estimator": {"name": "anchored++"},
        "optimizer": {"name": "muon"},
        "training": {
            "epochs": plan.epochs, "batches_per_epoch": steps, "patience": None,
            "evaluate_every": steps,
        },
    }  # fmt: skip
    return Case(data, "neighbor", DEFAULT, values)


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

    @property
    def failed(self) -> str | None:
        """Why training broke off, if it did."""
        return next((r["failed"] for r in self.results.values() if r["failed"]), None)

    @property
    def epochs(self) -> int:
        return int(self.case.values["training"]["epochs"])

    @property
    def trained(self) -> dict[str, Any]:
        """What the training run left."""
        return self.results[self.case.kinds[0]]


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
    claim: Claim = field(kw_only=True)  # of the paper
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
