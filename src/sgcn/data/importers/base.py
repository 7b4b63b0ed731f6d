"""What an importer is, and the checks that all formats share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sgcn.data.draft import Draft
from sgcn.data.readers.files import LIMIT
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


def a_name() -> Rule:
    """The option is part of a file's name; none means that there is only one to choose."""
    return Rule("a name, or none", lambda v: v is None or (isinstance(v, str) and v != ""))


def folder(source: Path, what: str) -> Path:
    """``source`` itself, if it is a folder."""
    if not source.is_dir():
        raise SgcnError(f"{source} is not a folder, expected {what}")
    return source
