"""GraphSAINT's folders: the paper's Flickr, Reddit, Yelp and PPI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft
from sgcn.data.files import Npz, existing, read_json
from sgcn.data.importers.base import Importer, folder, node_ids, split_of
from sgcn.data.importers.classmap import class_map
from sgcn.data.importers.features import write_npy
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import csr
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
            indptr, indices = sorted_rows(*csr_arrays(file))
        n = len(indptr) - 1
        roles = read_json(paths["role.json"], "the lists tr, va and te (role.json)", dict)
        for key, word in _ROLES.items():
            if not isinstance(roles.get(key), list):
                raise SgcnError(f"{paths['role.json']} has no list {key!r}, expected {word} nodes")
        places = {key: f"{key} in {paths['role.json']}" for key in _ROLES}
        ids = [node_ids(roles[key], place) for key, place in places.items()]
        split = split_of(n, ids, places.values())
        draft.write("split", split)
        draft.write("y", class_map(paths["class_map.json"], n, int))
        train = np.flatnonzero(split == 0) if self.standardise else None
        write_npy(draft, paths["feats.npy"], n, train)
        return draft.finish(draft.csr(indptr, indices))


def sorted_rows(indptr: Any, indices: Any) -> tuple[Any, Any]:
    """Rows in order, without duplicates: sorted in place, so that edges are held once."""
    if csr.rows_are_sorted(indptr, indices):
        return indptr, indices
    kept = csr.sort_many_rows(indptr, indices)
    indptr = csr.compact_rows(indptr, indices, kept)
    return indptr, indices[: indptr[-1]]


def csr_arrays(file: Npz) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Row pointers and columns of a square matrix that scipy saved as CSR, checked."""
    shape = file.all("shape")
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 1:
        raise SgcnError(f"{file.path} has shape {tuple(shape.tolist())}, expected a square matrix")
    n = int(shape[0])
    indptr = file.all("indptr", dtype=np.int64)
    with file.npy("indices") as array:
        stored = array.shape[0]
        fits = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == stored
        if not fits or (np.diff(indptr) < 0).any():
            raise SgcnError(
                f"{file.path} has row pointers that do not fit, expected {n + 1} that rise from 0 "
                f"to {stored}"
            )
        indices = np.empty(stored, np.int32)
        for start, part in array.numbered():
            if part.min() < 0 or part.max() >= n:
                bad = int(np.argmax((part < 0) | (part >= n)))
                raise SgcnError(
                    f"{file.path} has column {part[bad]} in entry {start + bad}, expected columns "
                    f"from 0 to {n - 1}"
                )
            indices[start : start + len(part)] = part
    return indptr, indices
