"""Options of samplers and estimators: declared, checked, listed and read from text in one place."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, Self

from sgcn.errors import SgcnError

Check = Callable[[Any], bool]


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a value must be: a test, and the words for it; and the names, where it is a name."""

    said: str | Callable[[], str]
    test: Check
    names: Callable[[], Collection[str]] = tuple

    @property
    def words(self) -> str:
        return self.said if isinstance(self.said, str) else self.said()


def integer(least: int = 1) -> Rule:
    return Rule(f"a whole number >= {least}", lambda v: is_integer(v) and v >= least)


def real(least: float, *, open_: bool = False) -> Rule:
    words = f"a number > {least:g}" if open_ else f"a number >= {least:g}"
    return Rule(words, lambda v: _is_real(v) and (v > least if open_ else v >= least))


def between(least: float, most: float) -> Rule:
    words = f"a number from {least:g} to {most:g}"
    return Rule(words, lambda v: _is_real(v) and least <= v <= most)


def flag() -> Rule:
    return Rule("true or false", lambda v: isinstance(v, bool))


def one_of(*names: str) -> Rule:
    return name_in(lambda: names)


def name_in(names: Callable[[], Collection[str]]) -> Rule:
    """One of names that are asked for when they are needed: a registry may be slow to import."""
    return Rule(
        lambda: "one of " + ", ".join(names()),
        lambda v: isinstance(v, str) and v in names(),
        names,
    )


def per_layer() -> Rule:
    """One size for every layer, or a tuple with one size a layer (layer 1 first)."""
    return Rule(
        "a whole number >= 1, or one such number a layer",
        lambda v: (
            (is_integer(v) and v >= 1)
            or (isinstance(v, tuple) and len(v) > 0 and all(is_integer(s) and s >= 1 for s in v))
        ),
    )


def share() -> Rule:
    return Rule("a number from 0 to below 1", lambda v: _is_real(v) and 0.0 <= v < 1.0)


def optional(rule: Rule) -> Rule:
    return Rule(
        lambda: f"{rule.words}, or none", lambda v: v is None or rule.test(v), rule.names
    )


def auto_or(rule: Rule) -> Rule:
    """``auto`` has what reads the option find a value."""
    return Rule(
        lambda: f"{rule.words}, or auto",
        lambda v: (isinstance(v, str) and v == "auto") or rule.test(v),
        rule.names,
    )


def is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """``value``, lists as tuples and NumPy's numbers as Python's, which files can have."""
    if isinstance(value, list | tuple):  # TOML and JSON have lists where we hold tuples
        return tuple(map(plain, value))
    return value.item() if getattr(value, "shape", None) == () else value


def option(default: Any, rule: Rule, help: str, *, flag: str | None = None) -> Any:
    """A dataclass field with its rule and its help text; ``flag`` if the command line has one."""
    return dataclasses.field(default=default, metadata={"rule": rule, "help": help, "flag": flag})


def choice(registry: Mapping[str, type[Options]], default: str, help: str) -> Any:
    """A field that holds one of several kinds of `Options`, chosen by name.

    In flat tables (TOML, ``--set``, keywords) the field's key holds the name, and the options
    of the chosen kind stand beside it: ``restart = "norm"``, ``alpha = 1.2``.
    """

    def names() -> Collection[str]:
        return tuple(registry)

    named = name_in(names)
    rule = Rule(named.said, lambda v: isinstance(v, tuple(registry.values())), names)
    metadata = {"rule": rule, "help": help, "registry": registry}
    return dataclasses.field(default=default, metadata=metadata)


