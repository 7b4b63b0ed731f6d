"""Write a graph again with features made ready for training.

examples:
  sgcn data features my-graph/ --out ready/ --standardise
  sgcn data features my-graph/ --out ready/ --row-normalise
  sgcn data features my-graph/ --out small/ --dtype float16

--standardise needs dense features and a split: the labelled training nodes set mean and variance.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands import graph_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    graph_argument(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new directory")
    parser.add_argument(
        "--standardise", action="store_true",
        help="mean 0 and variance 1 on the training nodes; constant columns are only centred",
    )  # fmt: skip
    parser.add_argument(
        "--row-normalise", action="store_true",
        help="absolute values of a row sum to 1 (before --standardise)",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=("float16", "float32"), default="float32",
        help="what is stored; training computes in float32; default: %(default)s",
    )  # fmt: skip


def run(args: argparse.Namespace) -> None:
    from sgcn.data.features import write_features
    from sgcn.data.source import open_as_is
    from sgcn.files import check_new

    check_new(args.out)
    x = write_features(
        open_as_is(args.data), args.out,
        standardise=args.standardise, row_normalise=args.row_normalise, dtype=args.dtype,
    ).x  # fmt: skip
    print(f"{args.out}: {x.shape[0]:,} rows of {x.shape[1]:,} {x.dtype} features")
