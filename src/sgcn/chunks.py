"""Large arrays pass in chunks: how many rows at a time, and a bar for whoever is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Entries that pass at a time: large enough for bulk speed, small beside any array worth streaming.
CHUNK = 1 << 18

#: Rows that pass at a time: a row of one number, an edge say, is as fast in smaller parts.
ROWS = 1 << 16

#: Seconds after which work is long enough for a bar.
DELAY = 0.5

#: What the bar on the terminal is about, if there is one.
_bars: list[str] = []


def rows_of(width: int) -> int:
    """How many rows of ``width`` entries pass at a time."""
    return max(1, min(ROWS, CHUNK // max(width, 1)))


def chunks(rows: int, width: int = 1) -> Iterator[slice]:
    """Slices over ``rows`` rows, `rows_of` each."""
    step = rows_of(width)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


@contextmanager
def progress(what: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal, silence elsewhere; call what it gives with each step.

    Work inside of other work, as reading for what is written, has no bar of its own.
    """
    if _bars or not sys.stderr.isatty():
        yield lambda step: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=what, unit=unit, unit_scale=True, leave=False, delay=DELAY) as bar:
        _bars.append(what)
        try:
            yield bar.update
        finally:
            _bars.remove(what)
