"""Ours: a snapshot when the steps since the last one have changed too much."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.estimators.schedule.base import RestartRule
from sgcn.options import option, real


@dataclass(frozen=True)
class Movement(RestartRule):
    """Drift is what rows that were not refreshed may miss; noise is what corrections have added."""

    max_drift: float = option(0.5, real(0.0, open_=True), "summed changes of Z over |Z|")
    max_noise: float = option(1.0, real(0.0, open_=True), "summed changes of G over |G|")

    def between_steps(self, drift: float, noise: float) -> bool:
        return drift >= self.max_drift or noise >= self.max_noise
