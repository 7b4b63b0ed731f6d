"""When a snapshot is taken: the plan, and the rules that call one early.

A new restart rule is a file beside this one and a line in `RESTART_RULES`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sgcn.estimators.schedule.base import RestartRule
from sgcn.estimators.schedule.gradient import GradientDistance
from sgcn.estimators.schedule.movement import Movement
from sgcn.estimators.schedule.never import Never
from sgcn.estimators.schedule.norm import Norm
from sgcn.options import Options, auto_or, choice, integer, option, optional, real

RESTART_RULES: dict[str, type[RestartRule]] = {
    "never": Never,
    "movement": Movement,
    "norm": Norm,
    "gradient": GradientDistance,
}
_USUAL, _LEAST = 60, 10  # steps between snapshots that are far apart, and near


@dataclass
class Progress:
    """Where a run stands in its schedule."""

    steps: int = 0  # taken in all
    snapshots: int = 0
    since_snapshot: int | None = None  # steps since the last one; None before the first
    restart_called: bool = False  # the next step is an early snapshot; set when a run goes on

    def advance(self, snapshot: bool) -> None:
        """One step was taken."""
        self.steps += 1
        self.snapshots += snapshot
        self.restart_called = False
        if snapshot:
            self.since_snapshot = 1
        elif self.since_snapshot is not None:
            self.since_snapshot += 1


@dataclass(frozen=True)
class Schedule(Options):
    """A first snapshot after ``warmup`` plain steps, then one every K_s = K + g s steps."""

    gap: int | str | None = option(
        10, optional(auto_or(integer())),
        "K: a snapshot every K steps; none: only the first; auto: a quarter of the batches that "
        "all nodes make, 10 to 60, and at most a tenth of the run",
    )  # fmt: skip
    growth: float = option(0.0, real(0.0), "g: the gap grows as K + g s with snapshot s")
    warmup: int | str = option(
        0, auto_or(integer(0)),
        "plain steps before the first snapshot; auto: 60, or a tenth of a short run",
    )  # fmt: skip
    restart: RestartRule = choice(RESTART_RULES, "movement", "what calls an early snapshot")

    def for_run(self, steps: float = math.inf, batches: float = math.inf) -> Schedule:
        """Of a run of so many steps, where all nodes make so many batches: numbers for "auto".

        Errors grow with the distance from a snapshot, which costs as much as some of the batches.
        """
        warmup = int(min(_USUAL, max(2.0, steps / 10)))
        gap = int(min(warmup, max(_LEAST, batches / 4)))
        return replace(
            self,
            gap=gap if self.gap == "auto" else self.gap,
            warmup=warmup if self.warmup == "auto" else self.warmup,
        )

    @property
    def has_regular_steps(self) -> bool:
        """Whether not every step is a snapshot."""
        return self.gap != 1 or self.growth > 0

    def gap_after(self, snapshots: int) -> float:
        """K_s = K + g s."""
        if self.gap is None:
            return math.inf
        return float(self.gap) + self.growth * max(snapshots - 1, 0)

    def planned(self, progress: Progress, ahead: int = 0) -> bool:
        """Whether the step ``ahead`` of the next one is a snapshot by the plan."""
        if progress.since_snapshot is None:
            return ahead == max(int(self.warmup) - progress.steps, 0)
        waited, gap = progress.since_snapshot + ahead, self.gap_after(progress.snapshots)
        return waited >= (gap if gap == math.inf else math.floor(gap))


__all__ = ["RESTART_RULES", "Progress", "RestartRule", "Schedule"]
