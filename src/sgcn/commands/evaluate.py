"""Score a run on its training, validation and test nodes, or on another graph.

examples:
  sgcn evaluate runs/a
  sgcn evaluate runs/a --data new-graph               without a split: all labelled nodes
"""

from __future__ import annotations

import argparse

from sgcn.commands.shared import note_unfinished, run_arguments


def arguments(parser: argparse.ArgumentParser) -> None:
    run_arguments(parser)


def run(args: argparse.Namespace) -> None:
    import numpy as np
    import torch

    from sgcn.runs.predictions import load_run, open_other, predict
    from sgcn.task import split_nodes
    from sgcn.training.events import to_json

    model, graph, config = load_run(args.run_directory)
    note_unfinished(args.run_directory)
    task = config.training.task.on(graph)
    if args.data is not None:
        graph = open_other(args.data, args.run_directory, config, graph)
        task = task.of_labels(graph)
    parts = ["train", "validation", "test"]
    if graph.split is None:
        graph, parts = graph.with_split(np.zeros(len(graph))), ["all"]
    outputs, scores = predict(model, graph), {}
    for part, name in enumerate(parts):
        nodes = torch.from_numpy(split_nodes(graph, part))
        scores[name] = task.score(outputs.index_select(0, nodes), nodes)
    print(to_json(scores, indent=1))
