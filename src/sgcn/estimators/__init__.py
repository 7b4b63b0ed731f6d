"""Estimators: a forward rule times a gradient rule, and when to take a snapshot."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sgcn.errors import SgcnError
from sgcn.estimators.forward import FORWARD_RULES
from sgcn.estimators.gradient import GRADIENT_RULES
from sgcn.options import Options, Rule, flag, integer, nearest, one_of, option, optional, real


def _share_or_count() -> Rule:
    return Rule(
        "a share of the training nodes above 0 and below 1, or a whole number >= 1",
        lambda v: (
            isinstance(v, (int, float))
            and not isinstance(v, bool)
            and (0.0 < v < 1.0 or (v >= 1 and v == int(v)))
        ),
    )


@dataclass(frozen=True)
class Estimator(Options):
    """The two axes of the paper's scheme and its snapshot schedule."""

    forward: str = option("plain", one_of(*FORWARD_RULES), "how embeddings are corrected")
    gradient: str = option("plain", one_of(*GRADIENT_RULES), "how the gradient is corrected")
    gap: int = option(10, integer(), "K: a snapshot every K steps")
    growth: float = option(0.0, real(0.0), "g: the gap grows as K + g s with snapshot s")
    warmup: int = option(0, integer(0), "plain steps before the first snapshot")
    restart: str = option(
        "movement",
        one_of("movement", "norm", "gradient", "none"),
        "what calls an early snapshot (a restart)",
    )
    drift: float = option(0.5, real(0.0, open_=True), "movement rule: summed changes of Z over |Z|")
    noise: float = option(1.0, real(0.0, open_=True), "movement rule: summed changes of G over |G|")
    alpha: float = option(1.1, real(1.0), "norm rule: embeddings may grow by this factor")
    beta: float = option(1.1, real(1.0), "norm rule: layer gradients may grow by this factor")
    distance: float = option(0.002, real(0.0, open_=True), "gradient rule: |G - G_s| over |G_s|")
    snapshot_nodes: float | None = option(
        None, optional(_share_or_count()), "B' for large-batch snapshots; none: the whole graph"
    )
    layer_gradients: bool = option(False, flag(), "keep the table of layer gradients D")
    table_dtype: str = option("float32", one_of("float32", "bfloat16"), "type of history tables")
    table_storage: str = option("memory", one_of("memory", "disk"), "where history tables live")

    @property
    def takes_snapshots(self) -> bool:
        """Whether any of the two rules reads a snapshot."""
        return (
            FORWARD_RULES[self.forward].needs_snapshot
            or GRADIENT_RULES[self.gradient].needs_snapshot
        )


#: Names of the paper and ours. `full` is the exact gradient at every step: a snapshot each time.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "full": {"forward": "plain", "gradient": "recursive", "gap": 1},
    "sgcn": {"forward": "plain", "gradient": "plain"},
    "sgcn+": {"forward": "recursive", "gradient": "plain"},
    "sgcn++": {"forward": "recursive", "gradient": "recursive"},
    "first": {"forward": "plain", "gradient": "recursive"},
    # Its histories follow its steps: the published method has no snapshots but at the start.
    "vrgcn": {"forward": "vrgcn", "gradient": "plain", "gap": 1000},
    "vrgcn++": {"forward": "vrgcn", "gradient": "recursive"},
    "anchored": {"forward": "anchored", "gradient": "recursive"},
    # Nothing builds up between snapshots: they may be rare, and none has to come early. At first
    # weights run away from any anchor, and plain steps do.
    "anchored++": {
        "forward": "anchored",
        "gradient": "anchored",
        "gap": 60,
        "warmup": 60,
        "restart": "none",
    },
}


def make_estimator(name: str = "anchored++", **options: Any) -> Estimator:
    """The estimator called ``name``, any option changed: ``forward=`` and ``gradient=`` too."""
    if name not in ESTIMATORS:
        raise SgcnError(
            f"estimator is {name!r}, expected one of {', '.join(ESTIMATORS)}"
            f"{nearest(name, ESTIMATORS)}"
        )
    known = [field.name for field in fields(Estimator)]
    for key in options:
        if key not in known:
            raise SgcnError(
                f"estimator {name} has no option {key!r}, expected one of {', '.join(known)}"
                f"{nearest(key, known)}"
            )
    return Estimator(**(ESTIMATORS[name] | options))


__all__ = ["ESTIMATORS", "Estimator", "make_estimator"]
