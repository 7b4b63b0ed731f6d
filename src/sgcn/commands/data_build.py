"""Build debian, debian-tags or wordnet again, from the files of Debian.

examples:
  sgcn data build debian                            from apt's lists, to debian.npz
  sgcn data build debian --from lists/ --out d.npz  from Packages and Translation-en in lists/
  sgcn data build debian-tags --out tags.npz        the same graph with tags as labels
  sgcn data build wordnet --from unpacked/          from data.noun, data.verb, data.adj, data.adv
  sgcn data build wordnet --out wordnet-graph       a directory that can be mapped into memory
"""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace) -> None:
    from sgcn.data.builders import BUILDERS, build
    from sgcn.files import check_new
    from sgcn.options import known_name

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
