"""What `sgcn variance` does: one training run for each sampler and estimator, probed on its way,
tables of them, and a picture: errors against steps, and against the distance from the last
snapshot; a row a sampler, a line an estimator."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.analysis.probe import GradientProbe
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.graph import Graph
from sgcn.nn import Model
from sgcn.options import check, integer
from sgcn.runs.config import Config
from sgcn.runs.directory import prepare
from sgcn.runs.drawing import save, sheet, styled
from sgcn.samplers import NodeSet
from sgcn.task import train_nodes
from sgcn.training.checks import rehearse
from sgcn.training.loop import fit
from sgcn.training.sinks import Progress, Sink

#: Steps that a run must have so that one of them is measured.
_FEWEST = 5


def measure(
    configs: Sequence[Config], steps: int, probes: int, every: int, *, quiet: bool = False
) -> Iterator[dict[str, Any]]:
    """The results, one after the other; everything is checked before the first run starts."""
    check("steps", steps, integer(_FEWEST))
    probe = GradientProbe(probes, every, seed=configs[0].training.loop.seed, last=steps - 1)
    for config in configs:
        estimator = config.training.estimator
        if estimator.takes_snapshots and not estimator.schedule.has_regular_steps:
            raise SgcnError(
                f"estimator {config.training.estimator_name} takes a snapshot at every step, "
                "expected one with sampled steps to measure: a gap of 2 at least"
            )
    first, graph, model = prepare(configs[0])
    chosen = first.training.model  # `auto` is decided
    configs = [replace(c, training=replace(c.training, model=chosen)) for c in configs]
    for config in configs:
        rehearse(config.training, graph, model)
    probe.check_room(model, "take fewer probes")
    return (_result(c, graph, model, replace(probe, steps=[]), steps, quiet) for c in configs)


def _result(
    config: Config, graph: Graph, fresh: Model, probe: GradientProbe, steps: int, quiet: bool
) -> dict[str, Any]:
    training, options = config.training, config.training.loop
    # No epoch is longer than a pass, and few steps are in excess.
    one_pass = options.batches_per_epoch or training.sampler.batches(
        graph, NodeSet(train_nodes(graph), len(graph)), options.batch_size
    )
    epochs = math.ceil(steps / one_pass)
    sinks: list[Sink] = [Progress()] if sys.stderr.isatty() and not quiet else []
    failed = None
    try:
        fit(
            copy.deepcopy(fresh), graph, training=training,
            estimator=training.estimator.with_options(warmup=0),  # corrections are what is measured
            epochs=epochs, batches_per_epoch=math.ceil(steps / epochs), evaluate_every=2 * steps,
            preaggregate=bool(options.preaggregate), patience=None, sinks=sinks, callbacks=[probe],
        )  # fmt: skip
    except TrainingDiverged as error:  # a finding, not the end of the other runs
        failed = str(error)
    names = {"sampler": training.sampler.name, "estimator": training.estimator_name}
    return names | ({} if failed is None else {"failed": failed}) | probe.summary()


# -- for people ---------------------------------------------------------------------------------

#: The errors, and their titles in the table and in the picture.
COLUMNS = {
    "relative_mse": ("mse", "mean-square error"),
    "relative_bias2": ("bias^2", "squared bias"),
    "relative_variance": ("variance", "variance"),
}


#: Of the mean-square error, over steps.
_GEOMETRIC = "geometric_relative_mse"


def heading() -> str:
    titles = "".join(f"{title:>22}" for title, _ in COLUMNS.values())
    return f"{'sampler':<10}{'estimator':<12}{titles}{'geometric mse':>15}"


def row(result: Mapping[str, Any]) -> str:
    """One line of the table: a number and its error a column."""
    start = f"{result['sampler']:<10}{result['estimator']:<12}"
    if "failed" in result:
        return f"{start}  failed: {result['failed']}"
    if not result["steps"]:
        return f"{start}  no sampled step was met: every one was a snapshot"
    for name in COLUMNS:
        value, error = result[name], result[f"{name}_error"]
        shown = "-" if value is None else f"{value:.3g}"
        shown += "" if value is None or error is None else f" +- {error:.1g}"
        start += f"{shown:>22}"
    return f"{start}{_cell(result[_GEOMETRIC]):>15}"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def distances(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table of the errors by the steps since the last snapshot, if any were taken."""
    ends = sorted({(d["from"], d["to"]) for result in results for d in result["by_distance"]})
    if not ends:
        return
    yield ""
    yield "geometric mse by steps since the last snapshot"
    titles = "".join(f"{low if low == high else f'{low}-{high}':>10}" for low, high in ends)
    yield f"{'sampler':<10}{'estimator':<12}{titles}"
    for result in results:
        found = {(d["from"], d["to"]): _cell(d[_GEOMETRIC]) for d in result["by_distance"]}
        cells = "".join(f"{found.get(end, ''):>10}" for end in ends)
        none = f"  no snapshots: {_cell(result[_GEOMETRIC])}"
        yield f"{result['sampler']:<10}{result['estimator']:<12}{cells if found else none}".rstrip()


@styled()
def draw(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw ``results`` of `sgcn variance` into ``out``; its name says the format."""
    samplers = list(dict.fromkeys(result["sampler"] for result in results))
    estimators = list(dict.fromkeys(result["estimator"] for result in results))
    size = 15.0, 3.2 * len(samplers)
    figure, axes = sheet(len(samplers), len(COLUMNS) + 1, *size, sharex="col", sharey="row")
    for result in results:
        *line, last = axes[samplers.index(result["sampler"])]
        color = f"C{estimators.index(result['estimator'])}"
        _draw_distances(last, result, color)
        for axis, name in zip(line, COLUMNS, strict=True):
            keys = ("step", name, f"{name}_error")  # what is missing is NaN, and has no error
            at, value, error = (np.array([s[k] for s in result["steps"]], float) for k in keys)
            # A logarithmic axis cannot show a bias that came out below zero.
            known = value > 0
            axis.errorbar(
                at[known], value[known], np.minimum(np.nan_to_num(error), 0.9 * value)[known],
                color=color, label=result["estimator"], marker="o", ms=3, elinewidth=0.8,
            )  # fmt: skip
    for line, sampler in zip(axes, samplers, strict=True):
        line[0].set(ylabel=f"{sampler}\nrelative to |G|²", yscale="log")
        line[-1].set_xscale("log", base=2)
        line[-1].xaxis.set_major_formatter("{x:.0f}")
    for column, (_, title) in enumerate(COLUMNS.values()):
        axes[0, column].set_title(title)
        axes[-1, column].set_xlabel("step")
    axes[0, -1].set_title("mean-square error; dashed: without snapshots")
    axes[-1, -1].set_xlabel("steps since the last snapshot")
    axes[0, 0].legend()
    save(figure, [out])


def _draw_distances(axis: Any, result: Mapping[str, Any], color: str) -> None:
    """Every measured step as a dot, and their geometric means as a line."""
    known = [d for d in result["by_distance"] if d[_GEOMETRIC] is not None]
    if not result["by_distance"] and result[_GEOMETRIC] is not None:
        axis.axhline(result[_GEOMETRIC], color=color, ls="--", lw=1.2)
    taken = [s for s in result["steps"] if s["since_snapshot"]]
    if known:
        dots = ([s[key] for s in taken] for key in ("since_snapshot", "relative_mse"))
        axis.plot(*dots, ".", color=color, ms=4, alpha=0.35)
        middle = [math.sqrt(d["from"] * d["to"]) for d in known]
        axis.plot(middle, [d[_GEOMETRIC] for d in known], color=color, marker="o", ms=4)
