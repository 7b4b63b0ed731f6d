"""Figures of one style. They are made without pyplot, so that no state of its user's is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sgcn.files import replacing

#: What a figure may be, by the end of its name.
FORMATS = (".svg", ".png", ".pdf")
INK, QUIET = "#1d1f23", "#5d626b"


@contextmanager
def styled() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context({
        "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8.5,
        "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#b5b8be",
        "axes.labelcolor": INK, "text.color": INK, "xtick.color": QUIET, "ytick.color": QUIET,
        "axes.grid": True, "grid.color": "#e8e8e4", "grid.linewidth": 0.8, "axes.axisbelow": True,
        "legend.frameon": False, "lines.linewidth": 1.6, "svg.hashsalt": "sgcn",
    }):  # fmt: skip
        yield


def sheet(rows: int, columns: int, width: float, height: float, **shared: Any) -> tuple[Any, Any]:
    """A figure of so many inches, and its array of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def save(figure: Any, paths: Sequence[Path]) -> None:
    """Write ``figure`` to ``paths``, whose endings say the format."""
    for path in paths:
        # Without a date the same numbers give the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=130, metadata=metadata)
        figure.set_layout_engine("none")  # positions were found for the first, and stay
