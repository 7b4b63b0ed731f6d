"""Errors that users are meant to read; those that code must tell apart have a type."""

from __future__ import annotations

import os
from typing import Any


class SgcnError(ValueError):
    """Bad input: says in one sentence what came, what was expected and what to do.

    The command line prints it without a traceback and ends with ``exit_code``.
    """

    exit_code = 2


def no_graph(found: Any) -> SgcnError:
    """That ``found`` stands where a graph should, and the way from it to one."""
    way = "Graph.from_edges(..), or sgcn.data.load(name)"
    if hasattr(found, "edge_index"):
        way = "Graph.from_pyg(data)"
    elif isinstance(found, str | os.PathLike):
        way = f"sgcn.data.load({os.fspath(found)!r}, scale='auto')"
    return SgcnError(f"the graph is a {type(found).__name__}, expected a sgcn.Graph: {way}")


class TrainingDiverged(SgcnError):
    """The steps were too large; ``fitted`` is what training leaves, if it had a score before."""

    exit_code = 3
    fitted: Any = None


class TrainingInterrupted(SgcnError):
    """A signal ended training in order; ``fitted`` is what it leaves."""

    def __init__(self, message: str, signal: int, fitted: Any) -> None:
        super().__init__(message)
        self.exit_code, self.fitted = 128 + signal, fitted
