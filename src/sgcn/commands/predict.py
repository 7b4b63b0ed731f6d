"""Write a finished run's predictions for every node.

examples:
  sgcn predict runs/a --out logits.npy
  sgcn predict runs/a --out p.npy --probabilities
  sgcn predict runs/a --out h.npy --embeddings
"""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="what sgcn train wrote")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.npy", help="N rows")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--probabilities", action="store_true", help="instead of logits")
    what.add_argument("--embeddings", action="store_true", help="the last layer's H instead")


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from sgcn.compute import exact as inference
    from sgcn.errors import SgcnError
    from sgcn.files import check_target, replacing
    from sgcn.labels import NUMBERS
    from sgcn.rows import store_of
    from sgcn.runs.directory import open_run

    check_target("--out", args.out, (".npy",))
    config, graph, model = open_run(args.run_directory)
    task = config.training.task.on(graph)
    if args.probabilities and task.kind == NUMBERS:
        raise SgcnError(
            f"{args.run_directory} predicts numbers, which have no probabilities, expected a run "
            "on classes or sets of labels: leave out --probabilities"
        )
    features = store_of(graph.x)
    if args.embeddings:
        rows = inference.embed(model, graph, features)
    else:
        rows = inference.predict(model, graph, features)
        if args.probabilities:
            rows = rows.sigmoid() if task.multi_label else rows.softmax(1)
    with replacing(args.out) as temporary:
        np.save(temporary, rows.numpy())
    print(f"{args.out}: {rows.shape[0]:,} rows of {rows.shape[1]}")
