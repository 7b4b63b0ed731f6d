"""What an importer is, and the checks that all formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sgcn.data.draft import Draft
from sgcn.data.readers.files import LIMIT, folder
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import Options, Rule, option, real


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
        """Write the rows of nodes of ``source`` into ``draft``; the graph of its edges."""


def text_or_none(what: str) -> Rule:
    """The option is text that is not empty, or none."""
    return Rule(f"{what}, or none", lambda v: v is None or (isinstance(v, str) and v != ""))


A_NAME = text_or_none("a name")


def only(within: Path, pattern: str, kind: str, what: str, name: str) -> str:
    """What ``*`` is in the one file that fits, for an option called ``name`` that was not given."""
    before, after = pattern.split("*")
    paths = folder(within, what).glob(pattern)
    names = sorted(path.name.removeprefix(before).removesuffix(after) for path in paths)
    if len(names) != 1:
        raise SgcnError(
            f"{within} has {len(names)} {kind}, expected {what}"
            + (f": set {name} to one of {', '.join(names)}" if names else "")
        )
    return names[0]
