"""The tables of options in docs/training.md, from the fields that declare them.

python tools/options_table.py writes them anew; a test fails while they differ.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from sgcn.estimators import ESTIMATORS, Estimator, make_estimator
from sgcn.options import Options
from sgcn.runs.config import toml_value
from sgcn.samplers import SAMPLERS
from sgcn.training.options import PRESETS, SECTIONS, Named

PAGE = Path(__file__).parents[1] / "docs" / "training.md"
_BETWEEN = re.compile(r"(?<=<!-- options -->\n).*?(?=<!-- end of options -->)", re.S)
#: Options of an estimator that more names than this set otherwise say "by the name".
_MOST_NAMES = 4


def rows() -> list[tuple[str, str, str, str, str]]:
    """(section, key, default, what it must be, meaning) of every option but a sampler's."""
    found = []
    for section, kind in SECTIONS.items():
        if isinstance(kind, Named):
            what = f"see [{section}s.md]({section}s.md)"
            found.append((section, "name", _code(kind.default), "a name", f"{kind.help}; {what}"))
        options = Estimator if section == "estimator" else kind
        if section == "sampler" or isinstance(options, Named):
            continue
        for key, default, words, help in options.listed():
            shown = _by_name(key, default) if section == "estimator" else _code(default)
            found.append((section, key, shown, words, help))
    return found


def tables() -> str:
    """All options, those of the samplers, and the presets."""
    lines = ["", "| section | key | default | value | meaning |", "|---|---|---|---|---|"]
    last = ""
    for section, key, default, words, help in rows():
        shown = "" if section == last else f"`[{section}]`"
        help = help.replace("|", "\\|")
        lines.append(f"| {shown} | `{key}` | {default} | {words} | {help} |")
        last = section
    lines += ["", "| `[sampler]` | options and defaults |", "|---|---|"]
    for name, sampler in SAMPLERS.items():
        lines.append(f"| `{name}` | {_defaults(sampler) or 'none'} |")
    lines += ["", "| `--preset` | values that stand in for defaults |", "|---|---|"]
    for name, recipe in PRESETS.items():
        keys = {f"{s}.{key}": value for s, table in recipe.items() for key, value in table.items()}
        values = ", ".join(f"`{key}` = {_code(value)}" for key, value in keys.items())
        lines.append(f"| `{name}` | {values} |")
    return "\n".join(lines) + "\n\n"


def _defaults(kind: type[Options]) -> str:
    return ", ".join(f"`{key}` = {_code(default)}" for key, default, *_ in kind.listed())


def _code(default: Any) -> str:
    return f"`{toml_value(default)}`"


def _by_name(key: str, default: Any) -> str:
    """The usual default, and the names of estimators that have another one."""
    each = {name: make_estimator(name).values() for name in ESTIMATORS}
    known = {name: values[key] for name, values in each.items() if key in values}
    usual = Counter(known.values()).most_common(1)[0][0] if known else default
    others = [f"`{name}`: {_code(v)}" for name, v in known.items() if v != usual]
    if len(others) > _MOST_NAMES:
        return "by the name"
    return _code(usual) + (f" ({', '.join(others)})" if others else "")


def rewritten(text: str) -> str:
    """``text`` of the page with the tables as they should be."""
    return _BETWEEN.sub(lambda _: tables(), text)


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
