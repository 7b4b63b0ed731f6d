"""Options of samplers and estimators: declared, checked, listed and read from text in one place."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from sgcn.errors import SgcnError

Check = Callable[[Any], bool]


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a value must be: a test, and the words for it."""

    words: str
    test: Check


def whole(least: int = 1) -> Rule:
    return Rule(f"a whole number >= {least}", lambda v: _is_whole(v) and v >= least)


def real(least: float, *, open_: bool = False) -> Rule:
    words = f"a number > {least:g}" if open_ else f"a number >= {least:g}"
    return Rule(words, lambda v: _is_real(v) and (v > least if open_ else v >= least))


def between(least: float, most: float) -> Rule:
    words = f"a number from {least:g} to {most:g}"
    return Rule(words, lambda v: _is_real(v) and least <= v <= most)


def flag() -> Rule:
    return Rule("true or false", lambda v: isinstance(v, bool))


def one_of(*names: str) -> Rule:
    return Rule("one of " + ", ".join(names), lambda v: isinstance(v, str) and v in names)


def per_layer() -> Rule:
    """One size for every layer, or a tuple with one size a layer (layer 1 first)."""
    return Rule(
        "a whole number >= 1, or one such number a layer",
        lambda v: (
            (_is_whole(v) and v >= 1)
            or (isinstance(v, tuple) and len(v) > 0 and all(_is_whole(s) and s >= 1 for s in v))
        ),
    )


def share() -> Rule:
    return Rule("a number from 0 to below 1", lambda v: _is_real(v) and 0.0 <= v < 1.0)


def optional(rule: Rule) -> Rule:
    return Rule(f"{rule.words}, or none", lambda v: v is None or rule.test(v))


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def option(default: Any, rule: Rule, help: str) -> Any:
    """A dataclass field that knows its rule and its help text."""
    return dataclasses.field(default=default, metadata={"rule": rule, "help": help})


@dataclasses.dataclass(frozen=True)
class Options:
    """Base of everything configurable: frozen, and checked as soon as it is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, rule = getattr(self, field.name), field.metadata["rule"]
            if isinstance(value, list):  # TOML and JSON have lists where we hold tuples
                value = tuple(value)
                object.__setattr__(self, field.name, value)
            if not rule.test(value):
                raise SgcnError(
                    f"{type(self).__name__.removesuffix('Options').lower()}: {field.name} is "
                    f"{value!r}, "
                    f"expected {rule.words}"
                )

    @classmethod
    def described(cls) -> list[tuple[str, Any, str, str]]:
        """(name, default, what it must be, help) of every option."""
        return [
            (f.name, f.default, f.metadata["rule"].words, f.metadata["help"])
            for f in dataclasses.fields(cls)
        ]


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` when some known name is close, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def known_name(kind: str, name: str, known: Iterable[str]) -> str:
    """``name`` itself, if it is one of the ``known`` ones."""
    known = list(known)
    if name not in known:
        raise SgcnError(
            f"{kind} is {name!r}, expected one of {', '.join(known)}{nearest(name, known)}"
        )
    return name


def build(
    kind: str, registry: Mapping[str, type[Any]], name: str, values: Mapping[str, Any]
) -> Any:
    """An instance of ``registry[name]`` with ``values``; unknown names get the nearest known."""
    known_name(kind, name, registry)
    known = [f.name for f in dataclasses.fields(registry[name])]
    for key in values:
        if key not in known:
            raise SgcnError(
                f"{name} has no option {key!r}, expected one of "
                f"{', '.join(known) or 'none'}{nearest(key, known)}"
            )
    return registry[name](**values)


def parse_value(text: str) -> Any:
    """What a user typed: a TOML value, or else a plain word."""
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Options from ``key=value`` texts."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SgcnError(f"--set got {text!r}, expected key=value")
        values[key.strip()] = parse_value(value)
    return values


def page(name: str, summary: str, kind: type[Options]) -> str:
    """A name, its summary and its options, for people to read."""
    lines = [f"{name}: {summary}"]
    for option, default, words, help in kind.described():
        shown = str(default).lower() if isinstance(default, bool | None) else default
        lines.append(f"  {f'{option} = {shown}':<26}{help}")
        lines.append(f"  {'':<26}{words}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "  (no options)"])
