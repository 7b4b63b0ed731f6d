"""Features made ready for training: rows that sum to 1, columns of mean 0 and variance 1, or half
the bytes.

Tables pass in slices of rows from one graph to a new directory: there is never a second copy in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks, progress
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse
from sgcn.kernels import features as kernels
from sgcn.options import known_name
from sgcn.store import Writer
from sgcn.task import train_nodes

Array = npt.NDArray[Any]
DTYPES = ("float16", "float32")
_ROUNDING = 1e-12  # a deviation this small beside the mean is none


def write_features(
    graph: Graph,
    path: str | Path,
    *,
    standardise: bool = False,
    row_normalise: bool = False,
    dtype: str = "float32",
) -> Graph:
    """Save ``graph`` to ``path`` with other features, and open it; the rest stays as it is.

    Rows are normalised before columns are standardised; a column that is constant over the training
    nodes is only centred. Sparse features stay sparse: they cannot be
    standardised, which would fill them, and are float32.
    """
    known_name("dtype", dtype, DTYPES)
    if graph.x is None or graph.x.ndim != 2:
        raise SgcnError("the graph has no table of features (x), expected one")
    if is_sparse(graph.x):
        if standardise:
            raise SgcnError(
                "the features are sparse, expected dense ones to standardise: a mean of 0 would "
                "fill them, normalise rows instead"
            )
        if dtype == "float16":
            raise SgcnError("the features are sparse, expected dense ones for float16")
    train = train_nodes(graph) if standardise else None
    with Writer.new(Path(path)) as files:
        if is_sparse(graph.x):
            x, values = graph.x, _sparse_values(graph.x, row_normalise)
            files.stream_sparse(x.shape, x.indptr, (x.indices,), values)
        else:
            rows = _checked(_dense(graph.x, row_normalise, train), np.dtype(dtype))
            files.stream("x", graph.x.shape, dtype, rows)
        for name in ("y", "split"):
            files.write(name, getattr(graph, name))
        files.carry(graph.path)
        graph.write_topology(files)
    return Graph.open(path)


def _rows_sum_to_one(rows: Array) -> Array:
    """Rows over the sum of their absolute values; rows of zeros stay zero."""
    totals = np.abs(rows).sum(1, keepdims=True)
    made: Array = rows / np.where(totals > 0, totals, 1.0)
    return made


def _dense(x: Any, row_normalise: bool, train: Any) -> Iterator[Array]:
    """Slices of rows as they are to be written."""

    def parts() -> Iterator[Array]:
        for part in chunks(*x.shape):
            rows = np.asarray(x[part], np.float64)
            yield _rows_sum_to_one(rows) if row_normalise else rows

    if train is None:
        return parts()
    with progress("reading x", " rows", len(x)) as step:
        shift, scale = moments(parts(), train, "x", step)
    return standardised(parts(), shift, scale)


def _checked(parts: Iterator[Array], dtype: np.dtype[Any]) -> Iterator[Array]:
    """The parts, if ``dtype`` can hold them."""
    most, first = float(np.finfo(dtype).max), 0
    for rows in parts:
        good = (np.abs(rows) <= most).all(1)
        if not good.all():
            node = int(np.argmin(good))
            raise SgcnError(
                f"node {first + node} has the feature {rows[node][np.abs(rows[node]).argmax()]:g}, "
                f"expected finite numbers up to {most:g}, which {dtype} holds"
            )
        first += len(rows)
        yield rows


def _sparse_values(x: Any, row_normalise: bool) -> Iterator[Array]:
    """The values of some rows at a time."""
    for part in chunks(x.shape[0], -(-x.nnz // x.shape[0])):
        rows = x[part]
        if row_normalise:
            totals = np.asarray(abs(rows).sum(1), np.float64).ravel()
            lengths = np.diff(rows.indptr)
            yield rows.data / np.repeat(np.where(totals > 0, totals, 1.0), lengths)
        else:
            yield rows.data


# -- rows as they pass --------------------------------------------------------------------------


def finite(parts: Iterable[Any], where: str, before: int = 0) -> Iterator[Any]:
    """Rows of features as they pass, ``before`` of them earlier; the first not finite is named."""
    for part in parts:
        # A sum is finite unless an entry is not (or it overflows): one cheap look a part.
        with np.errstate(all="ignore"):
            suspect = part.dtype.kind == "f" and not np.isfinite(part.sum())
        if suspect:
            bad = ~np.isfinite(part).reshape(len(part), -1).all(1)
            if bad.any():
                raise SgcnError(
                    f"{where} has a value that is not finite in row {before + int(bad.argmax())}, "
                    "expected finite features"
                )
        before += len(part)
        yield part


def single(parts: Iterable[Any], where: str) -> Iterator[npt.NDArray[np.float32]]:
    """Features as float32; a value that is not finite, or is too large for it, is named."""
    return finite(map(to_float32, parts), where)


def to_float32(part: Any) -> npt.NDArray[np.float32]:
    """What float32 cannot hold becomes infinite, without a warning: `finite` refuses it."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast: npt.NDArray[np.float32] = part.astype(np.float32, copy=False)
    return cast


def moments(
    parts: Iterable[Any], train: Any, where: str, step: Callable[[int], object]
) -> tuple[Any, Any]:
    """Mean and 1 / deviation of the training rows; a constant feature is only centred."""
    before = 0
    total = squares = origin = np.empty(0)
    for part in parts:
        part = _plain(part)
        first, last = np.searchsorted(train, (before, before + len(part)))
        chosen = train[first:last] - before
        if len(chosen):
            if origin.size == 0:  # sums of squares around a typical value do not cancel
                origin = part[chosen[0]].astype(np.float64)
                total, squares = np.zeros((2, len(origin)))
            kernels.add_moments(part, chosen, origin, total, squares)
            if not (np.isfinite(total).all() and np.isfinite(squares).all()):
                list(finite((part,), where, before))
                raise SgcnError(
                    f"{where} has numbers whose squares are too large to add, expected features of "
                    "common size: set standardise=false or scale them"
                )
        before += len(part)
        step(len(part))
    mean = total / len(train)
    deviation = np.sqrt(np.maximum(squares / len(train) - mean * mean, 0.0))
    varies = deviation > _ROUNDING * np.abs(origin + mean)
    scale = np.divide(1.0, deviation, out=np.ones_like(deviation), where=varies)
    return origin + mean, scale


def standardised(parts: Iterable[Any], shift: Any, scale: Any) -> Iterator[npt.NDArray[np.float32]]:
    """The rows as they pass; the memory of one part serves all of them."""
    out = np.empty((0, len(shift)), np.float32)
    for part in parts:
        if len(out) < len(part):
            out = np.empty(part.shape, np.float32)
        kernels.standardise(_plain(part), shift, scale, out[: len(part)])
        yield out[: len(part)]


def _plain(part: Any) -> Any:
    """One of two types, so that kernels are compiled for no more."""
    return part if part.dtype in (np.float32, np.float64) else part.astype(np.float64)
