"""Features as others keep them, written into a draft without holding a dense table."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.chunks import chunks, progress
from sgcn.data.draft import Draft
from sgcn.data.feature_rows import finite, moments, single, standardised
from sgcn.data.importers.rows import check_pointers, check_rows, within
from sgcn.data.readers.arrays import Npz, npy
from sgcn.errors import SgcnError


def write_npy(draft: Draft, path: Path, n: int, train: Any = None) -> None:
    """The features of ``path``, one row for each of ``n`` nodes; standardised by rows ``train``.

    The file is read twice for that and never held.
    """
    what = f"features with {n} rows ({path.name})"
    with npy(path, what) as file:
        shape = file.shape
        if shape[0] != n or shape[1] < 1:
            raise SgcnError(
                f"{path} has shape {shape}, expected {n} rows, one for each node, and at least one "
                "column"
            )
        if train is None:
            draft.stream("x", shape, np.float32, single(file.parts(), str(path)))
            return
        with progress("reading x", " rows", n) as step:
            shift, scale = moments(file.parts(), train, str(path), step)
    with npy(path, what) as file:
        rows = finite(standardised(file.parts(), shift, scale), str(path))
        draft.stream("x", shape, np.float32, rows)


def write_features(draft: Draft, values: Any, n: int, where: str) -> None:
    """Features of an array: a row a node, numbers."""
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise SgcnError(
            f"{where} holds {values.dtype} of shape {tuple(values.shape)}, expected features: "
            "2 dimensions of numbers"
        )
    parts = (values[part] for part in chunks(n, values.shape[1]))
    write_parts(draft, tuple(values.shape), parts, n, where)


def write_parts(
    draft: Draft, shape: tuple[int, ...], parts: Iterable[Any], n: int, where: str
) -> None:
    """Features whose rows come in parts."""
    check_rows(shape[0], n, where)
    draft.stream("x", shape, np.float32, single(parts, where))


def write_features_file(draft: Draft, path: Path, n: int, limit: int) -> None:
    """Features of an ``.npy`` (dense) or of an ``.npz`` that scipy saved (CSR)."""
    if path.suffix == ".npz":
        with Npz(path, "sparse features that scipy.sparse.save_npz wrote (CSR)", limit) as file:
            _write_sparse(draft, file, n)
        return
    with npy(path, f"features with {n} rows", "biuf") as array:
        write_parts(draft, array.shape, array.parts(), n, str(path))


def _write_sparse(draft: Draft, file: Npz, n: int) -> None:
    shape = file.all("shape")
    if len(shape) != 2:
        raise SgcnError(f"{file.path} has shape {tuple(shape.tolist())}, expected 2 dimensions")
    check_rows(int(shape[0]), n, str(file.path))
    width = int(shape[1])
    indptr = file.all("indptr", dtype=np.int64)
    with file.npy("indices") as columns, file.npy("data", "biuf") as values:
        stored = columns.shape[0]
        check_pointers(indptr, n, stored, str(file.path), ": save features as CSR")
        check_rows(values.shape[0], stored, f"data in {file.path}")
        kind = np.int32 if max(width, stored) < 2**31 else np.int64  # scipy wants one for both
        draft.write("x_indptr", indptr.astype(kind))
        draft.stream("x_indices", (stored,), kind, within(columns.parts(), width, str(file.path)))
        where = f"{file.path}, counted by entries,"
        draft.stream("x_data", (stored,), np.float32, single(values.parts(), where))
    draft.header["x_shape"] = [n, width]
