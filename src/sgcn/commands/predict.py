"""Write a finished run's predictions for every node.

examples:
  sgcn predict runs/a --out p.csv                     ids, classes and probabilities
  sgcn predict runs/a --data new-graph --out p.parquet
  sgcn predict runs/a --out logits.npy
  sgcn predict runs/a --out p.npy --probabilities
  sgcn predict runs/a --out h.npy --embeddings
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.commands.shared import run_arguments


def arguments(parser: argparse.ArgumentParser) -> None:
    run_arguments(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE",
                        help="N rows, in .csv, .parquet or .npy")  # fmt: skip
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--probabilities", action="store_true", help=".npy: instead of logits")
    what.add_argument("--embeddings", action="store_true", help=".npy: the last layer's H instead")


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from sgcn.compute import exact
    from sgcn.data.source import names_of
    from sgcn.errors import SgcnError
    from sgcn.files import replacing
    from sgcn.rows import store_of
    from sgcn.runs import predictions
    from sgcn.task import Task

    predictions.check_out(args.out)
    table = args.out.suffix != ".npy"
    if table and args.embeddings:
        raise SgcnError(f"--embeddings to {args.out}, expected an array: --out FILE.npy")
    model, graph, config = predictions.load_run(args.run_directory)
    multi_label, data = Task.of(graph).multi_label, args.data or config.data
    classes = names_of(config.data).classes
    if args.data is not None:
        graph = predictions.open_other(data, config, graph)
    if args.embeddings:
        rows = exact.embed(model, graph, store_of(graph.x))
    else:
        rows = predictions.predict(model, graph)
        if args.probabilities or table:
            rows = rows.sigmoid() if multi_label else rows.softmax(1)
    if table:
        predictions.write_table(
            args.out, rows, names_of(data).ids, classes, multi_label=multi_label
        )
    else:
        with replacing(args.out) as temporary:
            np.save(temporary, rows.numpy())
    print(f"{args.out}: {rows.shape[0]:,} rows of {rows.shape[1]}")
