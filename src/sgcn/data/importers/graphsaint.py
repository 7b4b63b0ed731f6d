"""GraphSAINT's folders: the paper's Flickr, Reddit, Yelp and PPI."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft
from sgcn.data.importers.base import Importer
from sgcn.data.importers.rows import class_map, write_npy
from sgcn.data.importers.scipy import matrix_edges
from sgcn.data.importers.splits import split_of
from sgcn.data.readers.arrays import Npz
from sgcn.data.readers.fields import Fields, NotANumberError
from sgcn.data.readers.files import existing, read_json
from sgcn.data.readers.jsontext import whole_numbers
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
        names = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
        matrix, features, labels, roles = (existing(source, name, _FILES) for name in names)
        with Npz(matrix, "a scipy CSR matrix (adj_full.npz)", self.limit) as file:
            n, edges = matrix_edges(file)
            split = _split(roles, n)
            draft.write("split", split)
            draft.write("y", class_map(labels, n, _numbers))
            write_npy(draft, features, n, split if self.standardise else None)
            # The edges come last: what was held for the nodes is let go.
            return draft.edges(edges, n)


def _numbers(keys: list[str], said: str, expected: str) -> npt.NDArray[np.int64]:
    try:
        return Fields.of([key.strip() for key in keys]).numbers(integer=True)[:, 0]
    except NotANumberError as error:
        raise SgcnError(f"{said} {error.args[0][:40]!r}, expected {expected}") from None


def _split(path: Path, n: int) -> npt.NDArray[np.int8]:
    roles = read_json(path, "the lists tr, va and te (role.json)", dict)
    parts = []
    for key, word in _ROLES.items():
        if not isinstance(roles.get(key), list):
            raise SgcnError(f"{path} has no list {key!r}, expected {word} nodes")
        ids, where = whole_numbers(roles[key]), f"{key} in {path}"
        if ids is None:
            raise SgcnError(f"{where} holds other things than numbers, expected whole node ids")
        parts.append((ids, where))
    return split_of(n, parts)
