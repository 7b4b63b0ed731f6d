"""Graphs in the formats of other programs. A new one is a file here and a line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sgcn.data.export import graphsaint, npz, pyg, scipy_files
from sgcn.data.export.pyg import to_pyg
from sgcn.errors import SgcnError
from sgcn.files import appearing, check_new
from sgcn.graph import Graph
from sgcn.options import known_name

__all__ = ["FORMATS", "export", "to_pyg"]


@dataclass(frozen=True)
class Format:
    """``write(graph, path)`` makes a file ending in ``suffix``, or a directory if that is empty."""

    write: Callable[[Graph, Path], None]
    suffix: str = ""


FORMATS = {
    "pyg": Format(pyg.write, ".pt"),
    "graphsaint": Format(graphsaint.write),
    "scipy": Format(scipy_files.write),
    "npz": Format(npz.write, ".npz"),
}


def check_target(format: str, out: Path) -> Format:
    """The format called ``format``, if it can write to ``out``."""
    chosen = FORMATS[known_name("format", format, FORMATS)]
    if out.suffix != chosen.suffix and chosen.suffix:
        raise SgcnError(f"out is {out}, expected a name ending in {chosen.suffix} for {format}")
    check_new(out)
    return chosen


def export(format: str, graph: Graph, out: str | Path) -> None:
    """Write ``graph`` to ``out``, a file or directory that appears complete or not at all."""
    out = Path(out)
    chosen = check_target(format, out)
    with appearing(out) as temporary:
        chosen.write(graph, temporary)
