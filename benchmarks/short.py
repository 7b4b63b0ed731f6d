"""Run short versions of the benchmarks: one JSON file, and a table for the docs.

examples:
  python -m benchmarks short --out benchmarks/latest.json --table docs/speed-table.md
  python -m benchmarks short --parts sampling step --out short.json

A part that fails is left out and named; the others are written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.options import target
from benchmarks.process import importable
from benchmarks.report import write
from sgcn.errors import SgcnError
from sgcn.files import write_text

#: The parts, and what makes them short.
PARTS = {
    "sampling": ["--graph", "flickr-like", "--batches", "3", "--threads", "1"],
    "step": ["--graph", "flickr-like", "--rounds", "2", "--threads", "1"],
    "scale": ["--edges", "1e5,1e6", "--rounds", "2"],
    "startup": ["--rounds", "2"],
}


def measure(parts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"commands": {}, "failed": []}
    for part in parts:
        words = ["-m", "benchmarks", part, *PARTS[part]]
        with tempfile.TemporaryDirectory(prefix="sgcn-benchmark-") as folder:
            out = Path(folder) / "part.json"
            command = [sys.executable, *words, "--out", str(out)]
            print(f"python {' '.join(words)}", flush=True)
            if subprocess.run(command, env=importable(), check=False).returncode:
                found["failed"].append(part)
                continue
            found[part] = json.loads(out.read_text())
        found["commands"][part] = f"python {' '.join(words)}"
    return found


def table(report: dict[str, Any]) -> str:
    """Markdown: what `sgcn` reaches, a section a part."""
    lines = ["# Speed, measured", "", "Written by `make bench`. Ratios: time of the other over "
             "ours; for `bound` ours over the bound."]  # fmt: skip
    for part in ("sampling", "step"):
        if part in report:
            lines += _head(report, part, "what", "ratio")
            lines += [f"| {key} | {x:.2f} |" for key, x in report[part]["ratios"].items()]
    if "scale" in report:
        lines += _head(report, "scale", "edges", "regular step, ms", "snapshot, s", "peak MB")
        lines += [
            f"| {row['edges']:,} | {row['regular_seconds'] * 1e3:.1f} | "
            f"{row['snapshot_seconds']:.3f} | {row['peak_mb']:.0f} |"
            for row in report["scale"]["results"]
        ]
    if "startup" in report:
        lines += _head(report, "startup", "start", "s")
        lines += [
            f"| {name.replace('_', ' ')} | {x:.2f} |"
            for name, x in report["startup"]["results"].items()
            if not name.endswith("said")
        ]
    lines += [f"\n{part} failed." for part in report["failed"]]
    return "\n".join(lines) + "\n"


def _head(report: dict[str, Any], part: str, *columns: str) -> list[str]:
    rule = "|---" * len(columns) + "|"
    return ["", f"`{report['commands'][part]}`", "", f"| {' | '.join(columns)} |", rule]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--out", metavar="FILE.json", required=True)
    parser.add_argument("--table", metavar="FILE.md", help="Markdown for the docs")


def run(args: argparse.Namespace) -> None:
    out, page = target(args.out), target(args.table, "--table")
    assert out is not None
    report = measure(args.parts)
    write(out, report)
    if page is not None:
        write_text(page, table(report))
    if report["failed"]:
        raise SgcnError(
            f"{', '.join(report['failed'])} failed, expected all parts to end: the reason is above"
        )
