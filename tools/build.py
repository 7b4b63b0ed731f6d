"""Build debian, debian-tags or wordnet again, from the files of Debian.

examples:
  python -m tools.build debian                          from apt's lists, to debian.npz
  python -m tools.build debian --from lists/            from Packages and Translation-en in lists/
  python -m tools.build debian-tags --out tags.npz      the same graph with tags as labels
  python -m tools.build wordnet --from unpacked/        from data.noun, data.verb, data.adj, ..
  python -m tools.build wordnet --out wordnet-graph     a directory that can be mapped into memory
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sgcn.cli import execute, make_parser
from sgcn.files import check_new
from sgcn.options import known_name
from tools.builders import BUILDERS, build

PROGRAM = "python -m tools.build"


def parser() -> argparse.ArgumentParser:
    summary, _, examples = (__doc__ or "").partition("\n")
    parser = make_parser(argparse.ArgumentParser, PROGRAM, summary, examples.strip())
    parser.add_argument("name", metavar="NAME", help="debian, debian-tags or wordnet")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="DIR",
        help="folder of the source files, plain or as .gz, .xz or .bz2; "
        "default: apt's lists or /usr/share/wordnet",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE_OR_DIR",
        help="FILE.npz, or else a new graph directory; default: NAME.npz",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> None:
    known_name("graph", args.name, BUILDERS)
    out = check_new(args.out or Path(f"{args.name}.npz"))
    built = build(args.name, args.source)
    built.write(out)
    counts = built.header["counts"]
    print(
        f"{out}: {counts['nodes']:,} nodes, {counts['edges']:,} edges, {counts['features']} "
        f"features, {counts['classes']} classes, {counts['labelled']:,} labelled nodes; "
        f"release: {built.header['release']}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    return execute("tools.build", parser, argv)


if __name__ == "__main__":
    sys.exit(main())
