"""What `sgcn variance` does: one training run for each sampler and estimator, probed on its way."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sgcn.analysis.probe import GradientProbe
from sgcn.errors import SgcnError, TrainingDiverged
from sgcn.graph import Graph
from sgcn.machine import check_memory
from sgcn.nn import Model
from sgcn.options import check, integer
from sgcn.runs.config import Config
from sgcn.runs.directory import prepare, rehearse
from sgcn.samplers import NodeSet
from sgcn.task import train_nodes
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
    configs = [
        replace(config, training=replace(config.training, model=chosen)) for config in configs
    ]
    for config in configs:
        rehearse(config, graph, model)
    weights = sum(p.numel() for p in model.parameters())
    needed = probe.bytes_needed(weights)
    check_memory(needed, f"{probes} probes of {weights:,} weights", "take fewer probes")
    return (
        _result(config, graph, model, replace(probe, steps=[]), steps, quiet) for config in configs
    )


def _result(
    config: Config, graph: Graph, fresh: Model, probe: GradientProbe, steps: int, quiet: bool
) -> dict[str, Any]:
    training, options = config.training, config.training.loop
    epochs, batches = _schedule(config, graph, steps)
    sinks: list[Sink] = [Progress()] if sys.stderr.isatty() and not quiet else []
    failed = None
    try:
        fit(
            copy.deepcopy(fresh), graph, training=training,
            estimator=training.estimator.with_options(warmup=0),  # corrections are what is measured
            epochs=epochs, batches_per_epoch=batches, preaggregate=bool(options.preaggregate),
            evaluate_every=epochs, patience=None, sinks=sinks, callbacks=[probe],
        )  # fmt: skip
    except TrainingDiverged as error:  # a finding, not the end of the other runs
        failed = str(error)
    names = {"sampler": training.sampler.name, "estimator": training.estimator_name}
    return names | ({} if failed is None else {"failed": failed}) | probe.summary()


def _schedule(config: Config, graph: Graph, steps: int) -> tuple[int, int]:
    """Epochs and batches in each: no epoch is longer than a pass, and few steps are in excess."""
    options = config.training.loop
    train = train_nodes(graph)
    one_pass = options.batches_per_epoch or config.training.sampler.batches(
        graph, NodeSet(train, len(graph)), options.batch_size
    )
    epochs = -(-steps // one_pass)
    return epochs, -(-steps // epochs)


# -- for people ---------------------------------------------------------------------------------

COLUMNS = {
    "relative_mse": "mse",
    "relative_bias2": "bias^2",
    "relative_variance": "variance",
}


def heading() -> str:
    return f"{'sampler':<10}{'estimator':<12}" + "".join(
        f"{title:>22}" for title in COLUMNS.values()
    )


def row(result: Mapping[str, Any]) -> str:
    """One line of the table: a number and its error a column."""
    start = f"{result['sampler']:<10}{result['estimator']:<12}"
    if "failed" in result:
        return f"{start}  failed: {result['failed']}"
    if not result["steps"]:
        return f"{start}  no sampled step was met: every one was a snapshot"
    return start + "".join(
        f"{_shown(result[name], result[f'{name}_error']):>22}" for name in COLUMNS
    )


def _shown(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" + ("" if error is None else f" +- {error:.1g}")
