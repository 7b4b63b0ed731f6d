"""DGL graphs as arrays: a folder of CSR arrays, or the two files of DGL's Reddit.

``dgl.save_graphs`` writes a stream that only DGL's own C++ reads. Its graphs come here as arrays:

    indptr, indices, _ = graph.adj_tensors("csc")  # row i: the nodes that i reads from
    np.save("indptr.npy", indptr), np.save("indices.npy", indices)
    np.save("feat.npy", graph.ndata["feat"]), np.save("label.npy", graph.ndata["label"])
    np.save("train_mask.npy", graph.ndata["train_mask"])  # and val_mask, test_mask
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.chunks import chunks
from sgcn.data.checks import check_rows, first_bad
from sgcn.data.draft import Draft, entries
from sgcn.data.importers.base import Importer
from sgcn.data.importers.rows import (
    check_pointers,
    labels_file,
    labels_of,
    within,
    write_features,
    write_features_file,
)
from sgcn.data.importers.scipy import matrix_graph
from sgcn.data.importers.splits import PART, split_of_parts
from sgcn.data.readers.arrays import Npz, npy
from sgcn.data.readers.files import existing, folder
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_WHAT = (
    "a folder with indptr and indices (.npy or .bin), or with reddit_graph.npz and reddit_data.npz"
)


@dataclass(frozen=True)
class Dgl(Importer):
    """``.npy`` files say what they hold; ``.bin`` ones are bare little-endian numbers."""

    name: ClassVar[str] = "dgl"
    summary: ClassVar[str] = "folder of CSR arrays, or DGL's reddit_graph.npz and reddit_data.npz"

    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")

    def read(self, source: Path, draft: Draft) -> Graph:
        if source.is_file():
            raise SgcnError(
                f"{source} is a file, expected {_WHAT}: what dgl.save_graphs wrote only DGL can "
                "read, save its arrays indptr and indices instead"
            )
        folder(source, _WHAT)
        if path := _find(source, "reddit_graph", "reddit_self_loop_graph", kinds=(".npz",)):
            return self._reddit(source, path, draft)
        pointers, columns = _find(source, "indptr"), _find(source, "indices")
        if pointers is None or columns is None:
            missing = "indptr" if pointers is None else "indices"
            raise SgcnError(f"{source} has no {missing}.npy or {missing}.bin, expected {_WHAT}")
        if pointers.suffix != columns.suffix:
            raise SgcnError(
                f"{source} mixes .npy and .bin, expected indptr and indices of one kind"
            )
        with _csr(pointers, columns) as (indptr, stored, parts):
            n = len(indptr) - 1
            check_pointers(indptr, n, stored, str(pointers))
            self._write_rows(source, draft, n)
            edges = entries(indptr, zip(within(parts, n, str(columns))))
            return draft.edges(edges, n, directed=self.directed)

    def _reddit(self, source: Path, graph_path: Path, draft: Draft) -> Graph:
        data_path = existing(source, "reddit_data.npz", _WHAT)
        with Npz(graph_path, "a scipy matrix (reddit_graph.npz)", self.limit) as file:
            graph = matrix_graph(file, draft, directed=self.directed, transpose=True)
        n = len(graph)
        what = "feature, label and node_types (reddit_data.npz)"
        with Npz(data_path, what, self.limit) as file:
            write_features(draft, file.npy("feature", "iuf", 2), n, f"feature in {data_path}")
            draft.write("y", labels_of(file.all("label", "iuf"), n, f"label in {data_path}"))
            types = file.all("node_types")
        check_rows(len(types), n, f"node_types in {data_path}")
        parts = enumerate(("train", "val", "test"), 1)
        where = "node_types in {} ({})"
        masks = ((word, types == part, where.format(data_path, word)) for part, word in parts)
        draft.write("split", split_of_parts(n, masks))
        return graph

    def _write_rows(self, source: Path, draft: Draft, n: int) -> None:
        if path := _find(source, "feat", "features"):
            if path.suffix == ".npy":
                write_features_file(draft, path, n, self.limit)
            else:
                write_features(draft, _bare_features(path, n), n, str(path))
        if path := _find(source, "label", "labels"):
            bare = path.suffix == ".bin"
            y = labels_of(_bare_labels(path, n), n, str(path)) if bare else labels_file(path, n)
            draft.write("y", y)
        paths = ((word, _find(source, f"{word}_mask")) for word in PART)
        masks = ((word, _mask(path, n), str(path)) for word, path in paths if path)
        draft.write("split", split_of_parts(n, masks))


def _find(source: Path, *stems: str, kinds: tuple[str, ...] = (".npy", ".bin")) -> Path | None:
    """The array with one of these names, if it is there."""
    names = [f"{stem}{suffix}" for stem in stems for suffix in kinds]
    found = (existing(source, name, _WHAT) for name in names if (source / name).exists())
    return next(found, None)


@contextmanager
def _csr(pointers: Path, columns: Path) -> Iterator[tuple[Any, int, Iterable[Any]]]:
    """Row pointers, how many columns there are, and these in parts while the file is open."""
    if columns.suffix == ".npy":
        with npy(pointers, "row pointers", "iu", 1) as array:
            indptr = array.all(np.int64)
        with npy(columns, "columns", "iu", 1) as array:
            yield indptr, array.shape[0], array.parts()
        return
    # Without headers the last row pointer is the number of entries, which gives the types.
    for wide, kind in product(("<i8", "<i4"), repeat=2):
        indptr = np.fromfile(pointers, wide)
        whole = indptr.nbytes == pointers.stat().st_size
        if whole and int(indptr[-1]) * int(kind[2]) == columns.stat().st_size:
            mapped = np.memmap(columns, kind, "r")
            parts = (mapped[part] for part in chunks(len(mapped)))
            yield indptr.astype(np.int64), len(mapped), parts
            return
    raise SgcnError(
        f"{pointers} and {columns.name} do not fit each other, expected int64 or int32 numbers, "
        "the last row pointer being the number of entries"
    )


def _bare_labels(path: Path, n: int) -> Any:
    size = path.stat().st_size
    if size not in (4 * n, 8 * n):
        raise SgcnError(f"{path} has {size} bytes, expected {4 * n} or {8 * n}: int32 or int64")
    return np.fromfile(path, f"<i{size // n}")


def _bare_features(path: Path, n: int) -> Any:
    size = path.stat().st_size
    if size % (4 * n):
        raise SgcnError(f"{path} has {size} bytes, expected a multiple of {4 * n}: float32 rows")
    return np.memmap(path, "<f4", "r", shape=(n, size // (4 * n)))


def _mask(path: Path, n: int) -> Any:
    if path.suffix == ".npy":
        with npy(path, f"a mask of {n} nodes", "biu", 1) as array:
            mask = array.all()
    else:
        mask = np.fromfile(path, np.uint8)
    check_rows(len(mask), n, str(path))
    first_bad(~np.isin(mask, (0, 1)), mask, str(path), "a mask of 0 and 1", noun="value")
    return mask.astype(np.bool_)
