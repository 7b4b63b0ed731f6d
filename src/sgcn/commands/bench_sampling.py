"""Time every sampler against published ways to sample, interleaved in one run.

examples:
  sgcn bench sampling                                   flickr-like and reddit-like, every sampler
  sgcn bench sampling --graph flickr-like --samplers neighbor,ladies
  sgcn bench sampling --graph my-graph/ --out bench.json
"""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--graph",
        default="flickr-like,reddit-like",
        metavar="NAME[,..]",
        help="synthetic graphs by name, or directories that Graph.save wrote; default: %(default)s",
    )
    parser.add_argument("--samplers", metavar="NAME[,..]", help="only these; default: all")
    for name, default, help in (
        ("--batches", 7, "rounds; each times every implementation once, on the same seeds"),
        ("--batch-size", 512, "seeds of a batch"),
        ("--seed", 0, "of graphs, seeds and samples"),
    ):
        parser.add_argument(
            name, type=int, default=default, metavar="N", help=f"{help}; default: %(default)s"
        )
    parser.add_argument(
        "--threads",
        default="1,2",
        metavar="N[,..]",
        help="numbers of prefetch threads to compare, the first being the unit; "
        "default: %(default)s",
    )
    parser.add_argument("--out", metavar="FILE.json", help="also write the figures here")


def run(args: argparse.Namespace) -> None:
    from sgcn.bench.sampling import main

    main(args)
