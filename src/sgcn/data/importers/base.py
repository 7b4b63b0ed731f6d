"""What an importer is, and the checks that all formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sgcn.data.draft import Draft
from sgcn.data.files import LIMIT
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import Options, Rule, option, real

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class Importer(Options, ABC):
    """How a format is read; one instance may read many sources."""

    name: ClassVar[str]
    summary: ClassVar[str]

    limit_gb: float = option(LIMIT / 2**30, real(0), "what a packed file may unpack to, in GiB")

    @property
    def limit(self) -> int:
        return int(min(self.limit_gb, 2**30) * 2**30)

    @abstractmethod
    def read(self, source: Path, draft: Draft) -> Graph:
        """Write the arrays of ``source`` into ``draft`` and finish it."""


def a_name() -> Rule:
    """The option is part of a file's name; none means that there is only one to choose."""
    return Rule("a name, or none", lambda v: v is None or (isinstance(v, str) and v != ""))


def folder(source: Path, what: str) -> Path:
    """``source`` itself, if it is a folder."""
    if not source.is_dir():
        raise SgcnError(f"{source} is not a folder, expected {what}")
    return source


def finite(parts: Iterable[Any], place: str, before: int = 0) -> Iterator[Any]:
    """Rows of features as they pass, ``before`` of them earlier; the first not finite is named."""
    for part in parts:
        # A sum is finite unless an entry is not (or it overflows): one cheap look a part.
        with np.errstate(all="ignore"):
            suspect = part.dtype.kind == "f" and not np.isfinite(part.sum())
        if suspect:
            bad = ~np.isfinite(part).reshape(len(part), -1).all(1)
            if bad.any():
                raise SgcnError(
                    f"{place} has a value that is not finite in row {before + int(bad.argmax())}, "
                    "expected finite features"
                )
        before += len(part)
        yield part


def node_ids(values: list[Any], place: str) -> npt.NDArray[Any]:
    """A list out of JSON as an array of whole numbers."""
    try:
        ids = np.array(values)
    except (ValueError, OverflowError):  # lists in it, of several lengths
        ids = np.empty(0, np.object_)
    if values and (ids.ndim != 1 or ids.dtype.kind not in "iu"):
        raise SgcnError(f"{place} holds other things than numbers, expected whole node ids")
    return ids


def split_of(nodes: int, ids: Iterable[Any], places: Iterable[str]) -> npt.NDArray[np.int8]:
    """The split with the given ids of train, validation and test; ``places`` names each source."""
    split = np.full(nodes, -1, np.int8)
    for part, (chosen, place) in enumerate(zip(ids, places, strict=True)):
        chosen = np.asarray(chosen)
        if chosen.size == 0:
            raise SgcnError(f"{place} names no node, expected at least one for {PARTS[part]}")
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise SgcnError(f"{place} holds {chosen.dtype}, expected a list of whole node ids")
        bad = (chosen < 0) | (chosen >= nodes)
        if bad.any():
            raise SgcnError(
                f"{place} names node {chosen[bad.argmax()]}, expected ids from 0 to {nodes - 1}"
            )
        taken = split[chosen] != -1
        if taken.any():
            node = chosen[taken.argmax()]
            raise SgcnError(
                f"{place} names node {node}, which is in {PARTS[split[node]]} already, expected "
                "parts that do not overlap"
            )
        split[chosen] = part
    return split
