"""Planetoid's files: Cora, Citeseer and Pubmed as Yang, Cohen and Salakhutdinov split them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sgcn.data.draft import Draft, chunks
from sgcn.data.feature_rows import finite, to_float32
from sgcn.data.importers.base import Importer, a_name, folder
from sgcn.data.importers.rows import checked_edges
from sgcn.data.importers.splits import split_of
from sgcn.data.readers.files import existing
from sgcn.data.readers.lines import number_rows
from sgcn.data.readers.pickles import Csr, array_of, read_pickle
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse
from sgcn.options import option, whole

_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_FILES = f"Planetoid's files ind.NAME.{{{','.join(_PARTS)}}}"


@dataclass(frozen=True)
class Planetoid(Importer):
    """Node k is row k of allx, or the node of the test index that names a row of tx.

    Nodes that neither has (Citeseer's isolated ones) get features 0 and no label.
    """

    name: ClassVar[str] = "planetoid"
    summary: ClassVar[str] = "folder with ind.NAME.{x,tx,allx,y,ty,ally,graph,test.index}"

    dataset: str | None = option(None, a_name(), "NAME in the files' names; none: look")
    validation: int = option(500, whole(), "how many nodes after the training ones validate")

    def read(self, source: Path, draft: Draft) -> Graph:
        name = self.dataset or _name(folder(source, _FILES))
        path = {part: existing(source, f"ind.{name}.{part}", _FILES) for part in _PARTS}
        test = _test_index(path["test.index"])
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

        train, last = np.arange(len(y)), len(y) + self.validation
        places = [str(path[part]) for part in ("y", "allx", "test.index")]
        draft.write("split", split_of(n, (train, np.arange(len(y), last), test), places))
        labels = np.full(n, -1, np.int64)
        labels[:first], labels[test] = ally, ty
        draft.write("y", labels)
        _write_features(draft, allx, tx, test, n)
        edges = checked_edges(_edges(path["graph"]), n, str(path["graph"]))
        return draft.finish(draft.edges(edges, n))


def _name(source: Path) -> str:
    found = sorted(path.name[4:-6] for path in source.glob("ind.*.graph"))
    if len(found) != 1:
        raise SgcnError(
            f"{source} has {len(found)} files named ind.NAME.graph, expected {_FILES}"
            + (f": set dataset to one of {', '.join(found)}" if found else "")
        )
    return found[0]


def _test_index(path: Path) -> npt.NDArray[np.int64]:
    what = "a node id in each line (test.index)"
    with path.open("rb") as file:
        parts = [part[:, 0] for part in number_rows(file, path, what, 1)]
    if not parts:
        raise SgcnError(f"{path} names no node, expected {what}")
    ids: npt.NDArray[np.int64] = np.concatenate(parts)
    if ids.min() < 0 or ids.max() >= 2**31 - 1:
        raise SgcnError(f"{path} names node {ids.max()}, expected ids from 0 to {2**31 - 2}")
    return ids


def _matrix(path: Path) -> Any:
    """Features: a dense array, or a CSR matrix whose parts fit each other."""
    what = f"a pickle of a scipy CSR matrix or a numpy array ({path.name})"
    value = read_pickle(path, what)
    matrix = _csr(value) if isinstance(value, Csr) else array_of(value)
    if matrix is None or matrix.ndim != 2 or 0 in matrix.shape:
        raise SgcnError(f"{path} holds something else or nothing, expected {what}")
    if matrix.dtype.kind not in "biuf":
        raise SgcnError(f"{path} holds {matrix.dtype}, expected {what}")
    matrix = to_float32(matrix)
    for _ in finite((matrix.data if is_sparse(matrix) else matrix,), str(path)):
        pass
    return matrix


def _csr(value: Csr) -> Any:
    """A checked matrix of the file's parts, or None if they do not make one."""
    shape = value.state.get("_shape")
    data, columns, pointers = (
        array_of(value.state.get(key)) for key in ("data", "indices", "indptr")
    )
    if data is None or columns is None or pointers is None:
        return None
    if not (isinstance(shape, tuple) and len(shape) == 2 and all(type(s) is int for s in shape)):
        return None
    rows, width = shape
    sound = (
        data.ndim == columns.ndim == pointers.ndim == 1
        and columns.dtype.kind in "iu"
        and pointers.dtype.kind in "iu"
        and len(pointers) == rows + 1
        and len(data) == len(columns)
        and 0 < width < 2**31
        and pointers[0] == 0
        and pointers[-1] == len(columns)
    )
    if not sound:
        return None
    pointers = pointers.astype(np.int64)
    if (np.diff(pointers) < 0).any() or (columns.size and columns.min() < 0):
        return None
    if columns.size and columns.max() >= width:
        return None
    kind = np.int32 if len(columns) < 2**31 else np.int64  # scipy wants one for both
    parts = (data, columns.astype(kind, copy=False), pointers.astype(kind))
    return sp.csr_array(parts, shape=shape)


def _classes(path: Path) -> npt.NDArray[np.int64]:
    """The class of each one-hot row; -1 for a row of zeros."""
    what = f"a pickle of an array with a one-hot row for each node ({path.name})"
    rows = array_of(read_pickle(path, what))
    if rows is None or rows.ndim != 2 or 0 in rows.shape or rows.dtype.kind not in "biuf":
        raise SgcnError(f"{path} holds something else or nothing, expected {what}")
    ones = rows == 1
    bad = (ones.sum(1) > 1) | (~ones & (rows != 0)).any(1)
    if bad.any():
        raise SgcnError(f"{path} has row {int(bad.argmax())} that is not one-hot, expected {what}")
    classes: npt.NDArray[np.int64] = np.where(ones.any(1), ones.argmax(1), -1)
    return classes


def _write_features(draft: Draft, allx: Any, tx: Any, test: Any, n: int) -> None:
    """Rows in the order of nodes; sparse ones stay sparse."""
    first, width = allx.shape
    row_of = np.full(n - first, -1)
    row_of[test - first] = np.arange(len(test))
    if not (is_sparse(allx) and is_sparse(tx)):
        dense = [part.toarray() if is_sparse(part) else part for part in (allx, tx)]
        dense[1] = np.where(row_of[:, None] >= 0, dense[1][row_of], np.float32(0))
        draft.stream("x", (n, width), np.float32, dense)
        return
    pointers = np.append(tx.indptr, tx.indptr[-1])  # row -1 is an empty one
    rest: Any = sp.csr_array((tx.data, tx.indices, pointers), shape=(len(test) + 1, width))[row_of]
    parts = [_canonical(part) for part in (allx, rest)]
    stored = sum(part.nnz for part in parts)
    starts = (parts[0].indptr, parts[1].indptr[1:] + parts[0].nnz)
    draft.stream("x_indptr", (n + 1,), np.int32, starts)
    draft.stream("x_indices", (stored,), np.int32, (part.indices for part in parts))
    draft.stream("x_data", (stored,), np.float32, (part.data for part in parts))
    draft.header["x_shape"] = [n, width]


def _canonical(part: Any) -> Any:
    """The matrix with sorted rows and no entry twice; one over the bytes of a file is copied."""
    if not part.has_canonical_format:
        part = part.copy()
        part.sum_duplicates()
    return part


def _edges(path: Path) -> Iterator[tuple[Any, Any]]:
    """The neighbour lists of a dict as an edge list, the lists of some nodes at a time."""
    what = "a pickle of a dict with the list of neighbours of each node (graph)"
    graph = read_pickle(path, what)
    if not isinstance(graph, dict) or not set(map(type, graph.values())) <= {array}:
        raise SgcnError(f"{path} holds something else, expected {what}")
    lengths = np.fromiter(map(len, graph.values()), np.int64, len(graph))
    edges = int(lengths.sum())
    # One list may stand for many nodes: its pickle is short and its edges are too many.
    if edges > path.stat().st_size:
        raise SgcnError(f"{path} has {edges} edges, more than its bytes, expected {what}")
    try:
        nodes = np.fromiter(graph, np.int64, len(graph))
    except (ValueError, TypeError, OverflowError):
        raise SgcnError(f"{path} holds something else, expected {what}") from None
    lists = iter(graph.values())
    for part in chunks(len(nodes), edges // max(len(nodes), 1)):
        ends = b"".join(islice(lists, part.stop - part.start))
        yield np.frombuffer(ends, np.int32), np.repeat(nodes[part], lengths[part])
