"""What `sgcn variance` does: one training run for each sampler and estimator, probed on its way,
a table of them, and a picture: errors against steps, a row a sampler, a line an estimator."""

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


def heading() -> str:
    titles = "".join(f"{title:>22}" for title, _ in COLUMNS.values())
    return f"{'sampler':<10}{'estimator':<12}{titles}"


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
    return start


@styled()
def draw(results: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Draw ``results`` of `sgcn variance` into ``out``; its name says the format."""
    samplers = list(dict.fromkeys(result["sampler"] for result in results))
    estimators = list(dict.fromkeys(result["estimator"] for result in results))
    size = 12.0, 3.2 * len(samplers)
    figure, axes = sheet(len(samplers), len(COLUMNS), *size, sharex=True, sharey="row")
    for result in results:
        line = axes[samplers.index(result["sampler"])]
        color = f"C{estimators.index(result['estimator'])}"
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
    for column, (_, title) in enumerate(COLUMNS.values()):
        axes[0, column].set_title(title)
        axes[-1, column].set_xlabel("step")
    axes[0, 0].legend()
    save(figure, [out])
