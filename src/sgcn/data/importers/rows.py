"""Edges, features and labels as others keep them, brought into the form that a graph has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks, progress
from sgcn.data.checks import check_form, check_ids, check_rows, first_bad
from sgcn.data.draft import Draft
from sgcn.data.features import finite, moments, single, standardised
from sgcn.data.readers.arrays import Npy, Npz, npy
from sgcn.data.readers.jsontext import as_array, json_text
from sgcn.errors import SgcnError

#: (source, target) or (source, target, weight) of some edges at a time.
Edges = Iterator[tuple[Any, ...]]
#: Keys of a class map to nodes; then the words before and behind a key that is none.
NodesOf = Callable[[list[str], str, str], npt.NDArray[np.int64]]

# -- edges --------------------------------------------------------------------------------------


def checked_edges(parts: Iterable[tuple[Any, ...]], n: int | None, where: str) -> Edges:
    """Edges as they pass; the first that does not join two of ``n`` nodes is named."""
    before = 0
    for src, dst, *weights in parts:
        for ends in (src, dst):
            check_ids(ends, n, where, "in edge", range(before, before + len(ends)))
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
        check_ids(part, width, where, at=range(before, before + len(part)), noun="column")
        before += len(part)
        yield part


def check_pointers(indptr: Any, rows: int, stored: int, where: str, hint: str = "") -> None:
    """Row pointers of a CSR matrix with ``rows`` rows and ``stored`` entries."""
    fits = rows > 0 and len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == stored
    if not fits or (np.diff(indptr) < 0).any():
        raise SgcnError(
            f"{where} has row pointers that do not fit, expected {rows + 1} that rise from 0 to "
            f"{stored}{hint}"
        )


# -- features: written as they are read, without holding a dense table --------------------------


def write_npy(draft: Draft, path: Path, n: int, split: Any = None) -> None:
    """A row for each of ``n`` nodes; with a ``split`` they are read twice, to be standardised."""
    what, where = f"features with {n} rows ({path.name})", str(path)
    with npy(path, what) as file, npy(path, what) as again:
        if file.shape[0] != n or file.shape[1] < 1:
            raise SgcnError(
                f"{path} has shape {file.shape}, expected {n} rows, one for each node, and at "
                "least one column"
            )
        rows = file.parts()
        if split is None:
            rows = single(rows, where)
        else:
            with progress("reading x", " rows", n) as step:
                shift, scale = moments(rows, np.flatnonzero(split == 0), where, step)
            rows = finite(standardised(again.parts(), shift, scale), where)
        draft.stream("x", file.shape, np.float32, rows)


def write_features(draft: Draft, table: Any, n: int, where: str) -> None:
    """Features of an array, or of an `Npy` some rows at a time: a row a node, numbers."""
    check_form(table, where, "features", "biuf", 2)
    check_rows(table.shape[0], n, where)
    slices = chunks(*table.shape)
    parts = table.parts() if isinstance(table, Npy) else (table[part] for part in slices)
    draft.stream("x", tuple(table.shape), np.float32, single(parts, where))


def write_features_file(draft: Draft, path: Path, n: int, limit: int) -> None:
    """Features of an ``.npy`` (dense) or of an ``.npz`` that scipy saved (CSR)."""
    where = str(path)
    if path.suffix != ".npz":
        with npy(path, f"features with {n} rows", "biuf") as array:
            write_features(draft, array, n, where)
        return
    with Npz(path, "sparse features that scipy.sparse.save_npz wrote (CSR)", limit) as file:
        shape = tuple(file.all("shape").tolist())
        if len(shape) != 2:
            raise SgcnError(f"{path} has shape {shape}, expected 2 dimensions")
        check_rows(shape[0], n, where)
        indptr, columns = file.all("indptr", dtype=np.int64), file.npy("indices")
        values = file.npy("data", "biuf")
        check_pointers(indptr, n, columns.shape[0], where, ": save features as CSR")
        check_rows(values.shape[0], columns.shape[0], f"data in {path}")
        numbers = single(values.parts(), f"{path}, counted by entries,")
        draft.stream_sparse(shape, indptr, within(columns.parts(), shape[1], where), numbers)


# -- labels -------------------------------------------------------------------------------------


def labels_of(values: Any, n: int, where: str) -> npt.NDArray[Any]:
    """One class a node (-1, or NaN, for none), or a 0/1 row a node for sets of labels."""
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    check_form(values, where, "a class or a 0/1 row for each node", "biuf", 1, 2)
    check_rows(len(values), n, where)
    if values.ndim == 1 and values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
    check_labels(values, range(n), where, least=-1)
    y: npt.NDArray[Any] = values.astype(np.uint8 if values.ndim == 2 else np.int64)
    return y


def check_labels(values: Any, nodes: Any, where: str, least: int = 0) -> None:
    """Classes from ``least`` on, or rows of 0 and 1; the node of the first bad one is named."""
    if values.ndim == 2:
        bad, wanted = (values != 0) & (values != 1), "0 or 1"
    else:
        bad = ~((values >= least) & (values < 2**31) & (values == np.floor(values)))
        wanted = "a class from 0 on" + ", or -1 for none" * (least < 0)
    first_bad(bad, values, where, wanted, "for node", nodes, noun="label")


def labels_file(path: Path, n: int) -> npt.NDArray[Any]:
    """Labels of an ``.npy``: a vector of classes, or 0/1 rows."""
    with npy(path, f"labels of {n} nodes", "biuf", 1, 2) as array:
        return labels_of(array.all(), n, str(path))


def class_map(path: Path, n: int, nodes_of: NodesOf) -> npt.NDArray[Any]:
    """Labels of a JSON object from node to class, or to a 0/1 list, as GraphSAGE has them."""
    what = f"an object with a class or a 0/1 list for each of {n} nodes ({path.name})"
    y: npt.NDArray[Any] = np.empty(0)
    seen = np.zeros(n, np.bool_)
    with json_text(path, what) as text:
        for entries in text.entries():
            nodes = nodes_of(list(entries), f"{path} labels", "a node of the graph")
            check_ids(nodes, n, str(path), "as key", list(entries))
            values = as_array(list(entries.values()))
            shape = values.shape[1:]
            if y.size == 0 and len(shape) < 2:
                y = np.empty((n, *shape), np.uint8 if shape else np.int64)
            if y.size == 0 or shape != y.shape[1:] or values.dtype.kind not in "iuf":
                raise SgcnError(f"{path} mixes what it should not, expected {what}")
            check_labels(values, nodes, str(path))
            y[nodes] = values
            seen[nodes] = True
    if not seen.all():
        raise SgcnError(
            f"{path} labels {int(seen.sum())} nodes and not node {int(seen.argmin())}, expected "
            f"labels of all {n}"
        )
    return y
