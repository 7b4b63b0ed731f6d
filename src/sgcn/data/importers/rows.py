"""Edges and labels as others keep them, brought into the form that a graph has."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.readers.arrays import npy
from sgcn.data.readers.files import checked, unreadable
from sgcn.errors import SgcnError

# -- edges --------------------------------------------------------------------------------------


def check_ids(ids: Any, n: int | None, where: str, thing: str, before: int = 0) -> None:
    """Whole numbers below ``n``; the first that is none is named, as the ``thing`` that it is."""
    limit = np.iinfo(np.int32).max if n is None else n
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise SgcnError(f"{where} holds {ids.dtype} as node ids, expected whole numbers")
    if ids.size and (ids.min() < 0 or ids.max() >= limit):
        first = int(np.argmax((ids < 0) | (ids >= limit)))
        raise SgcnError(
            f"{where} names node {ids[first]} in {thing} {before + first}, expected ids from 0 to "
            f"{limit - 1}"
        )


def checked_edges(
    parts: Iterable[tuple[Any, ...]], n: int | None, where: str
) -> Iterator[tuple[Any, ...]]:
    """Edges as they pass; the first that does not join two of ``n`` nodes is named."""
    before = 0
    for src, dst, *weights in parts:
        check_ids(src, n, where, "edge", before)
        check_ids(dst, n, where, "edge", before)
        before += len(src)
        yield src, dst, *weights


@contextmanager
def about(path: Path) -> Iterator[None]:
    """What is wrong with a graph is said with the file that it is from."""
    try:
        yield
    except SgcnError as error:
        if str(path) in str(error):
            raise
        raise SgcnError(f"{path}: {error}") from None


# -- rows ---------------------------------------------------------------------------------------


def counted(parts: Iterable[Any], n: int, where: str) -> Iterator[Any]:
    """Rows as they pass; there must be ``n``, and what comes behind them is not read."""
    seen = 0
    for part in parts:
        seen += len(part)
        if seen > n:
            raise SgcnError(f"{where} has {seen} rows or more, expected {n}")
        yield part
    if seen < n:
        raise SgcnError(f"{where} has {seen} rows, expected {n}")


def within(parts: Iterable[Any], width: int, where: str) -> Iterator[Any]:
    """Columns of a sparse matrix as they pass; the first that it does not have is named."""
    before = 0
    for part in parts:
        if part.min() < 0 or part.max() >= width:
            bad = int(np.argmax((part < 0) | (part >= width)))
            raise SgcnError(
                f"{where} has column {part[bad]} in entry {before + bad}, expected columns from 0 "
                f"to {width - 1}"
            )
        before += len(part)
        yield part


def check_rows(rows: int, n: int, where: str) -> None:
    """One row for each node."""
    if rows != n:
        raise SgcnError(f"{where} has {rows} rows, expected {n}, one for each node")


def check_pointers(indptr: Any, rows: int, stored: int, where: str, hint: str = "") -> None:
    """Row pointers of a CSR matrix with ``rows`` rows and ``stored`` entries."""
    fits = rows > 0 and len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == stored
    if not fits or (np.diff(indptr) < 0).any():
        raise SgcnError(
            f"{where} has row pointers that do not fit, expected {rows + 1} that rise from 0 to "
            f"{stored}{hint}"
        )


# -- labels -------------------------------------------------------------------------------------


def labels_of(values: Any, n: int, where: str) -> npt.NDArray[Any]:
    """One class a node (-1, or NaN, for none), or a 0/1 row a node for sets of labels."""
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.dtype.kind not in "biuf":
        raise SgcnError(
            f"{where} holds {values.dtype} of shape {values.shape}, expected a class or a 0/1 row "
            "for each node"
        )
    check_rows(len(values), n, where)
    if values.ndim == 1 and values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
    check_labels(values, range(n), where, least=-1)
    y: npt.NDArray[Any] = values.astype(np.uint8 if values.ndim == 2 else np.int64)
    return y


def check_labels(values: Any, nodes: Any, where: str, least: int = 0) -> None:
    """Classes from ``least`` on, or rows of 0 and 1, of ``nodes``; the first that is none is
    named."""
    if values.ndim == 2:
        bad, wanted = (values != 0) & (values != 1), "0 or 1"
    else:
        bad = ~((values >= least) & (values < 2**31) & (values == np.floor(values)))
        wanted = "a class from 0 on" + ", or -1 for none" * (least < 0)
    if bad.any():
        node, label = nodes[int(np.argwhere(bad)[0, 0])], values[bad][0]
        raise SgcnError(f"{where} gives node {node} the label {label}, expected {wanted}")


def labels_file(path: Path, n: int) -> npt.NDArray[Any]:
    """Labels of an ``.npy``: a vector of classes, or 0/1 rows."""
    what = f"labels of {n} nodes"
    with npy(path, what, "biuf", 2 if len(npy_shape(path, what)) == 2 else 1) as array:
        return labels_of(array.all(), n, str(path))


def npy_shape(path: Path, what: str) -> tuple[int, ...]:
    """The shape that an ``.npy`` file has, if it is whole."""
    with unreadable(checked(path, what), what), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers of Python 2, which are read all the same
        shape: tuple[int, ...] = np.load(path, mmap_mode="r", allow_pickle=False).shape
    return shape
