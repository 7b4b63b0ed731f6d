"""Write a graph again with another split into training, validation and test nodes.

examples:
  sgcn data split my-graph/ --out split/ --train 0.7 --val 0.1 --seed 3
  sgcn data split my.npz --out split/ --how stratified
  sgcn data split my-graph/ --out split/ --files train.txt val.txt test.npy

Only labelled nodes get a part. stratified keeps the share of every class in every part; where nodes
have several labels, the rarest one of a node counts. A file has one node id a line, or is a .npy
vector of ids; nodes in none of the files have no part.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import graph_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    graph_argument(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory")
    parser.add_argument(
        "--how",
        choices=("random", "stratified", "files"),
        help="how nodes are chosen; default: random, or files with --files",
    )
    parser.add_argument("--train", type=float, metavar="SHARE",
                        help="share of the labelled nodes to train on; default: 0.6")  # fmt: skip
    parser.add_argument("--val", type=float, metavar="SHARE",
                        help="share to validate on, the rest to test; default: 0.2")  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="K", help="of the draw; default: 0")
    parser.add_argument("--files", type=Path, nargs=3, metavar=("TRAIN", "VAL", "TEST"),
                        help="three files of node ids")  # fmt: skip


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from sgcn.data import splits
    from sgcn.data.source import open_as_is
    from sgcn.errors import SgcnError
    from sgcn.files import check_new
    from sgcn.store import Writer

    how = args.how or ("random" if args.files is None else "files")
    shares = {"train": args.train, "val": args.val, "seed": args.seed}
    drawn = {name: value for name, value in shares.items() if value is not None}
    if args.how == "files" and args.files is None:
        raise SgcnError("--how files needs --files TRAIN VAL TEST, expected three files of ids")
    if (how == "files") != (args.files is not None) or (how == "files" and drawn):
        raise SgcnError(
            "--files goes with --how files and with no --train, --val or --seed, expected either "
            "three files or shares"
        )
    check_new(args.out)
    graph = open_as_is(args.data)
    if how == "files":
        split = splits.split_from_files(graph, args.files)
    else:
        draw = splits.random_split if how == "random" else splits.stratified_split
        split = draw(graph, **drawn)
    made = graph.with_split(split)
    with Writer.new(args.out) as files:
        made.write_rows(files)
        made.write_topology(files)
        files.carry(graph.path)
    train, val, test = (np.count_nonzero(split == part) for part in range(3))
    print(f"{args.out}: {train:,} training, {val:,} validation and {test:,} test nodes")
