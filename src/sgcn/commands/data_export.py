"""Write a graph in the format of another program.

examples:
  sgcn data export pyg flickr-like --out flickr.pt
  sgcn data export graphsaint my-graph/ --out saint/
  sgcn data export scipy my-graph/ --out scipy/
  sgcn data export npz my-graph/ --out my.npz

pyg         a dictionary of tensors; Data.from_dict(torch.load(FILE, weights_only=True)) reads it
graphsaint  a directory: adj_full.npz, adj_train.npz, feats.npy, class_map.json, role.json
scipy       a directory: adjacency.npz, x.npy or x.npz, y.npy, split.npy
npz         one file of plain arrays, which every command of sgcn takes
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import graph_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", metavar="FORMAT", help="pyg, graphsaint, scipy or npz")
    graph_argument(parser)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="PATH", help="a new file or directory"
    )


def run(args: argparse.Namespace) -> None:
    from sgcn.data.export import check_target, export
    from sgcn.data.source import open_as_is

    check_target(args.format, args.out)
    graph = open_as_is(args.data)
    export(args.format, graph, args.out)
    print(f"{args.out}: {len(graph):,} nodes, {graph.edges:,} stored edges")
