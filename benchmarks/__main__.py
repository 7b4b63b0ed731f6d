"""The command `python -m benchmarks NAME ...`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks import BENCHMARKS
from sgcn.cli import add_command, execute, make_parser, subcommands

_EXAMPLES = """\
examples:
  python -m benchmarks sampling --out b.json      how fast, against published ways to sample
  python -m benchmarks short --out latest.json    some minutes, all the important figures
  python -m benchmarks compare old.json new.json  what changed

`python -m benchmarks NAME --help` has the options and examples of a benchmark."""


def parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser; only the benchmark that ``argv`` names is imported, as some take seconds."""
    root = make_parser(argparse.ArgumentParser, "python -m benchmarks", "Measure speed.", _EXAMPLES)
    commands = subcommands(root)
    for name, summary in BENCHMARKS.items():
        if name in argv[:1]:
            add_command(commands, name, f"benchmarks.{name}")
        else:
            commands.add_parser(name, help=summary)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark; the exit code."""
    words = sys.argv[1:] if argv is None else argv
    return execute("benchmarks", lambda: parser(words), words)


if __name__ == "__main__":
    sys.exit(main())
