"""Turn a graph in a published format into a graph directory.

examples:
  sgcn data import --formats        every format with its options
  sgcn data import graphsaint Flickr --out flickr
  sgcn data import graphsaint Reddit --out reddit --set standardise=false
  sgcn data import graphsage ppi --out ppi
  sgcn data import planetoid data --out cora --set dataset=cora
  sgcn data import ogb dataset/ogbn_arxiv --out arxiv
  sgcn data import pyg Cora/processed/data.pt --out cora
  sgcn data import dgl arrays --out mine --set directed=true
  sgcn data import networkx graph.json --out mine
  sgcn data import scipy adjacency.npz --out mine --set features=x.npy labels=y.npy
  sgcn data import edgelist edges.csv --out mine --set ids=text features=nodes.csv id_column=name
  sgcn data import table nodes.csv --edges edges.csv --id name --label topic --split part --out mine

Then: sgcn data info mine, sgcn data verify mine, sgcn train mine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

#: The names of importers, which cost seconds to import.
FORMATS = ("graphsaint", "graphsage", "planetoid", "ogb", "pyg", "dgl", "networkx", "scipy",
           "edgelist", "table")  # fmt: skip

#: Options of formats that have a flag.
FLAGS = (
    ("edges", "FILE", "table: the edges beside the table of nodes"),
    ("id", "COLUMN", "table: where the ids of nodes are; default: id"),
    ("label", "COLUMN", "table: where the labels are; default: label"),
    ("split", "COLUMN", "table: train, val, test; default: split (for other formats a file)"),
    ("features", "A,B,..", "table: columns; default: all others (for other formats a file)"),
    ("like", "DIR", "table: the columns and classes of another graph made of a table"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "format", nargs="?", metavar="FORMAT", help=f"{', '.join(FORMATS)}; --formats says more"
    )
    parser.add_argument(
        "source", nargs="?", metavar="SOURCE", help="the folder or file to read; it is not changed"
    )
    parser.add_argument("--out", metavar="DIR", help="the graph directory to write (needed)")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", action="extend",
                        help="options of the format, see --formats")  # fmt: skip
    for name, metavar, help in FLAGS:
        parser.add_argument(f"--{name}", metavar=metavar, help=help)
    parser.add_argument("--force", action="store_true", help="replace an older graph at --out")
    parser.add_argument(
        "--formats", action="store_true", help="list the formats with their options and stop"
    )


def run(args: argparse.Namespace) -> None:
    from sgcn.data.describe import summary, without_edges
    from sgcn.data.importers import IMPORTERS, import_graph
    from sgcn.errors import SgcnError
    from sgcn.options import page, parse_settings
    from sgcn.store import IDS

    if args.formats:
        print("\n\n".join(page(kind.name, kind.summary, kind) for kind in IMPORTERS.values()))
        return
    for name in ("format", "source", "out"):
        if getattr(args, name) is None:
            raise SgcnError(
                f"{name} is missing, expected `sgcn data import FORMAT SOURCE --out DIR`"
            )
    options = parse_settings(args.set)
    for name, _, _ in FLAGS:
        if (value := getattr(args, name)) is not None:
            options[name] = int(value) if value.isdecimal() else value
    graph = import_graph(
        args.format, args.source, args.out, overwrite=args.force, say=print, **options
    )
    alone = without_edges(graph)
    note = f"; {alone:,} nodes without an edge" if alone > len(graph) / 2 else ""
    if note and args.format == "edgelist" and not (Path(args.out) / IDS).exists():
        note += ": ids=compact numbers nodes without gaps"
    if graph.y is not None and graph.split is None:
        note += f"; to train on it: sgcn data split {args.out} --out NEW"
    print(f"{args.out}: {summary(graph)}{note}")
