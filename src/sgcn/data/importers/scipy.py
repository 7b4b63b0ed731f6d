"""A sparse matrix that ``scipy.sparse.save_npz`` wrote; features, labels and split beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft, entries
from sgcn.data.importers.beside import Beside, Ids
from sgcn.data.importers.rows import Edges, about, check_pointers, checked_edges, within
from sgcn.data.readers.arrays import Npz
from sgcn.data.readers.files import unreadable
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_SHORT = 1000  # bytes that the name of a format cannot have
_WHAT = "a square matrix that scipy.sparse.save_npz wrote (csr, csc or coo)"
_NOUNS = {"row": "rows", "data": "values"}


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
    n, edges = matrix_edges(file, layout, weighted=weighted)
    if transpose ^ (layout == "csc"):  # the columns of a matrix are the rows of its transpose
        edges = ((receivers, senders, *weight) for senders, receivers, *weight in edges)
    with about(file.path):
        return draft.edges(edges, n, directed=directed)


def matrix_edges(file: Npz, layout: str = "csr", *, weighted: bool = False) -> tuple[int, Edges]:
    """How many rows a square matrix has, and its entries as edges, from column to row."""
    shape, where = file.all("shape"), str(file.path)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 1:
        raise SgcnError(f"{where} has shape {tuple(shape.tolist())}, expected a square matrix")
    n = int(shape[0])
    columns = file.npy("col" if layout == "coo" else "indices")
    beside = {"row": file.npy("row")} if layout == "coo" else {}
    if weighted:
        beside["data"] = file.npy("data", "biuf")
    for key, array in beside.items():
        if array.shape != columns.shape:
            raise SgcnError(
                f"{where} has {array.shape[0]} {_NOUNS[key]} and {columns.shape[0]} columns of "
                "entries, expected as many"
            )
    rest = [array.parts() for array in beside.values()]
    if layout == "coo":
        return n, checked_edges(zip(columns.parts(), *rest, strict=True), n, where)
    indptr = file.all("indptr", dtype=np.int64)
    check_pointers(indptr, n, columns.shape[0], where)
    return n, entries(indptr, zip(within(columns.parts(), n, where), *rest, strict=True))


def _layout(file: Npz) -> str:
    layout = "none"
    if file.sizes.get("format.npy", _SHORT) < _SHORT:
        with unreadable(file.path, _WHAT), file.zip.open("format.npy") as member:
            word: Any = np.lib.format.read_array(member, allow_pickle=False).tolist()
            layout = word.decode() if isinstance(word, bytes) else str(word)
    if layout not in ("csr", "csc", "coo"):
        raise SgcnError(f"{file.path} holds the format {layout[:20]!r}, expected {_WHAT}")
    return layout
