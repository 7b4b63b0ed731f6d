"""Features made ready for training: rows that sum to 1, columns of mean 0 and variance 1, or half
the bytes.

Tables pass in slices of rows from one graph to a new directory: there is never a second copy in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks, progress
from sgcn.data.feature_rows import moments, standardised
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse
from sgcn.options import known_name
from sgcn.store import Writer
from sgcn.task import train_nodes

Array = npt.NDArray[Any]
DTYPES = ("float16", "float32")


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
            _write_sparse(files, graph.x, row_normalise)
        else:
            rows = _checked(_dense(graph.x, row_normalise, train), np.dtype(dtype))
            files.stream("x", graph.x.shape, dtype, rows)
        for name in ("y", "split"):
            if getattr(graph, name) is not None:
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


def _write_sparse(files: Writer, x: Any, row_normalise: bool) -> None:
    def parts() -> Iterator[Array]:
        for part in chunks(x.shape[0], -(-x.nnz // x.shape[0])):
            rows = x[part]
            if row_normalise:
                totals = np.asarray(abs(rows).sum(1), np.float64).ravel()
                lengths = np.diff(rows.indptr)
                yield rows.data / np.repeat(np.where(totals > 0, totals, 1.0), lengths)
            else:
                yield rows.data

    files.write("x_indptr", x.indptr)
    files.write("x_indices", x.indices)
    files.stream("x_data", (x.nnz,), np.float32, parts())
    files.header["x_shape"] = list(x.shape)
