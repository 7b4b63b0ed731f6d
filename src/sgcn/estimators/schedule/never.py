"""No early snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.estimators.schedule.base import RestartRule


@dataclass(frozen=True)
class Never(RestartRule):
    """Snapshots come when the gap says so."""
