"""DGL graphs as arrays: a folder of CSR arrays, or the two files of DGL's Reddit.

``dgl.save_graphs`` writes a stream that only DGL's own C++ reads. Its graphs come here as arrays:

    indptr, indices, _ = graph.adj_tensors("csc")  # row i: the nodes that i reads from
    np.save("indptr.npy", indptr), np.save("indices.npy", indices)
    np.save("feat.npy", graph.ndata["feat"]), np.save("label.npy", graph.ndata["label"])
    np.save("train_mask.npy", graph.ndata["train_mask"])  # and val_mask, test_mask
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks
from sgcn.data.draft import Draft, entries
from sgcn.data.importers.base import Importer, folder
from sgcn.data.importers.features import write_features, write_features_file, write_parts
from sgcn.data.importers.graphsaint import csr_edges
from sgcn.data.importers.rows import check_pointers, check_rows, labels_file, labels_of, within
from sgcn.data.importers.scipy import matrix_graph
from sgcn.data.importers.splits import split_of_parts
from sgcn.data.readers.arrays import Npz, npy
from sgcn.data.readers.files import existing
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_WHAT = (
    "a folder with indptr and indices (.npy or .bin), or with reddit_graph.npz and reddit_data.npz"
)
_REDDIT = ("reddit_graph.npz", "reddit_self_loop_graph.npz")
_MASKS = {"train": "train_mask", "val": "val_mask", "test": "test_mask"}
_NAMES = {"features": ("feat", "features"), "labels": ("label", "labels")}


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
        for name in _REDDIT:
            if (source / name).exists():
                return self._reddit(source, existing(source, name, _WHAT), draft)
        with _csr(source) as (indptr, edges):
            self._write_rows(source, draft, len(indptr) - 1)
            return draft.edges(edges, len(indptr) - 1, directed=self.directed)

    def _reddit(self, source: Path, graph_path: Path, draft: Draft) -> Graph:
        data_path = existing(source, "reddit_data.npz", _WHAT)
        with Npz(graph_path, "a scipy matrix (reddit_graph.npz)", self.limit) as file:
            graph = matrix_graph(file, draft, directed=self.directed, transpose=True)
        n = len(graph)
        what = "feature, label and node_types (reddit_data.npz)"
        with Npz(data_path, what, self.limit) as file:
            where = f"feature in {data_path}"
            with file.npy("feature", "iuf", 2) as x:
                write_parts(draft, x.shape, x.parts(), n, where)
            draft.write("y", labels_of(file.all("label", "iuf"), n, f"label in {data_path}"))
            types = file.all("node_types")
        check_rows(len(types), n, f"node_types in {data_path}")
        masks = {"train": types == 1, "val": types == 2, "test": types == 3}
        split = split_of_parts(n, masks.get, lambda word: f"node_types in {data_path} ({word})")
        draft.write("split", split)
        return graph

    def _write_rows(self, source: Path, draft: Draft, n: int) -> None:
        for stem in _NAMES["features"]:
            if path := _find(source, stem):
                _write_features(draft, path, n, self.limit)
                break
        for stem in _NAMES["labels"]:
            if path := _find(source, stem):
                bare = path.suffix == ".bin"
                y = labels_of(_bare(path, n), n, str(path)) if bare else labels_file(path, n)
                draft.write("y", y)
                break
        split = split_of_parts(
            n,
            lambda word: _mask(_find(source, _MASKS.get(word, "")), n),
            lambda word: str(_find(source, _MASKS[word])),
        )
        if split is not None:
            draft.write("split", split)


def _find(source: Path, stem: str) -> Path | None:
    """The array called ``stem``, if it is there."""
    for suffix in (".npy", ".bin"):
        if stem and (source / f"{stem}{suffix}").exists():
            return existing(source, f"{stem}{suffix}", _WHAT)
    return None


@contextmanager
def _csr(source: Path) -> Iterator[tuple[npt.NDArray[np.int64], Iterator[tuple[Any, ...]]]]:
    """Row pointers, and the edges while the file is open."""
    pointers, columns = _find(source, "indptr"), _find(source, "indices")
    if pointers is None or columns is None:
        missing = "indptr" if pointers is None else "indices"
        raise SgcnError(f"{source} has no {missing}.npy or {missing}.bin, expected {_WHAT}")
    if (pointers.suffix == ".bin") != (columns.suffix == ".bin"):
        raise SgcnError(f"{source} mixes .npy and .bin, expected indptr and indices of one kind")
    if columns.suffix == ".bin":
        indptr, mapped = _bare_csr(pointers, columns)
        check_pointers(indptr, len(indptr) - 1, len(mapped), str(pointers))
        parts = within((mapped[k] for k in chunks(len(mapped))), len(indptr) - 1, str(columns))
        yield indptr, entries(indptr, zip(parts))
        return
    with npy(pointers, "row pointers", "iu", 1) as array:
        indptr = array.all(np.int64)
    with npy(columns, "columns", "iu", 1) as array:
        check_pointers(indptr, len(indptr) - 1, array.shape[0], str(pointers))
        yield indptr, csr_edges(indptr, array)


def _bare_csr(pointers: Path, columns: Path) -> tuple[npt.NDArray[np.int64], Any]:
    """CSR without headers: the last row pointer is the number of entries, which gives the types."""
    stored = columns.stat().st_size
    for kind in ("<i8", "<i4"):
        if pointers.stat().st_size % int(kind[2]):
            continue
        indptr = np.fromfile(pointers, kind).astype(np.int64)
        for width in (8, 4):
            if indptr[-1] >= 0 and int(indptr[-1]) * width == stored:
                return indptr, np.memmap(columns, f"<i{width}", "r")
    raise SgcnError(
        f"{pointers} and {columns.name} do not fit each other, expected int64 or int32 numbers, "
        "the last row pointer being the number of entries"
    )


def _bare(path: Path, n: int) -> Any:
    """Labels without a header: int64 or int32, one a node."""
    size = path.stat().st_size
    if size not in (4 * n, 8 * n):
        raise SgcnError(f"{path} has {size} bytes, expected {4 * n} or {8 * n}: int32 or int64")
    return np.fromfile(path, f"<i{size // n}")


def _write_features(draft: Draft, path: Path, n: int, limit: int) -> None:
    if path.suffix == ".npy":
        write_features_file(draft, path, n, limit)
        return
    size = path.stat().st_size
    if size % (4 * n):
        raise SgcnError(f"{path} has {size} bytes, expected a multiple of {4 * n}: float32 rows")
    write_features(draft, np.memmap(path, "<f4", "r", shape=(n, size // (4 * n))), n, str(path))


def _mask(path: Path | None, n: int) -> Any:
    if path is None:
        return None
    if path.suffix == ".npy":
        with npy(path, f"a mask of {n} nodes", "biu", 1) as array:
            mask = array.all()
    else:
        mask = np.fromfile(path, np.uint8)
    check_rows(len(mask), n, str(path))
    if not np.isin(mask, (0, 1)).all():
        raise SgcnError(f"{path} holds values other than 0 and 1, expected a mask")
    return mask.astype(np.bool_)
