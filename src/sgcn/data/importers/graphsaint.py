"""GraphSAINT's folders: the paper's Flickr, Reddit, Yelp and PPI."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft, entries
from sgcn.data.importers.base import Importer, folder
from sgcn.data.importers.classmap import class_map
from sgcn.data.importers.features import write_npy
from sgcn.data.importers.rows import check_pointers, within
from sgcn.data.importers.splits import node_ids, split_of
from sgcn.data.readers.arrays import Npy, Npz
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
        with Npz(paths["adj_full.npz"], "a scipy CSR matrix (adj_full.npz)", self.limit) as file:
            indptr = csr_pointers(file)
            n = len(indptr) - 1
            split = _split(paths["role.json"], n)
            draft.write("split", split)
            draft.write("y", class_map(paths["class_map.json"], n, _numbers))
            train = np.flatnonzero(split == 0) if self.standardise else None
            write_npy(draft, paths["feats.npy"], n, train)
            # The edges come last: what was held for the nodes is let go.
            with file.npy("indices") as columns:
                return draft.edges(csr_edges(indptr, columns), n)


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


def csr_pointers(file: Npz) -> npt.NDArray[np.int64]:
    """Row pointers of a square matrix that scipy saved as CSR, checked."""
    n = square_size(file)
    indptr: npt.NDArray[np.int64] = file.all("indptr", dtype=np.int64)
    with file.npy("indices") as array:
        check_pointers(indptr, n, array.shape[0], str(file.path))
    return indptr


def csr_edges(indptr: Any, columns: Npy) -> Iterator[tuple[Any, ...]]:
    """The entries of a matrix in CSR, checked: an edge goes from column to row."""
    return entries(indptr, zip(within(columns.parts(), len(indptr) - 1, str(columns.path))))