def part(kind: type[Options], help: str) -> Any:
    """A field that holds `Options` of one kind, whose own options stand beside the others."""
    rule = Rule(f"a {kind.__name__}", lambda v: isinstance(v, kind))
    metadata = {"rule": rule, "help": help, "part": kind}
    return dataclasses.field(default_factory=kind, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Options:
    """Base of everything configurable: frozen, and checked as soon as it is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, rule = getattr(self, field.name), field.metadata["rule"]
            registry = field.metadata.get("registry")
            value = plain(value)
            if registry is not None and isinstance(value, str) and value in registry:
                value = registry[value]()
            elif value == "none" and rule.test(None) and not rule.test(value):  # TOML has no null
                value = None
            object.__setattr__(self, field.name, value)
            if not rule.test(value):
                close = nearest(value, rule.names()) if isinstance(value, str) else ""
                raise SgcnError(
                    f"{self.title()}: {field.name} is {value!r}, expected {rule.words}{close}"
                )

    @classmethod
    def title(cls) -> str:
        """What error messages call it."""
        return cls.__name__.removesuffix("Options").lower()

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From a flat table: its own options, and beside them those of its parts and choices."""
        left = dict(values)
        made = cls._take(left)
        for key in left:
            known = list(made.values())
            raise SgcnError(
                f"{cls.title()} has no option {key!r}{cls._homes(key)}, expected one of "
                f"{', '.join(known) or 'none'}{nearest(key, known)}"
            )
        return made

    @classmethod
    def _take(cls, left: dict[str, Any]) -> Self:
        """From what it knows of ``left``, which is taken out."""
        own: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            kind, registry = field.metadata.get("part"), field.metadata.get("registry", {})
            value = left.pop(field.name, kind or field.default)
            if isinstance(value, str) and value in registry:
                value = registry[value]
            if isinstance(value, type) and issubclass(value, Options):
                value = value._take(left)
            own[field.name] = value
        return cls(**own)

    @classmethod
    def _homes(cls, key: str) -> str:
        """Which other choices would have the option ``key``."""
        for field in dataclasses.fields(cls):
            if "part" in field.metadata and (home := field.metadata["part"]._homes(key)):
                return str(home)
            kinds = field.metadata.get("registry", {}).items()
            names = [n for n, kind in kinds if key in [f.name for f in dataclasses.fields(kind)]]
            if names:
                return f" (it belongs to {field.name} = {' or '.join(names)})"
        return ""

    def values(self) -> dict[str, Any]:
        """The flat table that `of` makes this of."""
        found: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if "registry" in field.metadata:
                kinds = field.metadata["registry"].items()
                found[field.name] = next(name for name, kind in kinds if type(value) is kind)
            if isinstance(value, Options):
                found |= value.values()
            else:
                found[field.name] = value
        return found

    def with_options(self, **options: Any) -> Self:
        """The same, some options of its flat table changed."""
        return type(self).of(self.values() | options)

    @classmethod
    def described(cls) -> list[tuple[str, Any, str, str]]:
        """(name, default, what it must be, help) of every option of its own."""
        return [
            (f.name, f.default, f.metadata["rule"].words, f.metadata["help"])
            for f in dataclasses.fields(cls)
        ]

    @classmethod
    def listed(cls) -> list[tuple[str, Any, str, str]]:
        """The keys of its flat table: `described`, with parts and all that can be chosen."""
        found = []
        rows = {row[0]: row for row in cls.described()}
        for field in dataclasses.fields(cls):
            if "part" in field.metadata:
                found += field.metadata["part"].listed()
                continue
            found += [rows[field.name]] if field.name in rows else []
            homes: dict[tuple[str, Any, str, str], list[str]] = {}  # kinds may share an option
            for name, kind in field.metadata.get("registry", {}).items():
                for row in kind.listed():
                    homes.setdefault(row, []).append(name)
            found += [
                (key, default, words, f"{field.name} = {' or '.join(names)}: {help}")
                for (key, default, words, help), names in homes.items()
            ]
        return found


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` when some known name is close, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check(name: str, value: Any, rule: Rule) -> Any:
    """The `plain` ``value``, if it keeps the ``rule``; ``name`` is what the user calls it."""
    value = plain(value)
    if not rule.test(value):
        raise SgcnError(f"{name} is {value!r}, expected {rule.words}")
    return value


def known_name(kind: str, name: str, known: Iterable[str]) -> str:
    """``name`` itself, if it is one of the ``known`` ones."""
    known = list(known)
    if name not in known:
        raise SgcnError(
            f"{kind} is {name!r}, expected one of {', '.join(known)}{nearest(str(name), known)}"
        )
    return name


def build(
    kind: str, registry: Mapping[str, type[Any]], name: str, values: Mapping[str, Any]
) -> Any:
    """An instance of ``registry[name]`` with ``values``; unknown names get the nearest known."""
    known_name(kind, name, registry)
    return registry[name].of(values)


def parse_value(text: str, *, lists: bool = True) -> Any:
    """What a user typed: a TOML value, such values with commas between, or else a plain word."""
    text = text.strip()
    for written in (text, f"[{text}]") if lists and "," in text else (text,):
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {written}")["value"]
    return text


def parse_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Options from ``key=value`` texts."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise SgcnError(f"--set got {text!r}, expected key=value")
        values[key.strip()] = parse_value(value, lists=False)  # names of columns may be numbers
    return values


def page(name: str, summary: str, kind: type[Options]) -> str:
    """A name, its summary and its options, for people to read."""
    lines = [f"{name}: {summary}"]
    for option, default, words, help in kind.described():
        shown = str(default).lower() if isinstance(default, bool | None) else default
        lines.append(f"  {f'{option} = {shown}':<26}{help}")
        lines.append(f"  {'':<26}{words}")
    return "\n".join(lines if len(lines) > 1 else [*lines, "  (no options)"])
