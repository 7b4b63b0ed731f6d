"""What a checkpoint keeps of an engine.

Where a snapshot comes next, histories are about to be written anew and only progress is kept.
Elsewhere they go along, together with the weights that they belong to.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from sgcn.estimators.engine import Engine
from sgcn.estimators.schedule import Progress
from sgcn.rows import History
from sgcn.samplers.base import State


def save(engine: Engine) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors by name, and facts for JSON."""
    fresh = engine.due() or engine.progress.since_snapshot is None
    tensors: dict[str, Tensor] = {}
    facts: dict[str, Any] = {"progress": asdict(engine.progress), "fresh": fresh}
    if fresh:
        facts["progress"]["since_snapshot"] = None
    else:
        for name, history in _histories(engine).items():
            tensors[f"{name}.rows"] = history.data
            if history.valid is not None:
                tensors[f"{name}.valid"] = history.valid
            facts[name] = [history.norm, history.snapshot_norm]
        for name, values in _weights(engine).items():
            tensors |= {f"{name}.{key}": value for key, value in values.items()}
        if engine.pool is not None:
            tensors["pool"] = torch.from_numpy(engine.pool)
        facts |= {"drift": engine.drift, "moved": engine.past.moved}
        # The passes tell old weights by identity.
        facts["at_anchor"] = engine.previous is engine.anchor
    if engine.sampler_state is not None:
        facts["sampler_version"] = engine.sampler_state.version
        tensors |= {f"sampler.{k}": v for k, v in engine.sampler_state.tensors.items()}
    return {f"engine.{name}": tensor for name, tensor in tensors.items()}, facts


def load(engine: Engine, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Go on from what `save` gave; KeyError if it is of another estimator."""
    own = {k.removeprefix("engine."): v for k, v in tensors.items() if k.startswith("engine.")}
    engine.progress = Progress(**facts["progress"])
    if engine.sampler_state is not None:
        learned = _under(own, "sampler")
        engine.sampler_state = State(learned, facts["sampler_version"])
    if facts["fresh"]:
        return
    for name, history in _histories(engine).items():
        norm, at_snapshot = facts[name]
        history.assign(own[f"{name}.rows"], norm)
        history.valid, history.snapshot_norm = own.get(f"{name}.valid"), at_snapshot
    previous, anchor, engine.past.last, engine.past.anchor = (
        _under(own, name) for name in _weights(engine)
    )
    engine.previous = {k: v.requires_grad_() for k, v in previous.items()}
    engine.anchor = engine.previous
    if not facts["at_anchor"]:
        engine.anchor = {k: v.requires_grad_() for k, v in anchor.items()}
    engine.pool = own["pool"].numpy() if "pool" in own else None
    engine.drift, engine.past.moved = facts["drift"], facts["moved"]


def _histories(engine: Engine) -> dict[str, History]:
    named = [(f"history.{k}", h) for k, h in enumerate(engine.histories)]
    return dict(named + [(f"layer_gradients.{k}", h) for k, h in enumerate(engine.past.histories)])


def _weights(engine: Engine) -> dict[str, Any]:
    past = engine.past
    return {
        "previous": engine.previous,
        "anchor": engine.anchor,
        "last_gradient": past.last,
        "anchor_gradient": past.anchor,
    }


def _under(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    prefix = f"{name}."
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
