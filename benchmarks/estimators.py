"""Train every sampler with every estimator: gradient error, loss, F1.

examples:
  python -m benchmarks estimators ppi.npz debian --seeds 0 1 2 --out estimators.json
  python -m benchmarks estimators debian --samplers neighbor --estimators sgcn anchored --steps 50

Two graph layers, the first of width 128, the second giving the logits (or, with --head, two of
width 128 and a dense head); sparse features with rows of length 1; batch 512, K = 10, Adam
0.01. The error is |G - exact|^2 / |exact|^2 at the same weights, the geometric mean over regular
steps 3, 3 + every, 3 + 2 every, .. One line of JSON a run goes to --raw; what is there already is
not run again. --out is a summary: means over the seeds.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.engines import make_engine, next_step, set_threads
from benchmarks.options import add_integers, add_out, check_positive, target
from benchmarks.report import finish
from sgcn.compute.exact import predict
from sgcn.data.source import open_data
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.estimators import ESTIMATORS, make_estimator
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.options import known_name
from sgcn.rng import Key
from sgcn.rows import store_of
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
_NAMES = ("graph", "sampler", "estimator", "seed")  # of a run

Run = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="+", metavar="DATA", help="a name, graph directory or .npz")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="N")
    parser.add_argument("--samplers", nargs="+", default=[*SAMPLERS], metavar="NAME")
    parser.add_argument("--estimators", nargs="+", default=[*ESTIMATORS], metavar="NAME")
    add_integers(
        parser,
        ("--steps", 300, "of a run"),
        ("--every", 7, "steps from one comparison with the exact gradient to the next"),
    )
    parser.add_argument("--head", action="store_true", help="two layers of 128 and a dense head")
    parser.add_argument(
        "--raw", type=Path, default=Path("runs/estimators.jsonl"), metavar="FILE.jsonl",
        help="the runs, a line each; a command goes on where it was; default: %(default)s",
    )  # fmt: skip
    add_out(parser)


def run(args: argparse.Namespace) -> None:
    check_positive(args, "steps", "every")
    for name in args.samplers:
        known_name("sampler", name, SAMPLERS)
    for name in args.estimators:
        known_name("estimator", name, ESTIMATORS)
    out = target(args.out)
    set_threads(1)
    runs = read_runs(args.raw)
    done = {tuple(one[name] for name in _NAMES) for one in runs}
    args.raw.parent.mkdir(parents=True, exist_ok=True)
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
            _, sampler, estimator, seed = case
            try:
                found = train(
                    graph, sampler, estimator, seed,
                    steps=args.steps, every=args.every, head=args.head,
                )  # fmt: skip
            except TrainingDiverged as error:
                found = {"failed": str(error)}
            runs.append(dict(zip(_NAMES, case, strict=True)) | found)
            with args.raw.open("a") as file:
                file.write(json.dumps(runs[-1]) + "\n")
    finish(summary(runs), table, out)


def read_runs(raw: Path) -> list[Run]:
    try:
        return [json.loads(line) for line in raw.read_text().splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise SgcnError(f"{raw} cannot be read ({error}), expected a line of JSON a run") from None


def train(
    graph: Graph,
    sampler_name: str,
    estimator: str,
    seed: int,
    *,
    steps: int,
    every: int,
    head: bool,
) -> Run:
    """One training run; the exact gradient is taken beside it and leaves no trace."""
    sampler = make_sampler(sampler_name, **OPTIONS.get(sampler_name, {}))
    schedule = {} if estimator == "full" else {"gap": 10, "warmup": 0}
    rule = make_estimator(estimator, **schedule)
    engine = make_engine(graph, sampler, rule, width=128, seed=seed, head=head)
    model = engine.model
    rule = make_estimator("full")
    exact = make_engine(graph, sampler, rule, width=128, seed=seed, model=model)
    loader = Loader(graph, engine.train, sampler, batch_size=512, seed=seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    errors, worst = [], 0.0
    for t in range(steps):
        epoch, step = divmod(t, len(loader))
        outcome = next_step(engine, loader.seeds(epoch, step), Key(seed, epoch, step))
        worst = max(worst, outcome.loss) if t >= steps // 3 else worst
        if t >= 3 and (t - 3) % every == 0 and not outcome.snapshot:
            errors.append(_distance(outcome.gradient, exact.snapshot().gradient))
        engine.apply(outcome, optimizer)
    scores = _scores(model, graph, engine.operands.task)
    return {
        "error": math.exp(np.mean(np.log(errors))) if errors else 0.0,
        "loss": scores[0]["loss"],
        "f1": scores[1]["f1_micro"],
        "snapshots": engine.progress.snapshots,
        "worst_step_loss": worst,
        "steps": steps,
        "every": every,
    }


def _distance(gradient: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> float:
    """|G - exact|^2 / |exact|^2."""
    away = sum((gradient[name] - wanted[name]).square().sum() for name in wanted)
    return float(away / sum(part.square().sum() for part in wanted.values()))


def _scores(model: Model, graph: Graph, task: Task) -> list[dict[str, float]]:
    """Of the training and of the validation nodes."""
    logits = predict(model, graph, store_of(graph.x))
    parts = [torch.from_numpy(split_nodes(graph, part)).long() for part in (0, 1)]
    return [task.score(logits.index_select(0, nodes), nodes) for nodes in parts]


def summary(runs: list[Run]) -> dict[str, Any]:
    """Means over the seeds: a row for every graph, sampler and estimator."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for one in runs:
        groups.setdefault(tuple(one[name] for name in _NAMES[:-1]), []).append(one)
    return {"results": [dict(zip(_NAMES, key, strict=False)) | _means(group)
                        for key, group in groups.items()]}  # fmt: skip


def _means(runs: list[Run]) -> Run:
    seeds = [one["seed"] for one in runs]
    if failed := [one["failed"] for one in runs if "failed" in one]:
        return {"seeds": seeds, "failed": failed[0]}
    error = float(np.exp(np.mean([np.log(max(one["error"], 1e-9)) for one in runs])))
    means = {
        name: float(np.mean([one[name] for one in runs])) for name in ("loss", "f1", "snapshots")
    }
    means["worst_step_loss"] = max(one["worst_step_loss"] for one in runs)
    same = {name: runs[0][name] for name in ("steps", "every")}
    return {"seeds": seeds, "error": error if error > 1e-8 else 0.0, **means, **same}


def table(report: dict[str, Any]) -> str:
    """Markdown: means over seeds of error / loss / F1; a row a sampler, a column an estimator."""
    rows = {tuple(row[name] for name in _NAMES[:-1]): row for row in report["results"]}
    out = ["Gradient error (geometric mean) / training loss / validation F1; means over the seeds."]
    for graph in dict.fromkeys(key[0] for key in rows):
        rule = "|---" * (len(ESTIMATORS) + 2) + "|"
        out += ["", f"| {graph} | {' | '.join(ESTIMATORS)} | seeds |", rule]
        for sampler in SAMPLERS:
            found = [rows.get((graph, sampler, name)) for name in ESTIMATORS]
            seeds = {seed for row in found if row and row["estimator"] != "full"
                     for seed in row["seeds"]}  # fmt: skip
            if any(found):
                out.append(f"| {sampler} | {' | '.join(map(_cell, found))} | {len(seeds)} |")
    return "\n".join(out)


def _cell(row: Run | None) -> str:
    if row is None:
        return ""
    if "failed" in row:
        return "failed"
    return f"{row['error']:.2g} / {row['loss']:.4f} / {row['f1']:.3f}"
