"""Compare the JSON files of two runs of benchmarks.

examples:
  python -m benchmarks compare old.json benchmarks/latest.json
  python -m benchmarks compare old.json new.json --least 1.2

Takes what any benchmark wrote to --out. Seconds of different machines, or of a busy one, mean
little: look at the ratios.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sgcn.errors import SgcnError

#: What names a row of results; the other numbers in it are figures.
NAMES = ("graph", "threads", "sampler", "implementation", "what", "who", "way", "edges")
#: Figures that describe the input, not the speed.
_IGNORED = ("nodes", "edges", "source_bytes", "made_seconds")


def figures(report: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """All ratios and results of a report by name, its parts included."""
    found: dict[str, float] = {}
    for key, value in report.items():
        name = f"{prefix}{key}"
        if key == "ratios":
            found |= {f"{prefix}ratio {inner}": x for inner, x in value.items()}
        elif key == "results" and isinstance(value, list):
            for row in value:
                words = [str(row[part]) for part in NAMES if part in row]
                # A sampler's count of edges is a figure of its own row, not a name.
                if "sampler" in row:
                    words = [str(row[part]) for part in NAMES[:-1] if part in row]
                found |= _numbers(row, f"{prefix}{'/'.join(words)} ")
        elif key == "results":
            for inner, x in value.items():
                if isinstance(x, dict):
                    found |= _numbers(x, f"{prefix}{inner} ")
                elif isinstance(x, int | float):
                    found[f"{prefix}{inner}"] = float(x)
        elif isinstance(value, dict) and ("results" in value or "ratios" in value):
            found |= figures(value, f"{name}: ")
    return found


def _numbers(row: dict[str, Any], prefix: str) -> dict[str, float]:
    return {
        f"{prefix}{key}": float(x)
        for key, x in row.items()
        if isinstance(x, int | float) and key not in (*NAMES, *_IGNORED)
    }


def changes(old: dict[str, float], new: dict[str, float], least: float) -> list[str]:
    """A line for every figure that changed by the factor ``least`` or more, largest first."""
    both = [key for key in old if key in new and old[key] > 0 and new[key] > 0]
    factor = {key: new[key] / old[key] for key in both}
    shown = [key for key in both if max(factor[key], 1 / factor[key]) >= least]
    shown.sort(key=lambda key: -max(factor[key], 1 / factor[key]))
    lines = [f"{'':<58}{'old':>12}{'new':>12}{'new/old':>9}"]
    lines += [f"{key:<58}{old[key]:>12.4g}{new[key]:>12.4g}{factor[key]:>9.2f}" for key in shown]
    for words, more, less in (("only in the old", old, new), ("only in the new", new, old)):
        missing = [key for key in more if key not in less]
        lines += [f"{words}: {len(missing)}"] if missing else []
    lines.append(f"{len(shown)} of {len(both)} figures changed by {least:g}x or more")
    return lines


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument(
        "--least", type=float, default=1.05, help="factor of a change to show; default: %(default)g"
    )


def run(args: argparse.Namespace) -> None:
    print("\n".join(changes(_read(args.old), _read(args.new), args.least)))


def _read(path: Path) -> dict[str, float]:
    try:
        return figures(json.loads(path.read_text()))
    except (OSError, ValueError, AttributeError) as error:
        raise SgcnError(
            f"{path} cannot be read ({error}), expected a JSON file of a benchmark"
        ) from None
