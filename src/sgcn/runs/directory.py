"""Run directories: what `sgcn train` writes, and reading it back."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file as load_array
from safetensors.numpy import save as save_array
from safetensors.torch import load_file

from sgcn.data.describe import summary as summary_of
from sgcn.data.scaling import Scaling
from sgcn.data.source import check_data, is_file, open_data
from sgcn.errors import SgcnError, TrainingDiverged, TrainingInterrupted
from sgcn.estimators.engine import worth_preaggregating
from sgcn.files import can_be_made, nearest_folder, write_bytes, write_text
from sgcn.graph import Graph
from sgcn.machine import peak_memory
from sgcn.nn import Model, make_model
from sgcn.runs import curves
from sgcn.runs.choosing import MakeProbe, decide, names_nodes
from sgcn.runs.config import Config, make_config, read_toml
from sgcn.runs.layout import CONFIG, METRICS, MODEL, SCALING, STATE, SUMMARY, is_run
from sgcn.sources import NodeSource
from sgcn.task import train_nodes
from sgcn.training.checkpoints import write_tensors
from sgcn.training.checks import check_features, rehearse
from sgcn.training.events import to_json
from sgcn.training.loop import Callback, Fitted, fit
from sgcn.training.optimizers import Auto as AutoOptimizer
from sgcn.training.options import Auto
from sgcn.training.sinks import JsonLines, Progress, Sink
from sgcn.version import __version__


def prepare(config: Config) -> tuple[Config, Graph, Model]:
    """The graph and the fresh model of ``config``, everything checked before any work starts."""
    config, graph, _ = _opened(config)
    config, model = _with_model(config, graph)
    return config, graph, model


def _opened(config: Config, run: Path | None = None) -> tuple[Config, Graph, Scaling]:
    """The graph, and how its features were scaled: as ``run`` has kept it, if it has."""
    training = config.training
    graph = open_data(config.data, **training.graph.values() | {"features": "raw"})
    if is_file(config.data):  # a run may be resumed from another folder
        config = replace(config, data=str(Path(config.data).resolve()))
    check_features(graph, config.data)
    training.task.on(graph)  # labels that cannot be learned are refused first
    train_nodes(graph)
    scaling = scaling_of(graph, training.graph.features, run)
    graph = scaling.apply(graph)
    training = replace(training, graph=replace(training.graph, features=scaling.kind))
    return replace(config, training=training), graph, scaling


def _with_model(config: Config, graph: Graph) -> tuple[Config, Model]:
    """The fresh model, of a layer by the data if no trial has decided it."""
    training = config.training
    task = training.task.on(graph)
    if isinstance(training.model.layer, Auto):
        layer = "concat" if task.multi_label and not names_nodes(graph) else "mean"
        training = replace(training, model=training.model.with_options(layer=layer))
    if isinstance(training.optimizer.name, AutoOptimizer):  # what it stands for
        training = replace(training, optimizer=training.optimizer.with_options(name="muon"))
    dropout = 0.0 if training.model.dropout == "auto" else training.model.dropout
    shape = replace(training.model, dropout=dropout, layers=training.model.depth)
    training = replace(training, model=shape)
    model = make_model(
        graph.x.shape[1], task.outputs, **training.model.values(), seed=training.loop.seed
    )
    model.scale_outputs(task.scale)
    return replace(config, training=training), model


def scaling_of(graph: Graph, kind: str, run: Path | None) -> Scaling:
    """By the statistics that ``run`` has kept, or by those of ``graph``."""
    if run is None or not (run / SCALING).is_file():
        return Scaling.of(graph, kind)
    try:
        return Scaling.from_tensors(kind, load_array(run / SCALING))
    except Exception as error:
        raise SgcnError(
            f"{run / SCALING} cannot be read, expected the scales of the run's features ({error})"
        ) from None


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


def free_place(out: Path) -> Path:
    """``out``, or if it is taken the first of ``out-run2``, ``out-run3`` .. that is not."""
    return next(place for place in _places(out) if not os.path.lexists(place))


def last_place(out: Path) -> Path:
    """The last of ``out``, ``out-run2`` .. before the first that is not taken."""
    taken = list(takewhile(os.path.lexists, _places(out)))
    if not taken:
        raise SgcnError(f"{out} does not exist, expected a folder of runs to go on with: --out DIR")
    return taken[-1]


def _places(out: Path) -> Iterator[Path]:
    yield out
    yield from (out.with_name(f"{out.name}-run{number}") for number in count(2))


def _check_room(out: Path, model: Model) -> None:
    needed = 8 * sum(p.numel() * p.element_size() for p in model.parameters()) + (1 << 20)
    if shutil.disk_usage(nearest_folder(out)).free < needed:
        raise SgcnError(f"{out} has less than {needed >> 20} MB free, expected room for the run")


def header(config: Config, graph: Graph, model: Model) -> str:
    """What is trained on what, and how, in two lines."""
    chosen, parameters = config.training, sum(p.numel() for p in model.parameters())
    kind, optimizer, loop = chosen.tables()["model"], chosen.optimizer, chosen.loop
    source = NodeSource(
        graph, train_nodes(graph), chosen.sampler, batch_size=loop.batch_size,
        batches_per_epoch=loop.batches_per_epoch,
    )  # fmt: skip
    nodes = int((graph.split == 0).sum()) if loop.inductive else len(graph)
    plan = chosen.estimator.for_run(loop.budget(len(source)), nodes / loop.batch_size).schedule
    gap = "none" if plan.gap is None else plan.gap
    snapshots = f"gap {gap}, warmup {plan.warmup}, " if chosen.estimator.takes_snapshots else ""
    return (
        f"{config.data}: {summary_of(graph)}\n"
        f"{kind['layer']}, {kind['layers']} layers, widths {kind['widths']}, {parameters:,} "
        f"parameters; sampler {chosen.sampler.name}, estimator {chosen.estimator_name}, "
        f"{snapshots}optimizer {optimizer.values()['name']}, lr {optimizer.rate:g}; cpu, "
        f"{torch.get_num_threads()} threads"
    )


def train(
    config: Config,
    out: Path,
    *,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    make_probe: MakeProbe | None = None,
    trials: bool = True,
) -> dict[str, Any]:
    """Train into the run directory ``out``; its summary. With ``force`` it may replace a run.

    Without ``trials`` the layer follows the labels where it is `auto`.
    """
    check_data(config.data)
    if not resume:
        check_output(out, force=force)
    config, graph, scaling = _opened(config, out if resume else None)
    _check_room(out, _with_model(config, graph)[1])
    if trials and config.auto and not resume:
        say = (lambda line: None) if quiet else partial(print, file=sys.stderr, flush=True)
        try:
            config = decide(config, graph, lambda c, g: _with_model(c, g)[1], say, make_probe)
        except TrainingInterrupted as stopped:
            raise TrainingInterrupted(
                "stopped while options were tried, before the run began: nothing was written",
                stopped.exit_code - 128, stopped.fitted,
            ) from None  # fmt: skip
    config, model = _with_model(config, graph)
    training = config.training
    if training.loop.preaggregate is None:
        pays = worth_preaggregating(model, graph, training.sampler)
        training = training.changed(preaggregate=pays)
    config = replace(config, training=training)
    rehearse(training, graph, model)
    text = config.to_toml()
    loop = training.loop
    callbacks = []
    if loop.probe_every is not None:
        if make_probe is None:
            raise SgcnError(f"probe_every is {loop.probe_every}, expected none: there is no probe")
        callbacks = [make_probe(loop, model)]
    try:
        if not resume:
            check_output(out, force=force)  # another run may have begun there meanwhile
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir(parents=True)
            if kept := scaling.tensors():
                write_bytes(out / SCALING, save_array(kept))
            write_text(out / CONFIG, text)
        sinks: list[Sink] = [JsonLines(out / METRICS)]
        if not quiet:
            print(header(config, graph, model), f"into {out}", sep="\n", file=sys.stderr)
            sinks.append(Progress())
        return _trained(out, config, graph, model, sinks, callbacks)
    except OSError as error:
        raise SgcnError(
            f"{out} cannot be written ({error.strerror or error}): make room, then "
            f"sgcn train --resume {out}"
        ) from None


def _trained(
    out: Path, config: Config, graph: Graph, model: Model, sinks: list[Sink],
    callbacks: list[Callback],
) -> dict[str, Any]:  # fmt: skip
    """The summary of training; the best weights are kept however it ends."""
    try:
        fitted = fit(
            model, graph, training=config.training, sinks=sinks, callbacks=callbacks,
            state=out / STATE, progress=False,
        )  # fmt: skip
    except TrainingInterrupted as stopped:
        if stopped.fitted.best_step >= 0:
            write_tensors(out / MODEL, dict(model.state_dict()))
        raise TrainingInterrupted(
            f"stopped after {stopped.fitted.steps} steps; go on with: sgcn train --resume {out}",
            stopped.exit_code - 128,
            stopped.fitted,
        ) from None
    except TrainingDiverged as diverged:
        if diverged.fitted is not None:
            _finish(out, model, diverged.fitted, config, diverged=str(diverged))
        raise
    return _finish(out, model, fitted, config)


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


def open_run(run: str | Path) -> tuple[Config, Graph, Model]:
    """A finished run's configuration, graph and trained model."""
    run = Path(run)
    config, graph, _ = _opened(read_config(run), run)
    config, model = _with_model(config, graph)
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
