"""The configuration of a run: its data and its `Training`, as one TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgcn.errors import SgcnError
from sgcn.options import parse_value
from sgcn.training.options import Auto, ModelOptions, Training, check_table, full_name

#: Options that `auto` leaves to trials (see `sgcn.runs.choosing`).
DECIDABLE = (
    "model.layer", "optimizer.name", "model.dropout", "optimizer.lr", "model.layers",
    "sampler.name", "estimator.name",
)  # fmt: skip
#: Those that have no value for it.
_NAMELESS = ("optimizer.lr", "sampler.name", "estimator.name")


@dataclass(frozen=True)
class Config:
    """Everything that decides a run."""

    data: str
    training: Training
    asked: tuple[str, ...] = ()  # options that are `auto`, beside the layer

    @property
    def auto(self) -> tuple[str, ...]:
        """What short trials decide before training."""
        model, sampler = self.training.model, self.training.sampler
        optimizer = self.training.optimizer
        free = optimizer.open and optimizer.lr is None
        usual = {
            "model.layer": isinstance(model.layer, Auto),
            "optimizer.name": free,
            "optimizer.lr": free,
            "model.dropout": model.dropout == "auto",
            # The recipe of a deep model gives all of these.
            "model.layers": free and (model, sampler) == (ModelOptions(), Training().sampler),
        }
        return tuple(key for key in DECIDABLE if usual.get(key) or key in self.asked)

    def to_toml(self) -> str:
        lines = [f"data = {toml_value(self.data)}"]
        for section, values in self.training.tables().items():
            lines += ["", f"[{section}]"]
            lines += [f"{key} = {toml_value(value)}" for key, value in values.items()]
        return "\n".join(lines) + "\n"


def make_config(values: Mapping[str, Any]) -> Config:
    """A checked configuration from nested ``values``; what is missing takes its default."""
    tables = {key: value for key, value in values.items() if key != "data"}
    auto = []
    for option in _NAMELESS:
        section, _, name = option.partition(".")
        table = tables.get(section, {})
        if isinstance(table, Mapping) and table.get(name) == "auto":
            if name == "name" and len(table) > 1:
                raise SgcnError(
                    f"{section}.name is auto beside {', '.join(k for k in table if k != name)}, "
                    f"expected no options of one {section}: leave them out, or name it"
                )
            tables[section] = {key: value for key, value in table.items() if key != name}
            auto.append(option)
    training = Training.of(tables)
    if not isinstance(values.get("data"), str):
        raise SgcnError("the configuration names no data, expected data = NAME, directory or .npz")
    return Config(values["data"], training, tuple(auto))


def read_toml(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise SgcnError(f"{path} does not exist, expected a TOML file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SgcnError(f"{path} is not a TOML file that can be read ({error})") from None


def assign(values: dict[str, Any], assignments: Iterable[str]) -> None:
    """Apply ``section.key=value`` texts; a value is TOML, or else a plain word."""
    for text in assignments:
        key, equals, value = text.partition("=")
        section, dot, name = key.strip().partition(".")
        if not equals or not dot or not name:
            meant = None if dot else full_name(section)
            hint = f"did you mean {meant}{equals}{value}?" if meant else "like sampler.sizes=10"
            raise SgcnError(f"--set got {text!r}, expected section.key=value, {hint}")
        table = values.setdefault(section, {})
        check_table(section, table)
        table[name] = parse_value(value)


def toml_value(value: Any) -> str:
    """The value of an option as TOML has it, which has no null."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, int | float):
        return repr(value)
    raise SgcnError(
        f"{value!r} is a {type(value).__name__}, which no file can hold, expected its name: "
        "functions are for fit"
    )
