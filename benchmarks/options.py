"""Options that several benchmarks have, and the checks of their values."""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.errors import SgcnError
from sgcn.experiments.data import split_names


def add_texts(parser: argparse.ArgumentParser, *rows: tuple[str, str, str, str]) -> None:
    """Options of (name, default, metavar, help)."""
    for name, default, metavar, help in rows:
        parser.add_argument(
            name, default=default, metavar=metavar, help=f"{help}; default: %(default)s"
        )


def add_integers(parser: argparse.ArgumentParser, *rows: tuple[str, int, str]) -> None:
    """Options of (name, default, help)."""
    for name, default, help in rows:
        parser.add_argument(
            name, type=int, default=default, metavar="N", help=f"{help}; default: %(default)s"
        )


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="FILE.json", help="also write the figures here")


def check_positive(args: argparse.Namespace, *names: str) -> None:
    """Make sure that the options ``names``, as attributes of ``args``, are at least 1."""
    for name in names:
        if (value := getattr(args, name)) < 1:
            flag = name.replace("_", "-")
            raise SgcnError(f"--{flag} is {value}, expected a whole number >= 1")


def listed(flag: str, text: str) -> list[str]:
    """The names in ``text``, of which none may be empty."""
    names = split_names(text)
    if not all(names):
        raise SgcnError(f"{flag} is {text!r}, expected names with a comma between them")
    return names


def target(out: str | None, flag: str = "--out") -> Path | None:
    """The file that the option ``flag`` names, refused early if it cannot be written."""
    if out is None:
        return None
    path = Path(out)
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise SgcnError(f"{flag} is {out!r}, expected a file in a directory that exists")
    return path
