"""Fetch a published graph, and turn it into a graph directory if you like.

examples:
  sgcn data download --list                  what there is, and who reads it
  sgcn data download flickr                  the published files, to flickr-files
  sgcn data download flickr --import         and the graph made of them, to flickr
  sgcn data download ogbn-arxiv --out files --import graphs/arxiv

Run it again after a broken connection: it goes on where it stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="see --list")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the files; default: NAME-files"
    )
    parser.add_argument(
        "--import", dest="graph", nargs="?", const="", metavar="GRAPH",
        help="also import them, to the new graph directory GRAPH; default: NAME",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the graphs and stop")


def run(args: argparse.Namespace) -> None:
    from sgcn.data.published import PUBLISHED
    from sgcn.errors import SgcnError
    from sgcn.files import check_new
    from sgcn.options import known_name

    if args.list:
        for name, graph in PUBLISHED.items():
            print(f"{name:<15}{graph.importer:<12}{graph.about:<36}{graph.page}")
        return
    if args.name is None:
        raise SgcnError("name is missing, expected `sgcn data download NAME`; --list has the names")
    known_name("graph", args.name, PUBLISHED)
    out = args.out or Path(f"{args.name}-files")
    target = None if args.graph is None else Path(args.graph or args.name)
    if target is not None:
        check_new(target)

    from sgcn.data.download import download

    source = download(args.name, out)
    graph = PUBLISHED[args.name]
    print(f"{source}: the files of {args.name}; their sums are in {out / 'SHA256SUMS'}")
    if target is None:
        print(f"next: sgcn data import {graph.importer} {source} --out {args.name}")
        return
    from sgcn.data.importers import import_graph

    print(f"{target}: {import_graph(graph.importer, source, target, **graph.options)}")
