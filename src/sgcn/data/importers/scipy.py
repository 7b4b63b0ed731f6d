"""A sparse matrix that ``scipy.sparse.save_npz`` wrote; features, labels and split beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.importers.beside import Beside, Ids
from sgcn.data.importers.graphsaint import csr_matrix, square_size
from sgcn.data.importers.rows import about, checked_edges
from sgcn.data.readers.arrays import Npy, Npz
from sgcn.data.readers.files import unreadable
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_SHORT = 1000  # bytes that the name of a format cannot have
_WHAT = "a square matrix that scipy.sparse.save_npz wrote (csr, csc or coo)"


@dataclass(frozen=True)
class Scipy(Beside):
    """Entry (i, j) says that i reads from j, as in `Graph.from_scipy`."""

    name: ClassVar[str] = "scipy"
    summary: ClassVar[str] = "matrix.npz of scipy.sparse.save_npz: csr, csc or coo"

    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")
    transpose: bool = option(False, flag(), "entry (i, j) is an edge from i to j instead")
    weighted: bool = option(False, flag(), "use the values as weights of edges")

    def read(self, source: Path, draft: Draft) -> Graph:
        with Npz(source, _WHAT, self.limit) as file:
            graph = matrix_graph(
                file, draft, directed=self.directed, transpose=self.transpose,
                weighted=self.weighted,
            )  # fmt: skip
        self.write_rows(draft, len(graph), Ids())
        return graph


def matrix_graph(
    file: Npz, draft: Draft, *, directed: bool = False, transpose: bool = False,
    weighted: bool = False,
) -> Graph:  # fmt: skip
    """The graph of a matrix in one of scipy's formats."""
    layout = _layout(file)
    transpose ^= layout == "csc"  # the columns of a matrix are the rows of its transpose
    with _coo(file) if layout == "coo" else csr_matrix(file) as (n, edges):
        if transpose:
            edges = ((receivers, senders) for senders, receivers in edges)
        if not weighted:
            return draft.edges(edges, n, directed=directed)
        with file.npy("data", "biuf") as values, about(file.path):
            return draft.edges(_beside(edges, values), n, directed=directed)


@contextmanager
def _coo(file: Npz) -> Iterator[tuple[int, Iterator[tuple[Any, ...]]]]:
    """How many rows a matrix of (row, column) pairs has, and these as edges."""
    n = square_size(file)
    with file.npy("row") as rows, file.npy("col") as columns:
        if rows.shape != columns.shape:
            raise SgcnError(
                f"{file.path} has {rows.shape[0]} rows and {columns.shape[0]} columns of "
                "entries, expected as many"
            )
        pairs = zip(columns.parts(), rows.parts(), strict=True)
        yield n, checked_edges(pairs, n, str(file.path))


def _beside(edges: Iterator[tuple[Any, ...]], values: Npy) -> Iterator[tuple[Any, ...]]:
    """Edges with their values, which come in parts of the same lengths."""
    for ends, part in zip_longest(edges, values.parts()):
        if ends is None or part is None or len(ends[0]) != len(part):
            raise SgcnError(
                f"{values.path} has {values.shape[0]} values, expected one for each entry"
            )
        yield *ends, part


def _layout(file: Npz) -> str:
    layout = "none"
    if file.sizes.get("format.npy", _SHORT) < _SHORT:
        with unreadable(file.path, _WHAT), file.zip.open("format.npy") as member:
            word: Any = np.lib.format.read_array(member, allow_pickle=False).tolist()
            layout = word.decode() if isinstance(word, bytes) else str(word)
    if layout not in ("csr", "csc", "coo"):
        raise SgcnError(f"{file.path} holds the format {layout[:20]!r}, expected {_WHAT}")
    return layout
