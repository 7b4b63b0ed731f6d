"""A sparse matrix that ``scipy.sparse.save_npz`` wrote; features, labels and split beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from sgcn.data.draft import Draft, chunks
from sgcn.data.files import Npz, unreadable
from sgcn.data.importers.beside import Beside, Ids
from sgcn.data.importers.graphsaint import csr_arrays
from sgcn.data.importers.rows import about, checked_edges
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
    weighted: bool = option(False, flag(), "use the values (edges are then held in memory)")

    def read(self, source: Path, draft: Draft) -> Graph:
        with Npz(source, _WHAT, self.limit) as file:
            graph = matrix_graph(
                file, draft, directed=self.directed, transpose=self.transpose,
                weighted=self.weighted,
            )  # fmt: skip
        self.write_rows(draft, len(graph), Ids())
        return draft.finish(graph)


def matrix_graph(
    file: Npz, draft: Draft, *, directed: bool = False, transpose: bool = False,
    weighted: bool = False,
) -> Graph:  # fmt: skip
    """The graph of a matrix in one of scipy's formats."""
    layout = _layout(file)
    transpose ^= layout == "csc"  # the columns of a matrix are the rows of its transpose
    if layout == "coo":
        n, edges = _coordinates(file)
    else:
        indptr, indices = csr_arrays(file)
        n = len(indptr) - 1
        if not weighted and not (directed and transpose):
            return draft.csr(indptr, indices, directed=directed)
        edges = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr)), indices
    receivers, senders = edges[::-1] if transpose else edges
    if weighted:
        values = file.all("data", "biuf")
        if values.shape != senders.shape:
            raise SgcnError(
                f"{file.path} has {len(values)} values, expected {len(senders)}, one an entry"
            )
        matrix = sp.coo_array((values, (receivers, senders)), shape=(n, n))
        with about(file.path):
            return Graph.from_scipy(matrix, weighted=True, directed=directed)
    parts: Iterator[Any] = ((senders[part], receivers[part]) for part in chunks(len(senders)))
    return draft.edges(checked_edges(parts, n, str(file.path)), n, directed=directed)


def _layout(file: Npz) -> str:
    layout = "none"
    if file.sizes.get("format.npy", _SHORT) < _SHORT:
        with unreadable(file.path, _WHAT), file.zip.open("format.npy") as member:
            word: Any = np.lib.format.read_array(member, allow_pickle=False).tolist()
            layout = word.decode() if isinstance(word, bytes) else str(word)
    if layout not in ("csr", "csc", "coo"):
        raise SgcnError(f"{file.path} holds the format {layout[:20]!r}, expected {_WHAT}")
    return layout


def _coordinates(file: Npz) -> tuple[int, tuple[Any, Any]]:
    shape = file.all("shape")
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 1:
        raise SgcnError(f"{file.path} has shape {tuple(shape.tolist())}, expected a square matrix")
    rows, columns = file.all("row"), file.all("col")
    if len(rows) != len(columns):
        raise SgcnError(
            f"{file.path} has {len(rows)} rows and {len(columns)} columns of entries, expected as "
            "many"
        )
    n = int(shape[0])
    list(checked_edges(((rows, columns),), n, str(file.path)))
    return n, (rows, columns)
