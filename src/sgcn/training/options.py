"""`Training`: everything that decides a run, each option declared once.

From its fields come the TOML file, ``--set section.key=value``, the flags of the command line, the
keywords of `fit` and the table of options in docs/training.md. A new option is one line here.

Nothing heavy is imported before a value is made: ``sgcn --help`` reads the flags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

from sgcn.errors import SgcnError
from sgcn.options import (
    Options,
    Rule,
    auto_or,
    choice,
    flag,
    integer,
    known_name,
    name_in,
    nearest,
    one_of,
    option,
    optional,
    per_layer,
    real,
    share,
)
from sgcn.training.optimizers import OPTIMIZERS, Kind
from sgcn.training.optimizers import Auto as AutoOptimizer
from sgcn.training.rates import RATES, Rate

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from sgcn.estimators import Estimator
    from sgcn.graph import Graph
    from sgcn.samplers import Sampler
    from sgcn.task import Task


@dataclass(frozen=True)
class Auto(Options):
    """A kind of layer that the labels decide."""


class _Layers(Mapping[str, type[Options]]):
    """``auto`` and the layers of `sgcn.nn`, which is imported when they are asked for."""

    def _all(self) -> dict[str, type[Options]]:
        from sgcn.nn import LAYERS

        return {"auto": Auto, **LAYERS}

    def __getitem__(self, name: str) -> type[Options]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _activations() -> tuple[str, ...]:
    from sgcn.nn import ACTIVATIONS

    return tuple(ACTIVATIONS)


@dataclass(frozen=True)
class GraphOptions(Options):
    """[graph]"""

    normalization: str | None = option(
        None, optional(one_of("sym", "row")), "propagation matrix P; none: the graph's own, or sym"
    )
    self_loops: bool | None = option(
        None, optional(flag()), "P is made of A + I; none: the graph's own, or true"
    )
    features: str = option(
        "auto", one_of("auto", "raw", "unit", "standard"),
        "unit: rows of length 1; standard: columns by mean and deviation of training nodes; auto: "
        "unit for bags of words, else standard",
    )  # fmt: skip


def _losses() -> tuple[str, ...]:
    from sgcn.task import LOSSES

    return ("auto", *LOSSES)


def _metrics() -> tuple[str, ...]:
    from sgcn.metrics import METRICS

    return tuple(METRICS)


def _named_or_function(rule: Rule) -> Rule:
    """A name, or in `fit` a function."""
    return Rule(
        lambda: f"{rule.words}, or in fit a function",
        lambda v: (callable(v) and not isinstance(v, type)) or rule.test(v),
        rule.names,
    )


def _class_weights(value: Any) -> bool:
    numbers = isinstance(value, tuple) and len(value) > 0 and all(map(real(0.0).test, value))
    return value == "balanced" or (numbers and max(value) < float("inf"))


@dataclass(frozen=True)
class TaskOptions(Options):
    """[task]"""

    loss: Any = option(
        "auto",
        _named_or_function(name_in(_losses)),
        "of a node; auto: cross_entropy for classes, bce for sets of labels, mse for numbers",
    )
    class_weight: str | tuple[float, ...] | None = option(
        None,
        optional(Rule("balanced, or a number >= 0 a class", _class_weights)),
        "what a node counts, by its class; balanced: every class the same in all",
    )
    label_smoothing: float = option(
        0.0, share(), "share of the target spread over all classes (cross_entropy and bce)"
    )
    metrics: Any = option(
        "auto",
        Rule(
            lambda: f"auto, or some of {', '.join(_metrics())}, or in fit functions",
            lambda v: (
                v == "auto"
                or (isinstance(v, tuple) and all(isinstance(m, str) or callable(m) for m in v))
            ),
        ),
        "what is scored beside the loss; auto: f1_micro, or mae and r2 for numbers",
    )
    best_by: str = option(
        "auto",
        Rule("auto, loss or the name of a metric", lambda v: isinstance(v, str)),
        "what the best weights are best in; auto: the first of metrics, for numbers the loss",
    )

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str) and self.metrics != "auto":
            names = tuple(name.strip() for name in self.metrics.split(","))
            object.__setattr__(self, "metrics", names)
        elif callable(self.metrics):
            object.__setattr__(self, "metrics", (self.metrics,))
        weights: Any = self.class_weight
        if hasattr(weights, "tolist"):  # an array or a tensor
            object.__setattr__(self, "class_weight", weights.tolist())
        super().__post_init__()

    def on(self, graph: Graph) -> Task:
        """The task that this makes of the labels of ``graph``."""
        from sgcn.task import Task

        return Task.of(graph, **self.values())


@dataclass(frozen=True)
class ModelOptions(Options):
    """[model]"""

    layer: Options = choice(
        _Layers(), "auto", "kind of layer; auto: mean or concat, by a short trial of both"
    )
    layers: int | str = option(
        "auto", auto_or(integer()),
        "graph layers L; auto: 2, or the preset deep if a short trial finds it better",
        flag="--layers",
    )  # fmt: skip
    widths: int | tuple[int, ...] = option(
        128, per_layer(), "width of the layers; concat layers are twice as wide", flag="--widths"
    )
    activation: str = option("elu", name_in(_activations), "after every layer")
    bias: bool = option(False, flag(), "layers have a bias, which lags in history tables")
    head: bool = option(True, flag(), "a dense layer after the graph layers gives the logits")
    dropout: float | str = option(
        "auto", auto_or(share()),
        "share of inputs dropped, the same in both passes; auto: 0 or 0.5, by a short trial",
        flag="--dropout",
    )  # fmt: skip
    norm: str = option("none", one_of("none", "layer"), "of every row before the activation")
    residual: bool = option(False, flag(), "layers add the node's own row to what they give")
    jump: str = option("none", one_of("none", "cat", "max"), "the head reads all layers, joined so")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.widths, tuple) and self.layers == "auto":
            object.__setattr__(self, "layers", len(self.widths))
        if isinstance(self.widths, tuple) and len(self.widths) != self.layers:
            raise SgcnError(
                f"model.widths has {len(self.widths)} entries, expected one number or one for each "
                f"of the {self.layers} layers"
            )

    @property
    def depth(self) -> int:
        return 2 if isinstance(self.layers, str) else self.layers


@dataclass(frozen=True)
class OptimizerOptions(Options):
    """[optimizer]"""

    name: Kind = choice(
        OPTIMIZERS, "auto", "of torch.optim; auto: muon, or adam if a short trial finds it better"
    )
    lr: float | None = option(
        None, optional(real(0.0, open_=True)),
        "learning rate; none: 0.02 for muon, else 0.01, or by a short trial 0.3 of it where no "
        "optimiser is named; auto: by that trial for any optimiser",
        flag="--lr",
    )  # fmt: skip
    schedule: Rate = choice(RATES, "constant", "course of the learning rate over the run")
    lr_warmup: int = option(0, integer(0), "steps in which the learning rate rises from 0")
    clip: float | None = option(
        None, optional(real(0.0, open_=True)), "largest norm of a gradient; longer ones are cut"
    )

    @property
    def open(self) -> bool:
        """Whether a trial may choose another optimiser: no option of one is set."""
        return self.name == AutoOptimizer()

    @property
    def rate(self) -> float:
        return self.name.usual_lr if self.lr is None else self.lr

    def make(self, parameters: Iterable[Tensor]) -> Optimizer:
        return self.name.make(parameters, self.rate)

    def factor(self, step: int, steps: int, cuts: int) -> float:
        """What the learning rate is multiplied by at ``step`` of ``steps``, after ``cuts``."""
        risen = min(1.0, (step + 1) / (self.lr_warmup + 1))
        return risen * self.schedule.factor(step / max(steps, 1), step, cuts)


@dataclass(frozen=True, kw_only=True)
class LoopOptions(Options):
    """[training]"""

    epochs: int | None = option(
        None, optional(integer()), "passes over the training nodes at most; none: any number",
        flag="--epochs",
    )  # fmt: skip
    steps: int | None = option(
        None, optional(integer()), "steps at most; none: as many as epochs say, or else 6000",
        flag="--steps",
    )  # fmt: skip
    patience: int | None = option(
        500, optional(integer()), "stop after so many steps without a better score; none: never"
    )
    batch_size: int = option(512, integer(), "seeds of a batch", flag="--batch-size")
    batches_per_epoch: int | None = option(
        None, optional(integer()), "batches in an epoch; none: one pass over the training nodes"
    )
    seed: int = option(
        0, integer(0), "of batches, samples, masks and weights (in Python: make_model(seed=))",
        flag="--seed",
    )  # fmt: skip
    threads: int = option(1, integer(0), "threads that sample ahead; 0: none")
    inductive: bool = option(False, flag(), "train on the graph of the training nodes alone")
    preaggregate: bool | None = option(
        None, optional(flag()), "compute P X once: layer 1 needs no sampling; none: if it pays"
    )
    average: float = option(
        0.98, share(), "decay of the moving average of weights that is scored and kept; 0: none"
    )
    evaluate_every: int | None = option(
        None, optional(integer()),
        "steps between scores, where no snapshot gives one; none: by the cost of a score",
    )  # fmt: skip
    probe_every: int | None = option(
        None, optional(integer()), "steps between looks at the gradient's error; none: no looks"
    )
    checkpoint_seconds: float = option(30.0, real(0.0), "least time between two checkpoints")

    @classmethod
    def title(cls) -> str:
        return "training"

    def budget(self, steps_per_epoch: int) -> int:
        """The most steps of a run."""
        by_epochs = None if self.epochs is None else self.epochs * steps_per_epoch
        limits = [limit for limit in (by_epochs, self.steps) if limit is not None]
        return min(limits, default=_STEPS)


#: The most steps of a run that is not told how many.
_STEPS = 6000


@dataclass(frozen=True)
class Named:
    """A section whose options depend on a name: the default name, the flag and its help."""

    default: str
    help: str
    flag: str


_SAMPLER = Named("neighbor", "how batches are drawn (sgcn samplers lists them)", "--sampler")
_ESTIMATOR = Named("anchored++", "how embeddings and gradients are corrected", "--estimator")
#: The sections by their name in files, and what holds them: options, or a name with options.
SECTIONS: dict[str, type[Options] | Named] = {
    "graph": GraphOptions,
    "task": TaskOptions,
    "model": ModelOptions,
    "sampler": _SAMPLER,
    "estimator": _ESTIMATOR,
    "optimizer": OptimizerOptions,
    "training": LoopOptions,
}

#: Known recipes: values that stand in for the defaults of options.
PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "gcn": {
        "model": {"layer": "mean", "activation": "relu", "dropout": 0.5},
        "optimizer": {"name": "adam", "weight_decay": 5e-4},
    },
    "sage": {"model": {"layer": "concat", "activation": "relu", "dropout": 0.5}},
    "deep": {
        "model": {"layer": "concat", "layers": 6, "widths": 64, "dropout": 0.1},
        "sampler": {"name": "neighbor", "sizes": 2},
        "optimizer": {"name": "adam", "lr": 0.005},
    },
}


def _sampler(name: str = _SAMPLER.default, **options: Any) -> Sampler:
    from sgcn.samplers import make_sampler

    return make_sampler(name, **options)


def _estimator(name: str = _ESTIMATOR.default, **options: Any) -> Estimator:
    from sgcn.estimators import make_estimator

    return make_estimator(name, **options)


@dataclass(frozen=True)
class Training:
    """What decides a run, besides its data: seven sections, checked when they are made.

    ``graph`` and ``model`` say how the graph is opened and the model made; `fit`, which is given
    both, reads the others. An estimator without a name gets that of the closest one.
    """

    graph: GraphOptions = field(default_factory=GraphOptions)
    task: TaskOptions = field(default_factory=TaskOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    sampler: Sampler = field(default_factory=_sampler)
    estimator: Estimator = field(default_factory=_estimator)
    optimizer: OptimizerOptions = field(default_factory=OptimizerOptions)
    loop: LoopOptions = field(default_factory=LoopOptions)
    estimator_name: str = ""

    def __post_init__(self) -> None:
        from sgcn.estimators import Estimator
        from sgcn.samplers import Sampler

        for name, kind, words in (
            ("graph", GraphOptions, "GraphOptions"),
            ("task", TaskOptions, "TaskOptions"),
            ("model", ModelOptions, "ModelOptions"),
            ("sampler", Sampler, "what make_sampler returns"),
            ("estimator", Estimator, "what make_estimator returns"),
            ("optimizer", OptimizerOptions, "OptimizerOptions"),
            ("loop", LoopOptions, "LoopOptions"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise SgcnError(f"{name} is {getattr(self, name)!r}, expected {words}")
        if not self.estimator_name:
            object.__setattr__(self, "estimator_name", _closest_name(self.estimator))

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Self:
        """From tables of flat options, one for each section; what is missing has its default.

        ``preset`` names a recipe of `PRESETS`, whose values stand in for defaults.
        """
        tables = dict(tables)
        preset = tables.pop("preset", None)
        recipe = {} if preset is None else PRESETS[known_name("preset", preset, PRESETS)]
        for section, table in tables.items():
            if section not in SECTIONS:
                raise SgcnError(
                    f"the configuration has a key {section!r}, expected one of data, preset, "
                    f"{', '.join(SECTIONS)}{nearest(section, SECTIONS)}"
                )
            check_table(section, table)
        for section, values in recipe.items():
            given = tables.get(section, {})
            # Options of one sampler or optimiser mean nothing to another.
            if "name" not in values or given.get("name", values["name"]) == values["name"]:
                tables[section] = values | given
        estimator = {"name": _ESTIMATOR.default, **tables.get("estimator", {})}
        return cls(
            graph=GraphOptions.of(tables.get("graph", {})),
            task=TaskOptions.of(tables.get("task", {})),
            model=ModelOptions.of(tables.get("model", {})),
            sampler=_sampler(**tables.get("sampler", {})),
            estimator=_estimator(**estimator),
            estimator_name=estimator["name"],
            optimizer=OptimizerOptions.of(tables.get("optimizer", {})),
            loop=LoopOptions.of(tables.get("training", {})),
        )

    def tables(self) -> dict[str, dict[str, Any]]:
        """The tables that `of` makes this of, defaults included."""
        return {
            "graph": self.graph.values(),
            "task": self.task.values(),
            "model": self.model.values(),
            "sampler": {"name": self.sampler.name, **self.sampler.values()},
            "estimator": {"name": self.estimator_name, **self.estimator.values()},
            "optimizer": self.optimizer.values(),
            "training": self.loop.values(),
        }

    def changed(self, **keywords: Any) -> Self:
        """With other values for some `keywords`, as `fit` takes them.

        ``sampler``, ``estimator`` and ``optimizer`` are names or objects.
        """
        known = keywords_of_fit()
        for key in keywords:
            if key not in known:
                hint = _home(key) or nearest(key, known) or ", docs/training.md lists them all"
                raise SgcnError(f"fit has no option {key!r}{hint}")
        made: dict[str, Any] = {}
        sampler, estimator = keywords.pop("sampler", None), keywords.pop("estimator", None)
        if sampler is not None:
            made["sampler"] = _sampler(sampler) if isinstance(sampler, str) else sampler
        if isinstance(estimator, str):
            made |= {"estimator": _estimator(estimator), "estimator_name": estimator}
        elif estimator is not None:
            made |= {"estimator": estimator, "estimator_name": ""}
        chosen = keywords.pop("optimizer", self.optimizer)
        keys = {row[0] for row in OptimizerOptions.listed()} & keywords.keys()
        own = {key: keywords.pop(key) for key in keys}
        if isinstance(chosen, OptimizerOptions):
            left = chosen.values()
            if "schedule" in own:  # options of another course mean nothing to this one
                left = {k: v for k, v in left.items() if k not in chosen.schedule.values()}
            made["optimizer"] = OptimizerOptions.of(left | own)
        else:  # options of another optimiser mean nothing to this one
            kept = {key: value for key, value in self.optimizer.values().items()
                    if key not in self.optimizer.name.values()}  # fmt: skip
            made["optimizer"] = OptimizerOptions.of(kept | {"name": chosen} | own)
        task = {key: keywords.pop(key) for key in self.task.values() if key in keywords}
        made["task"] = replace(self.task, **task)
        return replace(self, **made, loop=replace(self.loop, **keywords))


def check_table(section: str, table: Any) -> None:
    """Make sure that what a file or a flag puts under ``section`` is a table."""
    if not isinstance(table, Mapping):
        raise SgcnError(f"{section} is {table!r}, expected a table of options")


def keywords_of_fit() -> dict[str, Any]:
    """The keywords of `fit` that decide a run, with their defaults."""
    names = {"sampler": _SAMPLER.default, "estimator": _ESTIMATOR.default}
    optimizer, *others = OptimizerOptions.listed()
    others += [*TaskOptions.listed(), *LoopOptions.listed()]
    for name, default, *_ in (("optimizer", *optimizer[1:]), *others):
        names.setdefault(name, default)  # optimisers may share an option with another default
    return names


def option_names(slow: bool = False) -> Iterator[tuple[str, str]]:
    """Every option with its section; ``slow``: those of samplers, estimators and layers too."""
    for section, kind in SECTIONS.items():
        if not isinstance(kind, Named):
            own = [part.name for part in fields(kind)]  # what can be chosen may need torch
            names = [row[0] for row in kind.listed()] if slow else own
        elif slow:
            from sgcn.estimators import Estimator
            from sgcn.samplers import SAMPLERS

            kinds = SAMPLERS.values() if section == "sampler" else [Estimator]
            names = [row[0] for each in kinds for row in each.listed()]
        else:
            continue
        yield from ((name, section) for name in names)


def full_name(key: str) -> str | None:
    """``section.key`` of an option that is called ``key``."""
    found = ((name, section) for slow in (False, True) for name, section in option_names(slow))
    return next((f"{section}.{name}" for name, section in found if name == key), None)


def _home(key: str) -> str:
    """Where Python has the option ``key``, which is none of `fit`."""
    section = "preset" if key == "preset" else (full_name(key) or "").partition(".")[0]
    homes = {
        "preset": "training=Training.of({'preset': ..})",
        "graph": "the graph: data.load(name, scale=..), graph.with_propagation(..)",
        "model": f"the model: make_model(.., {key}=..)",
        "sampler": f"the sampler: sampler=make_sampler(name, {key}=..)",
        "estimator": f"the estimator: estimator=make_estimator(name, {key}=..)",
    }
    return f", which belongs to {homes[section]}" if section in homes else ""


@dataclass(frozen=True)
class Flag:
    """An option that the command line has by a name of its own."""

    name: str
    section: str
    key: str
    default: Any
    help: str

    @property
    def attribute(self) -> str:
        """Where argparse puts it."""
        return self.name.removeprefix("--").replace("-", "_")


def flags() -> Iterator[Flag]:
    """The flags that fields say they have."""
    for section, kind in SECTIONS.items():
        if isinstance(kind, Named):
            yield Flag(kind.flag, section, "name", kind.default, kind.help)
            continue
        for part in fields(kind):
            name = part.metadata.get("flag")
            if name is not None:
                yield Flag(name, section, part.name, part.default, part.metadata["help"])


def _closest_name(estimator: Estimator) -> str:
    """The name of the estimator with the fewest other values."""
    from sgcn.estimators import ESTIMATORS

    values = estimator.values().items()
    return max(ESTIMATORS, key=lambda name: len(values & _estimator(name).values().items()))
