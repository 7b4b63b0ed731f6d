"""What a checkpoint keeps of an engine.

Where a snapshot comes next, histories are about to be written anew and only progress is kept.
Elsewhere they go along, together with the weights that they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    snapshot_next = engine.due() or engine.progress.since_snapshot is None
    facts: dict[str, Any] = {"progress": asdict(engine.progress), "snapshot_next": snapshot_next}
    groups: dict[str, Mapping[str, Tensor]] = {}
    tensors: dict[str, Tensor] = {}
    if snapshot_next:
        facts["progress"] |= {"since_snapshot": None, "restart_called": engine.restart_due}
    else:
        past = engine.past
        for name, history in _histories(engine).items():
            valid = {} if history.valid is None else {"valid": history.valid}
            groups[name] = {"rows": history.all_rows()} | valid
            facts[name] = [history.norm, history.snapshot_norm]
        # Right after a snapshot these are one and the same, and passes tell by identity.
        facts["at_anchor"] = engine.previous is engine.anchor
        facts["gradient_at_anchor"] = past.last is past.anchor
        groups |= {"anchor": engine.anchor, "anchor_gradient": past.anchor}
        groups["previous"] = {} if facts["at_anchor"] else engine.previous
        groups["last_gradient"] = {} if facts["gradient_at_anchor"] else past.last
        if engine.pool is not None:
            tensors["engine.pool"] = torch.from_numpy(engine.pool)
        facts |= {"drift": engine.drift, "moved": past.moved}
    if engine.sampler_state is not None:
        facts["sampler_version"] = engine.sampler_state.version
        groups["sampler"] = engine.sampler_state.tensors
    for group, values in groups.items():
        tensors |= {f"engine.{group}.{name}": tensor for name, tensor in values.items()}
    return tensors, facts


def load(engine: Engine, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Go on from what `save` gave; KeyError if it is of another estimator."""
    own = _under(tensors, "engine")
    engine.progress = Progress(**facts["progress"])
    if engine.sampler_state is not None:
        learned = _under(own, "sampler")
        engine.sampler_state = State(learned, facts["sampler_version"])
    if facts["snapshot_next"]:
        return
    for name, history in _histories(engine).items():
        norm, at_snapshot = facts[name]
        history.assign(own[f"{name}.rows"], norm)
        history.valid, history.snapshot_norm = own.get(f"{name}.valid"), at_snapshot
    anchor, previous = (
        {k: v.requires_grad_() for k, v in _under(own, name).items()}
        for name in ("anchor", "previous")
    )
    engine.anchor, engine.previous = anchor, anchor if facts["at_anchor"] else previous
    engine.past.anchor = engine.past.last = _under(own, "anchor_gradient")
    if not facts["gradient_at_anchor"]:
        engine.past.last = _under(own, "last_gradient")
    engine.pool = own["pool"].numpy() if "pool" in own else None
    engine.drift, engine.past.moved = facts["drift"], facts["moved"]


def _histories(engine: Engine) -> dict[str, History]:
    named = [(f"history.{k}", h) for k, h in enumerate(engine.histories)]
    return dict(named + [(f"layer_gradients.{k}", h) for k, h in enumerate(engine.past.histories)])


def _under(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    prefix = f"{name}."
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
