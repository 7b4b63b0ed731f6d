"""Whether what the paper says of an experiment was seen, and by how much: one sentence a page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sgcn.experiments.core import ROWS, Run, grouped
from sgcn.experiments.measures import spread

#: Numbers by the places where they were found, such as ``ppi neighbor``.
Margins = Iterator[tuple[str, float]]
Measure = Callable[[Sequence[Run]], Margins]


class Claim(NamedTuple):
    """It was seen where its margin is above 0, or under ``most`` if there is such a number.

    Without ``words`` the paper says nothing.
    """

    words: str | None
    margins: Measure
    unit: str  # of the margins, and what they are
    most: float | None = None

    def sentence(self, runs: Sequence[Run]) -> str:
        found = list(self.margins(runs))
        by = ", ".join(f"{place} {_shown(margin)}" for place, margin in found)
        by = f"{self.unit}: {by or 'nothing to compare'}."
        if self.words is None:
            return f"The paper draws no conclusion from this figure; {by}"
        most = self.most
        seen = sum(margin > 0.0 if most is None else margin < most for _, margin in found)
        verdict = "was not put to the test"
        if found:
            verdict = f"was seen in {seen} of {len(found)} cases"
            verdict = {0: "was not seen", len(found): "was seen"}.get(seen, verdict)
        return f"The paper's claim that {self.words} {verdict}; {by}"


def _shown(margin: float) -> str:
    return f"{margin + 0.0:+.3g}" if math.isfinite(margin) else "diverged"


def _mean(runs: Sequence[Run], quantity: str, **names: str) -> float:
    """Of the runs whose cases are called so."""
    chosen = [run for run in runs if names.items() <= run.case.columns.items()]
    return spread(chosen, quantity)[0]


def corrected(quantity: str, sign: float, share: bool = False) -> Measure:
    """SGCN++ over the first row of its sampler, which is the plain one; as a share in percent."""

    def margins(runs: Sequence[Run]) -> Margins:
        for place, here in grouped(runs, lambda r: r.case.place).items():
            plain = next(iter(ROWS[here[0].case.sampler].estimators))
            if {plain, "sgcn++"} <= {run.case.estimator for run in here} and plain != "sgcn++":
                before, after = (_mean(here, quantity, estimator=e) for e in (plain, "sgcn++"))
                margin = sign * (after - before)
                yield place, 100.0 * margin / before if share else margin

    return margins


def settings(quantity: str, sign: float, share: bool = False) -> Measure:
    """The last setting over the first one, for every estimator; as a share in percent."""

    def margins(runs: Sequence[Run]) -> Margins:
        for words, here in grouped(runs, lambda r: f"{r.case.place} {r.case.estimator}").items():
            first, *_, last = [*dict.fromkeys(run.case.setting for run in here)] * 2
            if first != last:
                before, after = (_mean(here, quantity, setting=s) for s in (first, last))
                margin = sign * (after - before)
                yield words, 100.0 * margin / before if share else margin

    return margins


def added_computing(runs: Sequence[Run]) -> Margins:
    """Seconds of sampling over those of computing that SGCN++ adds."""
    for graph, here in grouped(runs, lambda r: r.case.data.label).items():
        sampling = _mean(here, "regular_sampling", estimator="sgcn++")
        after, before = (_mean(here, "compute", estimator=e) for e in ("sgcn++", "sgcn"))
        yield graph, sampling - (after - before)


def less_lost(runs: Sequence[Run]) -> Margins:
    """What SGCN++ loses less than SGCN from the largest size to the smallest."""
    lost = dict(settings("test_f1", 1.0)(runs))
    for place in dict.fromkeys(run.case.place for run in runs):
        names = f"{place} sgcn", f"{place} sgcn++"
        if lost.keys() >= set(names):
            yield place, lost[names[0]] - lost[names[1]]
