"""Write a run's predictions for every node.

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

from sgcn.commands.shared import note_unfinished, run_arguments


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
    from sgcn.labels import CLASSES, NUMBERS
    from sgcn.rows import store_of
    from sgcn.runs import predictions

    predictions.check_out(args.out)
    table = args.out.suffix != ".npy"
    if table and args.embeddings:
        raise SgcnError(f"--embeddings to {args.out}, expected an array: --out FILE.npy")
    model, graph, config = predictions.load_run(args.run_directory)
    note_unfinished(args.run_directory)
    kind, data = config.training.task.on(graph).kind, args.data or config.data
    if args.probabilities and kind == NUMBERS:
        raise SgcnError(
            f"{args.run_directory} predicts numbers, which have no probabilities, expected a run "
            "on classes or sets of labels: leave out --probabilities"
        )
    classes = names_of(config.data).classes
    if args.data is not None:
        graph = predictions.open_other(data, args.run_directory, config, graph)
    if args.embeddings:
        rows = exact.embed(model, graph, store_of(graph.x))
    else:
        rows = predictions.predict(model, graph)
        if kind != NUMBERS and (args.probabilities or table):
            rows = rows.softmax(1) if kind == CLASSES else rows.sigmoid()
    if table:
        predictions.write_table(args.out, rows, names_of(data).ids, classes, kind=kind)
    else:
        with replacing(args.out) as temporary:
            np.save(temporary, rows.numpy())
    print(f"{args.out}: {rows.shape[0]:,} rows of {rows.shape[1]}")
