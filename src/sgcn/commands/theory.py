"""Print the paper's bounds for a graph, a model and a sampler, and what is measured beside them.

examples:
  sgcn theory synthetic:nodes=2000 --sampler neighbor,ladies,fastgcn
  sgcn theory my.npz --sampler neighbor --set sampler.weighting=row --out theory.json
  sgcn theory my.npz --set model.layer=mean --set model.activation=tanh --error 0.5
  sgcn theory --run runs/a                            at the weights of a finished run
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sgcn.commands import shared
from sgcn.errors import SgcnError

if TYPE_CHECKING:
    from sgcn.analysis.appendix import BoundOptions, Report
    from sgcn.graph import Graph
    from sgcn.nn import Model
    from sgcn.runs.config import Config


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_measuring(parser, {
        "--draws": (200, "samples to draw"),
        "--steps": (1000, "T of the theorems"),
        "--error": (0.1, "relative error that a large-batch snapshot may have"),
    })  # fmt: skip
    parser.add_argument(
        "--run", dest="trained", type=Path, metavar="RUN", help="data, options, weights of a run"
    )


def run(args: argparse.Namespace) -> None:
    from sgcn.analysis import appendix, theory
    from sgcn.files import check_target, write_text
    from sgcn.runs import directory as runs
    from sgcn.runs.layout import CONFIG
    from sgcn.task import train_nodes
    from sgcn.training.events import to_json

    if args.trained is not None:
        if args.config is not None or args.data is not None:
            raise SgcnError("--run brings its data and options, expected no DATA and no --config")
        runs.read_config(args.trained)
        args.config = args.trained / CONFIG
    configs = _configs(args)
    if args.out is not None:
        check_target("--out", args.out, (".json",))
    options = [_options(args, config) for config in configs]
    first, graph, model, why = _opened(configs[0], args.trained)
    if model is not None:
        appendix.check_room(model, graph, args.draws)
    seed = first.training.loop.seed
    rows = theory.some_rows(graph, first.training.loop.batch_size, seed)
    results: list[dict[str, Any]] = []
    for config in configs:
        sampler, depth = config.training.sampler, config.training.model.depth
        found = theory.propagation_error(
            graph, sampler, rows, draws=args.draws, seed=seed, depth=depth
        )
        if not results:
            print(f"{'sampler':<10}{'E|M - Pbar|^2':>22}{'formula':>10}{'|Pbar - P|^2':>24}"
                  f"{'formula':>10}{'rows':>9}")  # fmt: skip
        print(_row(sampler.name, found), flush=True)
        results.append({"sampler": sampler.name, **found.as_dict(), "bounds": None})
    if model is not None:
        for config, asked, result in zip(configs, options, results, strict=True):
            try:
                report = appendix.measure(model, graph, config.training.sampler, asked)
            except appendix.BeyondNumbersError as error:  # the distances stand all the same
                why = str(error)
                continue
            result["bounds"] = report.as_dict()
            lines = _lines(config.training.sampler.name, report, len(train_nodes(graph)))
            print("\n" + "\n".join(lines), flush=True)
    if why is not None:
        print(f"\nno bounds: {why}")
    if args.out is not None:
        facts = {"data": first.data, "draws": args.draws, "seed": seed, "why_no_bounds": why}
        write_text(args.out, to_json(facts | {"results": results}, indent=1) + "\n")


def _configs(args: argparse.Namespace) -> list[Config]:
    from sgcn.runs.config import make_config

    configs = []
    for values in shared.values_of_each(args, shared.names(args.sampler), [None]):
        estimator = values.setdefault("estimator", {})
        if isinstance(estimator, dict):  # else `make_config` says what is wrong
            estimator.setdefault("name", "sgcn++")  # the bounds are of its rule and of SGCN+'s
        configs.append(make_config(values))
    return configs


def _opened(config: Config, trained: Path | None) -> tuple[Config, Graph, Model | None, str | None]:
    """The graph and the model; without a model, why the bounds do not speak of it."""
    from sgcn.analysis.network import refusal
    from sgcn.data.source import open_data
    from sgcn.runs import directory as runs

    try:
        config, graph, model = runs.prepare(config)
    except SgcnError as error:  # the distances of M and P need neither features nor a model
        return config, open_data(config.data, **config.training.graph.values()), None, str(error)
    if trained is not None:
        weights = runs.open_run(trained)[2].state_dict()
        try:
            model.load_state_dict(weights)
        except RuntimeError:
            raise SgcnError(
                f"the weights of {trained} do not fit the model, expected its own: leave out --set "
                "for model and data"
            ) from None
    why = refusal(model, config.training.task.on(graph))
    return config, graph, model if why is None else None, why


def _options(args: argparse.Namespace, config: Config) -> BoundOptions:
    from sgcn.analysis.appendix import BoundOptions
    from sgcn.estimators.schedule.norm import Norm

    options = config.training.loop
    schedule = config.training.estimator.for_run().schedule
    # The paper's bounds are of its own restart rule.
    norm = schedule.restart if isinstance(schedule.restart, Norm) else Norm()
    return BoundOptions(
        batch_size=options.batch_size, draws=args.draws, seed=options.seed,
        gap=int(schedule.gap or 10), alpha=norm.alpha, beta=norm.beta,
        rate=config.training.optimizer.rate, steps=args.steps, error=args.error,
        task=config.training.task,
    )  # fmt: skip


def _row(name: str, found: Any) -> str:
    variance, bias2 = found.formula or (None, None)
    cells = [f"{name:<10}"]
    for mean, formula, width in ((found.variance, variance, 22), (found.bias2, bias2, 24)):
        cells.append(f"{f'{mean.value:.3g} +- {mean.error:.1g}':>{width}}")
        cells.append(f"{'-' if formula is None else f'{formula:.3g}':>10}")
    return "".join(cells) + f"{found.rows:>9}"


def _lines(name: str, report: Report, train: int) -> list[str]:
    """The bounds of one sampler, for people."""
    n, deltas = report.norms, report.deltas
    found = {line.name: line.measured for line in report.lines}
    wanted, size, error = report.large_batch.values()
    lines = [
        f"{name}: B_LA {n.B_LA:.3g}, B_W {n.B_W:.3g}, B_X {n.B_X:.3g}, C_sigma {n.C_sigma:.3g}, "
        f"L_sigma {n.L_sigma:.3g}, C_loss {n.C_loss:.3g}, L_loss {n.L_loss:.3g}",
        f"{'':<22}{'bound':>10}{'measured':>10}  how loose the bound is",
        *(f"{line.name:<22}{line.bound:>10.2e}{line.measured:>10.2e}  {line.sentence} ({line.what})"
          for line in report.lines),
        ", ".join(f"{key} {value:.2e}" for key, value in deltas.items()),
        *(f"theorem {number} ({'SGCN' + '+' * (number - 1)}): learning rate {theorem.rate:.2e}; "
          f"after {report.steps:,} steps mean |gradient|^2 <= {theorem.bound:.2e}; residual "
          f"error {theorem.residual:.2e}" for number, theorem in enumerate(report.theorems, 1)),
    ]  # fmt: skip
    if found["L_F"] > 0:
        rate = 1.0 / found["L_F"]
        lines.append(f"the L_F that was measured allows a learning rate of {rate:.2e}")
    return [
        *lines,
        "the residual error of theorem 1 takes Gbar for the mean gradient; the squared bias that "
        f"was measured is {found['2 (Delta_n + Delta_b)']:.2e}",
        f"a snapshot within {wanted:g} of the gradient asks for B' = {size:,} of "
        f"{train:,} training nodes; found for that size: {error:.2g}",
    ]
