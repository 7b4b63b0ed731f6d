"""Run directories: what `sgcn train` writes, and reading it back."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from sgcn.compute.operators import BlockOperator, Operator, Preaggregated
from sgcn.data.source import is_file, open_data
from sgcn.errors import SgcnError
from sgcn.estimators.engine import can_preaggregate
from sgcn.graph import Graph
from sgcn.nn import Model, make_model
from sgcn.rng import Key
from sgcn.rows import Features
from sgcn.runs.config import Config, make_config, read_toml
from sgcn.runs.layout import CONFIG, METRICS, MODEL, STATE, SUMMARY, is_run
from sgcn.samplers import make_sampler
from sgcn.task import Task, train_nodes
from sgcn.training.checkpoints import write_tensors, write_text
from sgcn.training.events import JsonLines, ProbeEvent, Progress, Sink, to_json
from sgcn.training.loop import Callback, Fitted, fit
from sgcn.training.optimizers import light
from sgcn.version import __version__

_PROBES = 8  # draws a look at the gradient's error


def prepare(config: Config) -> tuple[Config, Graph, Model]:
    """The graph and the fresh model of ``config``, everything checked before any work starts."""
    graph = open_data(config.data, **asdict(config.graph))
    if is_file(config.data):  # a run may be resumed from another folder
        config = replace(config, data=str(Path(config.data).resolve()))
    if graph.x is None:
        raise SgcnError(f"{config.data} has no features, expected x with one row for each node")
    values = graph.x.data if hasattr(graph.x, "indptr") else graph.x
    if not np.isfinite(values).all():
        raise SgcnError(f"{config.data} has features that are NaN or infinite, expected numbers")
    task = Task.of(graph)
    if config.model.layer == "auto":
        layer = "concat" if task.multi_label else "mean"
        config = replace(config, model=replace(config.model, layer=layer))
    kind = config.model
    widths = kind.widths
    if isinstance(widths, tuple) and len(widths) != kind.layers:
        raise SgcnError(
            f"model.widths has {len(widths)} entries, expected one number or one for each of the "
            f"{kind.layers} layers"
        )
    model = make_model(
        graph.x.shape[1], task.classes, layer=kind.layer, widths=widths, layers=kind.layers,
        activation=kind.activation, dropout=kind.dropout, bias=kind.bias, head=kind.head,
        seed=config.training.seed,
    )  # fmt: skip
    return config, graph, model


def rehearse(config: Config, graph: Graph, model: Model) -> None:
    """Run ``model`` on the sample of one node: what does not fit shows before any work is done."""
    early = bool(config.training.preaggregate)
    if model.depth - early < 1:
        raise SgcnError("preaggregate leaves nothing to sample, expected at least two layers")
    # Subgraphs fit any depth and hold their own rows; a small sample stands in for a big one.
    sampler = make_sampler("neighbor", sizes=1) if config.sampler.draws_nodes else config.sampler
    batch = sampler.sample(graph, train_nodes(graph)[:1], Key(0), model.depth - early)
    x = Features.of(graph.x).rows(batch.inputs)
    operators: list[Operator] = [BlockOperator(block) for block in batch.blocks]
    model(([Preaggregated(x.dense(), None)] if early else []) + operators, x)


def check_place(out: Path, *, force: bool = False) -> None:
    """Make sure that a new run may be written to ``out``."""
    if is_run(out):
        if not force:
            raise SgcnError(
                f"{out} is a run already, expected a new directory: --force or --resume"
            )
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SgcnError(f"{out} exists and is not a run, expected a new or empty directory")
    home = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not home.is_dir() or not os.access(home, os.W_OK):
        raise SgcnError(f"{out} cannot be made, expected a place where files can be written")


def train(
    config: Config, out: Path, *, resume: bool = False, force: bool = False, quiet: bool = False
) -> dict[str, Any]:
    """Train into the run directory ``out``; its summary. With ``force`` it may replace a run."""
    if not resume:
        check_place(out, force=force)
    config, graph, model = prepare(config)
    if config.training.preaggregate is None:
        early = can_preaggregate(model, graph, config.sampler)
        config = replace(config, training=replace(config.training, preaggregate=early))
    rehearse(config, graph, model)
    home = next(path for path in (out, *out.absolute().parents) if path.exists())
    weights = sum(p.numel() for p in model.parameters())
    if config.training.probe_every is not None:
        from sgcn.analysis.probe import GradientProbe
        from sgcn.machine import check_memory

        check_memory(
            GradientProbe(_PROBES).bytes_needed(weights), f"probes of {weights:,} weights",
            "leave out training.probe_every",
        )  # fmt: skip
    needed = 8 * sum(p.numel() * p.element_size() for p in model.parameters()) + (1 << 20)
    if shutil.disk_usage(home).free < needed:
        raise SgcnError(f"{out} has less than {needed >> 20} MB free, expected room for the run")
    try:
        return _train(config, graph, model, out, resume, quiet)
    except OSError as error:
        raise SgcnError(
            f"{out} cannot be written ({error.strerror or error}): make room, then "
            f"sgcn train --resume {out}"
        ) from None


def _train(
    config: Config, graph: Graph, model: Model, out: Path, resume: bool, quiet: bool
) -> dict[str, Any]:
    if not resume:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        write_text(out / CONFIG, config.to_toml())
    metrics = JsonLines(out / METRICS, _metrics_bytes(out) if resume else 0)
    sinks: list[Sink] = [metrics]
    if not quiet:
        sinks.append(Progress())
    options = config.training
    fitted = fit(
        model, graph, sampler=config.sampler, estimator=config.estimator,
        optimizer=lambda parameters: optimizer_of(config, parameters),
        epochs=options.epochs, batch_size=options.batch_size,
        batches_per_epoch=options.batches_per_epoch, inductive=options.inductive,
        preaggregate=options.preaggregate, average=options.average,
        evaluate_every=options.evaluate_every,
        best_by=options.best_by, patience=options.patience, seed=options.seed,
        threads=options.threads, sinks=sinks, callbacks=_probes(config, metrics), state=out / STATE,
        checkpoint_seconds=options.checkpoint_seconds,
    )  # fmt: skip
    write_tensors(out / MODEL, dict(model.state_dict()))
    from sgcn.runs.curves import draw

    draw([out])
    summary = _summary(fitted, config)
    write_text(out / SUMMARY, to_json(summary, indent=1) + "\n")  # last: its presence says done
    return summary


def _probes(config: Config, metrics: Sink) -> list[Callback]:
    """What measures the gradient's error on the way, if it is asked for."""
    if config.training.probe_every is None:
        return []
    from sgcn.analysis.probe import GradientProbe, Measured

    def tell(found: Measured) -> None:
        errors = (found.total.mse.value, found.total.bias2.value, found.total.variance.value)
        metrics.emit(ProbeEvent(found.step, *errors))

    every, seed = config.training.probe_every, config.training.seed
    return [GradientProbe(_PROBES, every, seed=seed, tell=tell)]


def optimizer_of(config: Config, parameters: Any) -> torch.optim.Optimizer:
    chosen = config.optimizer
    kinds: dict[str, type[torch.optim.Optimizer]] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "sgd": torch.optim.SGD,
        "rmsprop": torch.optim.RMSprop,
        "adagrad": torch.optim.Adagrad,
    }
    extra = {"momentum": chosen.momentum} if chosen.name in ("sgd", "rmsprop") else {}
    make: Callable[..., torch.optim.Optimizer] = light(kinds[chosen.name])
    return make(parameters, lr=chosen.lr, weight_decay=chosen.weight_decay, **extra)


def _metrics_bytes(out: Path) -> int:
    from sgcn.training.checkpoints import load_state

    saved = load_state(out / STATE)
    return 0 if saved is None else int(saved[1]["metrics_bytes"][0])


def _summary(fitted: Fitted, config: Config) -> dict[str, Any]:
    import numba

    return {
        "data": config.data,
        "sampler": config.sampler.name,
        "estimator": config.estimator_name,
        **asdict(fitted),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "seed": config.training.seed,
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
