"""Estimators: a forward rule times a gradient rule times a schedule of snapshots."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from sgcn.errors import SgcnError
from sgcn.estimators.forward import FORWARD_RULES, ForwardRule
from sgcn.estimators.gradient import GRADIENT_RULES, GradientRule
from sgcn.estimators.schedule import RESTART_RULES, RestartRule, Schedule
from sgcn.options import Options, Rule, choice, is_integer, known_name, one_of, option, optional
from sgcn.options import part as section
from sgcn.samplers import Sampler
from sgcn.samplers.base import Estimates


def _share_or_count() -> Rule:
    return Rule(
        "a share of the training nodes above 0 and below 1, or a whole number >= 1",
        lambda v: (is_integer(v) and v >= 1) or (isinstance(v, float) and 0.0 < v < 1.0),
    )


@dataclass(frozen=True)
class Estimator(Options):
    """The axes of the paper's scheme, each with options of its own, and where histories live."""

    forward: ForwardRule = choice(FORWARD_RULES, "plain", "how embeddings are corrected")
    gradient: GradientRule = choice(GRADIENT_RULES, "plain", "how the gradient is corrected")
    schedule: Schedule = section(Schedule, "when snapshots are taken")
    snapshot_nodes: float | None = option(
        None, optional(_share_or_count()), "B' for large-batch snapshots; none: the whole graph"
    )
    table_dtype: str = option("float32", one_of("float32", "bfloat16"), "type of histories")
    table_storage: str = option("memory", one_of("memory", "disk"), "where histories live")

    def for_run(self, steps: float = math.inf, batches: float = math.inf) -> Estimator:
        """Of a run of so many steps: numbers in place of "auto"."""
        return replace(self, schedule=self.schedule.for_run(steps, batches))

    @property
    def takes_snapshots(self) -> bool:
        """Whether any of the two rules reads a snapshot."""
        return self.forward.needs_snapshot or self.gradient.needs_snapshot

    def check(self, sampler: Sampler) -> None:
        """Make sure that the rules can correct what ``sampler`` estimates."""
        if self.takes_snapshots and sampler.estimates is Estimates.OTHER:
            raise SgcnError(
                f"{sampler.name} draws blocks that estimate {sampler.estimates.value}, but rules "
                "with snapshots correct by exact sums with P: expected the rules plain and plain "
                "(sgcn), or a sampler whose blocks estimate P"
            )


#: Names of the paper and ours. `full` is the exact gradient at every step: a snapshot each time.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "full": {"forward": "plain", "gradient": "recursive", "gap": 1},
    "sgcn": {"forward": "plain", "gradient": "plain"},
    "sgcn+": {"forward": "recursive", "gradient": "plain"},
    "sgcn++": {"forward": "recursive", "gradient": "recursive"},
    "first": {"forward": "plain", "gradient": "recursive"},
    # Its histories follow its steps: the published method has no snapshots but at the start.
    "vrgcn": {"forward": "vrgcn", "gradient": "plain", "gap": None},
    "vrgcn++": {"forward": "vrgcn", "gradient": "recursive"},
    "anchored": {"forward": "anchored", "gradient": "recursive"},
    # Nothing builds up between snapshots: they may be rare, and none has to come early. At first
    # weights run away from any anchor, and plain steps do.
    "anchored++": {
        "forward": "anchored",
        "gradient": "anchored",
        "gap": "auto",
        "warmup": "auto",
        "restart": "never",
    },
}


def make_estimator(name: str = "anchored++", **options: Any) -> Estimator:
    """The estimator called ``name``, any option changed: ``forward=`` and ``gradient=`` too."""
    known_name("estimator", name, ESTIMATORS)
    return Estimator.of(ESTIMATORS[name] | options)


__all__ = [
    "ESTIMATORS",
    "FORWARD_RULES",
    "GRADIENT_RULES",
    "RESTART_RULES",
    "Estimator",
    "ForwardRule",
    "GradientRule",
    "RestartRule",
    "Schedule",
    "make_estimator",
]
