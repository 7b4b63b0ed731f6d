"""A short version of the benchmarks: one JSON file, and a table for the docs. `make bench`.

    python benchmarks/short.py --out benchmarks/latest.json --table docs/speed-table.md

A part that fails is left out and named; the others are written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sgcn.bench.report import write

#: The parts, and what makes them short.
PARTS = {
    "sampling": ["--graph", "flickr-like", "--batches", "3", "--threads", "1"],
    "step": ["--graph", "flickr-like", "--rounds", "2", "--threads", "1"],
    "scale": ["--edges", "1e5,1e6", "--rounds", "2"],
    "startup": ["--rounds", "2"],
}


def measure(parts: list[str]) -> dict:
    found: dict = {"commands": {}, "failed": []}
    for part in parts:
        words = ["bench", part, *PARTS[part]]
        with tempfile.TemporaryDirectory(prefix="sgcn-bench-") as folder:
            out = Path(folder) / "part.json"
            command = [sys.executable, "-m", "sgcn", *words, "--out", str(out)]
            print(f"sgcn {' '.join(words)}", flush=True)
            if subprocess.run(command, check=False).returncode:
                found["failed"].append(part)
                continue
            found[part] = json.loads(out.read_text())
        found["commands"][part] = f"sgcn {' '.join(words)}"
    return found


def table(report: dict) -> str:
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


def _head(report: dict, part: str, *columns: str) -> list[str]:
    rule = "|---" * len(columns) + "|"
    return ["", f"`{report['commands'][part]}`", "", f"| {' | '.join(columns)} |", rule]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=[*PARTS], default=[*PARTS])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", type=Path, help="Markdown for the docs")
    args = parser.parse_args()
    report = measure(args.parts)
    write(args.out, report)
    if args.table is not None:
        args.table.write_text(table(report))
    return 1 if report["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
