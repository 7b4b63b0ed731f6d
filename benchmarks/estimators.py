"""Every sampler with every estimator: gradient error, training loss, validation F1 after 300 steps.

    python benchmarks/estimators.py ppi.npz debian --seeds 0 1 2 --out benchmarks/estimators.jsonl

Two graph layers, the first of width 128, the second giving the logits (or, with --head, two of
width 128 and a dense head); sparse features with rows of length 1; batch 512, K = 10, Adam
0.01. The error is |G - exact|^2 / |exact|^2 at the same weights, the geometric mean over regular
steps 3, 3 + every, 3 + 2 every, .. One line of JSON a run; what is there already is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numba
import numpy as np
import torch
from tqdm import tqdm

from sgcn.compute.exact import predict
from sgcn.data.source import open_data
from sgcn.errors import TrainingDiverged
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.estimators.engine import Engine
from sgcn.graph import Graph
from sgcn.nn import make_model
from sgcn.rng import Key
from sgcn.rows import Features
from sgcn.samplers import SAMPLERS, make_sampler
from sgcn.sources import Loader
from sgcn.task import Task, split_nodes

#: Sizes that make batches comparable; the others are defaults.
OPTIONS = {
    "neighbor": {"sizes": 5},
    "labor": {"sizes": 5},
    "ladies": {"sizes": 512},
    "fastgcn": {"sizes": 512},
}


def run(
    graph: Graph, sampler_name: str, estimator: str, seed: int, steps: int, every: int, head: bool
) -> dict:
    """One training run; the exact gradient is taken beside it and leaves no trace."""
    task, train = Task.of(graph), split_nodes(graph, 0)
    model = make_model(graph.x.shape[1], task.classes, widths=128, seed=seed, head=head)
    sampler = make_sampler(sampler_name, **OPTIONS.get(sampler_name, {}))
    schedule = {} if estimator == "full" else {"gap": 10, "warmup": 0}
    rule = make_estimator(estimator, **schedule)
    engine = Engine(rule, model, graph, task, train, sampler, seed=seed)
    exact = Engine(make_estimator("full"), model, graph, task, train, sampler, seed=seed)
    loader = Loader(graph, train, sampler, batch_size=512, seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    errors, worst = [], 0.0
    for t in range(steps):
        epoch, step = divmod(t, len(loader))
        key, outcome = Key(seed, epoch, step), None
        if not engine.due():
            outcome = engine.regular(engine.draw(loader.seeds(epoch, step), key), key)
        outcome = outcome or engine.snapshot()
        worst = max(worst, outcome.loss) if t >= steps // 3 else worst
        if t % every == 3 and not outcome.snapshot:
            wanted = exact.snapshot().gradient
            away = sum((outcome.gradient[k] - wanted[k]).square().sum() for k in wanted)
            errors.append(float(away / sum(g.square().sum() for g in wanted.values())))
        engine.apply(outcome, optimizer)
    logits = predict(model, graph, Features.of(graph.x))
    parts = [torch.from_numpy(split_nodes(graph, part)).long() for part in (0, 1)]
    scores = [task.score(logits.index_select(0, nodes), nodes) for nodes in parts]
    return {
        "error": math.exp(np.mean(np.log(errors))) if errors else 0.0,
        "loss": scores[0]["loss"],
        "f1": scores[1]["f1_micro"],
        "snapshots": engine.snapshots,
        "worst_step_loss": worst,
    }


def table(lines: list[dict]) -> str:
    """Markdown: means over seeds of error / loss / F1; a row a sampler, a column an estimator."""
    out = ["Gradient error (geometric mean) / training loss / validation F1; means over the seeds."]
    for graph in dict.fromkeys(line["graph"] for line in lines):
        rule = "|---" * (len(ESTIMATORS) + 2) + "|"
        out += ["", f"| {graph} | {' | '.join(ESTIMATORS)} | seeds |", rule]
        for sampler in SAMPLERS:
            row = [v for v in lines if (v["graph"], v["sampler"]) == (graph, sampler)]
            cells = [cell([v for v in row if v["estimator"] == name]) for name in ESTIMATORS]
            seeds = {line["seed"] for line in row if line["estimator"] != "full"}
            if any(cells):
                out.append(f"| {sampler} | {' | '.join(cells)} | {len(seeds)} |")
    return "\n".join(out)


def cell(runs: list[dict]) -> str:
    if not runs:
        return ""
    if any("failed" in run for run in runs):
        return "failed"
    error = np.exp(np.mean([np.log(max(run["error"], 1e-9)) for run in runs]))
    loss, f1 = (np.mean([run[k] for run in runs]) for k in ("loss", "f1"))
    return f"{error if error > 1e-8 else 0:.2g} / {loss:.4f} / {f1:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samplers", nargs="+", default=[*SAMPLERS])
    parser.add_argument("--estimators", nargs="+", default=[*ESTIMATORS])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=7)
    parser.add_argument("--head", action="store_true", help="two layers of 128 and a dense head")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    lines = [json.loads(t) for t in args.out.read_text().splitlines()] if args.out.exists() else []
    names = ("graph", "sampler", "estimator", "seed")
    done = {tuple(line[name] for name in names) for line in lines}
    for data in args.data:
        graph = open_data(data)
        # The exact run does not depend on the sampler: once is enough.
        wanted = [
            (Path(data).stem + "+head" * args.head, sampler, estimator, seed)
            for seed in args.seeds
            for sampler in args.samplers
            for estimator in args.estimators
            if estimator != "full" or sampler == args.samplers[0]
        ]
        for case in tqdm([case for case in wanted if case not in done], disable=None):
            try:
                found = run(graph, *case[1:], args.steps, args.every, args.head)
            except TrainingDiverged as error:
                found = {"failed": str(error)}
            lines.append(dict(zip(names, case, strict=True)) | found)
            with args.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    print(table(lines))


if __name__ == "__main__":
    main()
