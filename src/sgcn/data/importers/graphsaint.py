"""GraphSAINT's folders: the paper's Flickr, Reddit, Yelp and PPI."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft, entries
from sgcn.data.importers.base import Importer, folder
from sgcn.data.importers.rows import check_pointers, class_map, within, write_npy
from sgcn.data.importers.splits import node_ids, split_of
from sgcn.data.readers.arrays import Npz
from sgcn.data.readers.fields import Fields
from sgcn.data.readers.files import existing, read_json
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, option

_FILES = "a GraphSAINT folder: adj_full.npz, feats.npy, class_map.json, role.json"
_ROLES = {"tr": "training", "va": "validation", "te": "test"}


@dataclass(frozen=True)
class GraphSaint(Importer):
    """``adj_train.npz`` is not read: it is the part of ``adj_full.npz`` between training nodes."""

    name: ClassVar[str] = "graphsaint"
    summary: ClassVar[str] = "folder with adj_full.npz, feats.npy, class_map.json, role.json"

    standardise: bool = option(True, flag(), "features to mean 0, variance 1 of training rows")

    def read(self, source: Path, draft: Draft) -> Graph:
        folder(source, _FILES)
        paths = {
            name: existing(source, name, _FILES)
            for name in ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
        }
        what = "a scipy CSR matrix (adj_full.npz)"
        with Npz(paths["adj_full.npz"], what, self.limit) as file, csr_matrix(file) as (n, edges):
            split = _split(paths["role.json"], n)
            draft.write("split", split)
            draft.write("y", class_map(paths["class_map.json"], n, _numbers))
            train = np.flatnonzero(split == 0) if self.standardise else None
            write_npy(draft, paths["feats.npy"], n, train)
            # The edges come last: what was held for the nodes is let go.
            return draft.edges(edges, n)


def _numbers(keys: list[str]) -> npt.NDArray[np.int64]:
    fields = Fields.of([key.strip() for key in keys])
    numbers: npt.NDArray[np.int64] = fields.numbers(integer=True)[:, 0]
    return numbers


def _split(path: Path, n: int) -> npt.NDArray[np.int8]:
    roles = read_json(path, "the lists tr, va and te (role.json)", dict)
    for key, word in _ROLES.items():
        if not isinstance(roles.get(key), list):
            raise SgcnError(f"{path} has no list {key!r}, expected {word} nodes")
    sources = {key: f"{key} in {path}" for key in _ROLES}
    return split_of(n, [node_ids(roles[key], where) for key, where in sources.items()],
                    sources.values())  # fmt: skip


def square_size(file: Npz) -> int:
    """How many rows and columns the matrix of a file has."""
    shape = file.all("shape")
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 1:
        raise SgcnError(f"{file.path} has shape {tuple(shape.tolist())}, expected a square matrix")
    return int(shape[0])


@contextmanager
def csr_matrix(file: Npz) -> Iterator[tuple[int, Iterator[tuple[Any, ...]]]]:
    """How many rows a square matrix that scipy saved as CSR has, and its entries as edges."""
    n, where = square_size(file), str(file.path)
    indptr = file.all("indptr", dtype=np.int64)
    with file.npy("indices") as columns:
        check_pointers(indptr, n, columns.shape[0], where)
        yield n, csr_edges(indptr, columns.parts(), where)


def csr_edges(indptr: Any, columns: Iterable[Any], where: str) -> Iterator[tuple[Any, ...]]:
    """The entries of a matrix in CSR, checked: an edge goes from column to row."""
    return entries(indptr, zip(within(columns, len(indptr) - 1, where)))
