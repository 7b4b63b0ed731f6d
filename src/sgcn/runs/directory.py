"""Run directories: what `sgcn train` writes, and reading it back."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from sgcn.data.source import is_file, open_data
from sgcn.errors import SgcnError, TrainingDiverged, TrainingInterrupted
from sgcn.estimators.engine import worth_preaggregating
from sgcn.files import can_be_made, nearest_folder, write_text
from sgcn.graph import Graph
from sgcn.machine import peak_memory
from sgcn.nn import Model, make_model
from sgcn.runs import curves
from sgcn.runs.config import Config, make_config, read_toml
from sgcn.runs.layout import CONFIG, METRICS, MODEL, STATE, SUMMARY, is_run
from sgcn.task import Task
from sgcn.training.checkpoints import write_tensors
from sgcn.training.checks import check_features, rehearse
from sgcn.training.events import to_json
from sgcn.training.loop import Callback, Fitted, fit
from sgcn.training.options import Auto, LoopOptions
from sgcn.training.sinks import JsonLines, Progress, Sink
from sgcn.version import __version__

#: Makes what looks at the gradient's error every ``probe_every`` steps, or refuses to.
MakeProbe = Callable[[LoopOptions, Model], Callback]


def prepare(config: Config) -> tuple[Config, Graph, Model]:
    """The graph and the fresh model of ``config``, everything checked before any work starts."""
    training = config.training
    graph = open_data(config.data, **training.graph.values())
    if is_file(config.data):  # a run may be resumed from another folder
        config = replace(config, data=str(Path(config.data).resolve()))
    check_features(graph, config.data)
    task = Task.of(graph)
    if isinstance(training.model.layer, Auto):
        layer = "concat" if task.multi_label else "mean"
        training = replace(training, model=training.model.with_options(layer=layer))
    model = make_model(
        graph.x.shape[1], task.classes, **training.model.values(), seed=training.loop.seed
    )
    return replace(config, training=training), graph, model


def check_output(out: Path, *, force: bool = False) -> None:
    """Make sure that a new run may be written to ``out``."""
    if is_run(out):
        if not force:
            raise SgcnError(
                f"{out} is a run already, expected a new directory: --force or --resume"
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SgcnError(f"{out} exists and is not a run, expected a new or empty directory")
    if not can_be_made(out):
        raise SgcnError(f"{out} cannot be made, expected a place where files can be written")


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    make_probe: MakeProbe | None = None,
) -> dict[str, Any]:
    """Train into the run directory ``out``; its summary. With ``force`` it may replace a run."""
    if not resume:
        check_output(out, force=force)
    config, graph, model = prepare(config)
    training = config.training
    if training.loop.preaggregate is None:
        pays = worth_preaggregating(model, graph, training.sampler)
        training = training.changed(preaggregate=pays)
    config = replace(config, training=training)
    rehearse(training, graph, model)
    loop = training.loop
    callbacks = []
    if loop.probe_every is not None:
        if make_probe is None:
            raise SgcnError(f"probe_every is {loop.probe_every}, expected none: there is no probe")
        callbacks = [make_probe(loop, model)]
    needed = 8 * sum(p.numel() * p.element_size() for p in model.parameters()) + (1 << 20)
    if shutil.disk_usage(nearest_folder(out)).free < needed:
        raise SgcnError(f"{out} has less than {needed >> 20} MB free, expected room for the run")
    try:
        if not resume:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            write_text(out / CONFIG, config.to_toml())
        sinks: list[Sink] = [JsonLines(out / METRICS)]
        if not quiet:
            sinks.append(Progress())
        try:
            fitted = fit(
                model, graph, training=training, sinks=sinks, callbacks=callbacks,
                state=out / STATE, progress=False,
            )  # fmt: skip
        except TrainingInterrupted as stopped:
            if stopped.fitted.best_step >= 0:
                write_tensors(out / MODEL, dict(model.state_dict()))
            raise TrainingInterrupted(
                f"stopped after {stopped.fitted.steps} steps; go on with: sgcn train --resume "
                f"{out}",
                stopped.exit_code - 128,
                stopped.fitted,
            ) from None
        except TrainingDiverged as diverged:
            if diverged.fitted is not None:
                _finish(out, model, diverged.fitted, config, diverged=str(diverged))
            raise
        return _finish(out, model, fitted, config)
    except OSError as error:
        raise SgcnError(
            f"{out} cannot be written ({error.strerror or error}): make room, then "
            f"sgcn train --resume {out}"
        ) from None


def _finish(
    out: Path, model: Model, fitted: Fitted, config: Config, diverged: str | None = None
) -> dict[str, Any]:
    """Write what a run that has ended leaves; its summary, whose presence says that it has."""
    write_tensors(out / MODEL, dict(model.state_dict()))
    curves.draw([out])
    summary = _summary(fitted, config) | {"diverged": diverged}
    write_text(out / SUMMARY, to_json(summary, indent=1) + "\n")
    return summary


def _summary(fitted: Fitted, config: Config) -> dict[str, Any]:
    import numba

    return {
        "data": config.data,
        "sampler": config.training.sampler.name,
        "estimator": config.training.estimator_name,
        **asdict(fitted),
        "peak_rss_mb": peak_memory() / 2**20,
        "seed": config.training.loop.seed,
        "versions": {
            "sgcn": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "numba": numba.__version__,
        },
    }


def read_config(run: Path) -> Config:
    if not is_run(run):
        raise SgcnError(f"{run} is not a run directory, expected one that sgcn train wrote")
    return make_config(read_toml(run / CONFIG))


def open_run(run: Path) -> tuple[Config, Graph, Model]:
    """A finished run's configuration, graph and trained model."""
    config, graph, model = prepare(read_config(run))
    if not (run / MODEL).is_file():
        raise SgcnError(
            f"{run} has no {MODEL} yet, expected a finished run: sgcn train --resume {run}"
        )
    try:
        model.load_state_dict(load_file(run / MODEL))
    except Exception as error:
        raise SgcnError(
            f"{run / MODEL} does not fit the model of {CONFIG}, expected the weights it was "
            f"trained to ({str(error).splitlines()[0]})"
        ) from None
    return config, graph, model
