"""What a benchmark leaves: a table on the screen, a JSON file, a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from sgcn.files import replacing, write_text

T = TypeVar("T")
_SHORT = 20  # so many entries or fewer may share a line


def finish(
    report: dict[str, Any], table: Callable[[dict[str, Any]], str], out: Path | None
) -> None:
    """Print the table, and write the report if there is a file for it."""
    print(table(report))
    if out is not None:
        write(out, report)


def write(path: Path, report: dict[str, Any]) -> None:
    write_text(path, layout(report) + "\n")


def layout(value: Any, margin: str = "") -> str:
    """JSON that people can read and compare: a row of a table is a line."""
    if not isinstance(value, dict | list) or _is_row(value):
        return json.dumps(value)
    inner = margin + " "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(key)}: {layout(v, inner)}" for key, v in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    return "[\n" + ",\n".join(inner + layout(v, inner) for v in value) + f"\n{margin}]"


def _is_row(value: Any) -> bool:
    """A few plain values, or a few values by name, lists of plain ones among them."""
    if len(value) > _SHORT:
        return False
    if isinstance(value, list):
        return not any(isinstance(v, dict | list) for v in value)
    return all(_is_row(v) if isinstance(v, list) else not isinstance(v, dict)
               for v in value.values())  # fmt: skip


def save_figure(figure: Any, out: Path) -> None:
    """Write a matplotlib figure and close it; the name says the format."""
    import matplotlib.pyplot as plt

    with replacing(out) as temporary:
        figure.savefig(temporary, dpi=120, format=out.suffix[1:])
    plt.close(figure)


def progress(items: Iterable[T], what: str) -> Iterable[T]:
    """A bar on a terminal, silence elsewhere."""
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    bar: Iterable[T] = tqdm(items, desc=what, leave=False)
    return bar
