"""Score a finished run on its training, validation and test nodes.

examples:
  sgcn evaluate runs/a
"""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="what sgcn train wrote")


def run(args: argparse.Namespace) -> None:
    import torch

    from sgcn.compute.exact import predict
    from sgcn.rows import store_of
    from sgcn.runs.directory import open_run
    from sgcn.task import split_nodes
    from sgcn.training.events import to_json

    config, graph, model = open_run(args.run_directory)
    task = config.training.task.on(graph)
    logits = predict(model, graph, store_of(graph.x))
    scores = {}
    for part, name in enumerate(("train", "validation", "test")):
        nodes = torch.from_numpy(split_nodes(graph, part))
        scores[name] = task.score(logits.index_select(0, nodes), nodes)
    print(to_json(scores, indent=1))
