"""The events of a training as rows, for tables and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from sgcn.errors import SgcnError
from sgcn.options import known_name
from sgcn.training.events import Event

KINDS = ("step", "score", "epoch", "probe")


@dataclass(frozen=True, repr=False)
class History:
    """Events in order; each kind of them is a list of rows with the same columns."""

    events: Sequence[Event]

    @property
    def steps(self) -> list[dict[str, Any]]:
        return self.rows("step")

    @property
    def scores(self) -> list[dict[str, Any]]:
        return self.rows("score")

    @property
    def epochs(self) -> list[dict[str, Any]]:
        return self.rows("epoch")

    def rows(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The events of a ``kind``, or all, with the same columns; NaN is what an event has not.

        Scores stand as ``validation_f1_micro`` and such.
        """
        if kind is not None:
            known_name("kind", kind, KINDS)
        rows = [_row(event) for event in self.events if kind in (None, event.event)]
        empty = dict.fromkeys((column for row in rows for column in row), math.nan)
        return [empty | row for row in rows]

    def to_pandas(self, kind: str | None = None) -> Any:
        """The same as a pandas.DataFrame."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise SgcnError(
                "pandas is not installed, expected it for to_pandas(): pip install pandas, or "
                "take history.rows()"
            ) from None
        return pandas.DataFrame(self.rows(kind))

    def __repr__(self) -> str:
        return (
            f"History of {len(self.steps)} steps, {len(self.scores)} scores and "
            f"{len(self.epochs)} epochs"
        )


def _row(event: Event) -> dict[str, Any]:
    values = asdict(event)
    score = values.pop("validation", None) or {}
    return values | {f"validation_{name}": value for name, value in score.items()}
