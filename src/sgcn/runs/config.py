"""The configuration of a run: one TOML file, with the names of the command line and of Python."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sgcn.errors import SgcnError
from sgcn.estimators import Estimator, make_estimator
from sgcn.nn import ACTIVATIONS, LAYERS
from sgcn.options import (
    Options,
    flag,
    integer,
    nearest,
    one_of,
    option,
    optional,
    parse_value,
    per_layer,
    real,
    share,
)
from sgcn.samplers import Sampler, make_sampler


@dataclass(frozen=True)
class GraphOptions(Options):
    """[graph]"""

    normalization: str | None = option(
        None, optional(one_of("sym", "row")), "propagation matrix P; none: the graph's own, or sym"
    )
    self_loops: bool | None = option(
        None, optional(flag()), "P is made of A + I; none: the graph's own, or true"
    )
    unit_rows: bool | None = option(
        None, optional(flag()), "scale feature rows to length 1; none: if they are sparse"
    )


@dataclass(frozen=True)
class ModelOptions(Options):
    """[model]"""

    layer: str = option(
        "auto", one_of("auto", *LAYERS), "kind of layer; auto: mean, or concat for multi-label"
    )
    layers: int = option(2, integer(), "graph layers L")
    widths: int | tuple[int, ...] = option(128, per_layer(), "width of the layers")
    activation: str = option("elu", one_of(*ACTIVATIONS), "after every layer")
    bias: bool = option(False, flag(), "layers have a bias, which lags in history tables")
    head: bool = option(True, flag(), "a dense layer after the graph layers gives the logits")
    dropout: float = option(0.0, share(), "share of inputs dropped, the same in both passes")


@dataclass(frozen=True)
class OptimizerOptions(Options):
    """[optimizer]"""

    name: str = option("adam", one_of("adam", "adamw", "sgd", "rmsprop", "adagrad"), "torch.optim")
    lr: float = option(0.01, real(0.0, open_=True), "learning rate")
    weight_decay: float = option(0.0, real(0.0), "L2 penalty")
    momentum: float = option(0.0, real(0.0), "momentum (sgd and rmsprop)")


@dataclass(frozen=True)
class TrainingOptions(Options):
    """[training]"""

    epochs: int = option(10, integer(), "passes over the training nodes")
    batch_size: int = option(512, integer(), "seeds of a batch")
    batches_per_epoch: int | None = option(
        None, optional(integer()), "batches in an epoch; none: one pass over the training nodes"
    )
    seed: int = option(0, integer(0), "of weights, batches and samples")
    threads: int = option(1, integer(0), "threads that sample ahead")
    inductive: bool = option(False, flag(), "train on the graph of the training nodes alone")
    preaggregate: bool | None = option(
        None, optional(flag()), "compute P X once: layer 1 needs no sampling; none: if it can be"
    )
    average: float = option(
        0.98, share(), "decay of the moving average of weights that is scored and kept; 0: none"
    )
    evaluate_every: int = option(1, integer(), "epochs between scores, where no snapshot gives one")
    best_by: str = option("f1_micro", one_of("f1_micro", "loss"), "what the best model is best in")
    patience: int | None = option(
        None, optional(integer()), "stop after so many epochs without a better score"
    )
    probe_every: int | None = option(
        None, optional(integer()), "steps between looks at the gradient's error; none: no looks"
    )
    checkpoint_seconds: float = option(30.0, real(0.0), "least time between two checkpoints")


@dataclass(frozen=True)
class Config:
    """Everything that decides a run."""

    data: str
    graph: GraphOptions
    model: ModelOptions
    sampler: Sampler
    estimator: Estimator
    estimator_name: str
    optimizer: OptimizerOptions
    training: TrainingOptions

    def sections(self) -> dict[str, dict[str, Any]]:
        """The tables of the TOML file, defaults included."""
        return {
            "graph": asdict(self.graph),
            "model": asdict(self.model),
            "sampler": {"name": self.sampler.name, **asdict(self.sampler)},
            "estimator": {"name": self.estimator_name, **asdict(self.estimator)},
            "optimizer": asdict(self.optimizer),
            "training": asdict(self.training),
        }

    def to_toml(self) -> str:
        lines = [f"data = {_toml(self.data)}"]
        for section, values in self.sections().items():
            lines += ["", f"[{section}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in values.items()]
        return "\n".join(lines) + "\n"


#: The sampler and the estimator of a configuration that names none.
DEFAULT_NAMES = {"sampler": "neighbor", "estimator": "anchored++"}

_PLAIN: dict[str, type[Options]] = {
    "graph": GraphOptions,
    "model": ModelOptions,
    "optimizer": OptimizerOptions,
    "training": TrainingOptions,
}


def make_config(values: Mapping[str, Any]) -> Config:
    """A checked configuration from nested ``values``; what is missing takes its default."""
    sections = [*_PLAIN, "sampler", "estimator"]
    for key in values:
        if key not in ("data", *sections):
            raise SgcnError(
                f"the configuration has a key {key!r}, expected one of data, "
                f"{', '.join(sections)}{nearest(key, sections)}"
            )
    tables: dict[str, dict[str, Any]] = {}
    for section in sections:
        table = values.get(section, {})
        if not isinstance(table, Mapping):
            raise SgcnError(f"{section} is {table!r}, expected a table of options")
        tables[section] = {
            k: None if v == "none" and k != "restart" else v for k, v in table.items()
        }
    if not isinstance(values.get("data"), str):
        raise SgcnError("the configuration names no data, expected data = NAME, directory or .npz")
    made: dict[str, Any] = {}
    for section, kind in _PLAIN.items():
        known = [field.name for field in fields(kind)]
        for key in tables[section]:
            if key not in known:
                raise SgcnError(
                    f"[{section}] has no key {key!r}, expected one of {', '.join(known)}"
                    f"{nearest(key, known)}"
                )
        made[section] = kind(**tables[section])
    sampler, estimator = tables["sampler"], tables["estimator"]
    name = estimator.pop("name", DEFAULT_NAMES["estimator"])
    return Config(
        data=values["data"],
        sampler=make_sampler(sampler.pop("name", DEFAULT_NAMES["sampler"]), **sampler),
        estimator=make_estimator(name, **estimator),
        estimator_name=name,
        **made,
    )


def read_toml(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file."""
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise SgcnError(f"{path} does not exist, expected a TOML file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SgcnError(f"{path} is not a TOML file that can be read ({error})") from None


def put(values: dict[str, Any], assignments: Iterable[str]) -> None:
    """Apply ``section.key=value`` texts; a value is TOML, or else a plain word."""
    for text in assignments:
        key, equals, value = text.partition("=")
        section, dot, name = key.strip().partition(".")
        if not equals or not dot or not name:
            raise SgcnError(
                f"--set got {text!r}, expected section.key=value, like sampler.sizes=10"
            )
        table = values.setdefault(section, {})
        if not isinstance(table, dict):
            raise SgcnError(f"{section} is {table!r}, expected a table of options")
        table[name] = parse_value(value)


def _toml(value: Any) -> str:
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return repr(value)
