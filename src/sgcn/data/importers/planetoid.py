"""Planetoid's files: Cora, Citeseer and Pubmed as Yang, Cohen and Salakhutdinov split them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sgcn.chunks import chunks, progress, rows_of
from sgcn.data.checks import check_form, check_ids
from sgcn.data.draft import Draft
from sgcn.data.features import single, to_float32
from sgcn.data.importers.base import A_NAME, Importer, only
from sgcn.data.importers.rows import checked_edges
from sgcn.data.importers.splits import split_of
from sgcn.data.readers.files import existing
from sgcn.data.readers.pickles import Csr, Lists, array_of, read_lists, read_pickle
from sgcn.data.readers.tables import numbers_of
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse
from sgcn.options import integer, option

_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_GRAPH = "a pickle of a dict with the list of neighbours of each node (graph)"
_FILES = f"Planetoid's files ind.NAME.{{{','.join(_PARTS)}}}"


@dataclass(frozen=True)
class Planetoid(Importer):
    """Node k is row k of allx, or the node of the test index that names a row of tx.

    Nodes that neither has (Citeseer's isolated ones) get features 0 and no label.
    """

    name: ClassVar[str] = "planetoid"
    summary: ClassVar[str] = "folder with ind.NAME.{x,tx,allx,y,ty,ally,graph,test.index}"

    dataset: str | None = option(None, A_NAME, "NAME in the files' names; none: look")
    validation: int = option(500, integer(), "how many nodes after the training ones validate")

    def read(self, source: Path, draft: Draft) -> Graph:
        kind = "files named ind.NAME.graph"
        name = self.dataset or only(source, "ind.*.graph", kind, _FILES, "dataset")
        path = {part: existing(source, f"ind.{name}.{part}", _FILES) for part in _PARTS}
        n = self._write_rows(draft, path)
        lists = read_lists(path["graph"], _GRAPH, draft.folder / "lists")
        edges = checked_edges(_edges(path["graph"], lists), n, str(path["graph"]))
        return draft.edges(edges, n)

    def _write_rows(self, draft: Draft, path: dict[str, Path]) -> int:
        """Features, labels and split; how many nodes there are."""
        test = numbers_of(path["test.index"], "a node id in each line (test.index)")
        check_ids(test, None, str(path["test.index"]))
        trained, width = _matrix(path["x"]).shape  # its rows are the first of allx
        tx, allx = (_matrix(path[part]) for part in ("tx", "allx"))
        y, ty, ally = (_classes(path[part]) for part in ("y", "ty", "ally"))
        for part, rows, wanted, other in (
            ("y", len(y), trained, "x"),
            ("ally", len(ally), allx.shape[0], "allx"),
            ("ty", len(ty), tx.shape[0], "tx"),
            ("test.index", len(test), tx.shape[0], "tx"),
        ):
            if rows != wanted:
                raise SgcnError(f"{path[part]} has {rows} rows, expected {wanted}, as {other}")
        first, n = allx.shape[0], int(test.max()) + 1
        if test.min() < first or len(np.unique(test)) < len(test):
            raise SgcnError(
                f"{path['test.index']} names a node twice or one of the {first} of allx, expected "
                f"distinct ids from {first} on"
            )
        if n - first > 2 * len(test) + 1000:
            raise SgcnError(
                f"{path['test.index']} names node {n - 1}, expected ids near {first + len(test)}: "
                "almost all nodes would have no features"
            )
        if len(y) + self.validation > first:
            raise SgcnError(
                f"{path['allx']} has {first} rows, expected {len(y)} to train and "
                f"{self.validation} to validate: set validation to a smaller number"
            )
        if not width == tx.shape[1] == allx.shape[1]:
            raise SgcnError(f"{path['tx']} has {tx.shape[1]} columns, expected as many as allx")

        train, validate = np.split(np.arange(len(y) + self.validation), [len(y)])
        parts = {"y": train, "allx": validate, "test.index": test}
        draft.write("split", split_of(n, ((ids, str(path[part])) for part, ids in parts.items())))
        labels = np.full(n, -1, np.int64)
        labels[:first], labels[test] = ally, ty
        draft.write("y", labels)
        _write_features(draft, allx, tx, test, n)
        return n


def _matrix(path: Path) -> Any:
    """Features over the bytes of the file: an array, or a CSR matrix whose parts fit each other."""
    what = f"a pickle of a scipy CSR matrix or a numpy array ({path.name})"
    value = read_pickle(path, what)
    matrix = _csr(value) if isinstance(value, Csr) else array_of(value)
    if matrix is None or matrix.ndim != 2 or 0 in matrix.shape:
        raise SgcnError(f"{path} holds something else or nothing, expected {what}")
    values = matrix.data if is_sparse(matrix) else matrix
    check_form(values, str(path), what, "biuf", 1, 2)
    parts = (values[part] for part in chunks(len(values), math.prod(values.shape[1:])))
    for _ in single(parts, str(path)):
        pass
    return matrix


def _csr(value: Csr) -> Any:
    """A checked matrix of the file's parts, or None if they do not make one."""
    data, columns, pointers = (
        array_of(value.state.get(key)) for key in ("data", "indices", "indptr")
    )
    if data is None or columns is None or pointers is None:
        return None
    if data.dtype == np.float16 or not data.dtype.isnative:  # scipy cannot index these
        data = to_float32(data)
    try:
        shape: Any = value.state.get("_shape")
        matrix: Any = sp.csr_array((data, columns, pointers), shape=tuple(shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError):
        return None
    return matrix


def _rows(matrix: Any, ids: Any) -> Any:
    """Some rows as float32, those of -1 zero; sparse ones are sorted, with no entry twice."""
    rows: Any = matrix[ids]
    if is_sparse(rows):
        rows.data = to_float32(rows.data)
        rows.sum_duplicates()
        return rows
    rows = to_float32(rows)
    rows[ids < 0] = 0.0
    return rows


def _classes(path: Path) -> npt.NDArray[np.int64]:
    """The class of each one-hot row; -1 for a row of zeros."""
    what = f"a pickle of an array with a one-hot row for each node ({path.name})"
    rows = array_of(read_pickle(path, what))
    if rows is None or rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "biuf":
        raise SgcnError(f"{path} holds something else or nothing, expected {what}")
    classes = np.empty(len(rows), np.int64)
    for part in chunks(*rows.shape):
        ones = rows[part] == 1
        bad = (ones.sum(1) > 1) | (~ones & (rows[part] != 0)).any(1)
        if bad.any():
            row = part.start + int(bad.argmax())
            raise SgcnError(f"{path} has row {row} that is not one-hot, expected {what}")
        classes[part] = np.where(ones.any(1), ones.argmax(1), -1)
    return classes


def _write_features(draft: Draft, allx: Any, tx: Any, test: Any, n: int) -> None:
    """Rows in the order of nodes; sparse ones stay sparse.

    These are made once for each array: how many entries there are is known at the end only.
    """
    first, width = allx.shape
    rest = np.full(n - first, -1)
    rest[test - first] = np.arange(len(test))
    sparse = is_sparse(allx) and is_sparse(tx)
    if is_sparse(tx):  # behind its last row an empty one, which is that of -1
        last = (tx.data, tx.indices, np.append(tx.indptr, tx.indptr[-1]))
        tx = sp.csr_array(last, shape=(len(test) + 1, width))

    def parts() -> Iterator[Any]:
        for matrix, ids in ((allx, np.arange(first)), (tx, rest)):
            cuts = _even(np.diff(matrix.indptr)[ids]) if sparse else chunks(len(ids), width)
            for part in cuts:
                rows = _rows(matrix, ids[part])
                yield rows.toarray() if is_sparse(rows) and not sparse else rows

    if not sparse:
        draft.stream("x", (n, width), np.float32, parts())
        return
    with progress("reading x", " rows", n) as step:
        lengths = [np.zeros(1, np.int64)]
        for rows in parts():
            lengths.append(np.diff(rows.indptr))
            step(rows.shape[0])
    pointers = np.cumsum(np.concatenate(lengths))
    columns, values = (rows.indices for rows in parts()), (rows.data for rows in parts())
    draft.stream_sparse((n, width), pointers, columns, values)


def _edges(path: Path, lists: Lists) -> Iterator[tuple[Any, Any]]:
    """The neighbour lists as an edge list, the lists of some nodes at a time."""
    edges = int(lists.lengths.sum())
    # One list may stand for many nodes: its pickle is short and its edges are too many.
    if edges > path.stat().st_size:
        raise SgcnError(f"{path} has {edges} edges, more than its bytes, expected {_GRAPH}")
    for part in _even(lists.lengths):
        lengths = lists.lengths[part]
        # Entry k of a list is at its start + k, however many came in lists before.
        first = lists.starts[part] - (np.cumsum(lengths) - lengths)
        chosen = np.arange(lengths.sum()) + np.repeat(first, lengths)
        yield lists.values[chosen], np.repeat(lists.nodes[part], lengths)


def _even(lengths: Any) -> Iterator[slice]:
    """Slices over rows of these lengths, about as many entries each."""
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // rows_of(1))) + 1
    return (slice(*ends) for ends in pairwise((0, *cuts.tolist(), len(lengths))))
