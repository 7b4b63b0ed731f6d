"""Builders of the graphs that ship with the package: source files in, arrays and a header out.

A builder is a function of the source files alone: the same files give the same bytes, whatever the
order of a hash table. A new one is a file here and a line in `BUILDERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sgcn.options import known_name
from tools.builders import debian, wordnet
from tools.builders.built import Built

#: Name of a graph -> its builder, which takes the folder of the sources (None: the usual places).
BUILDERS: dict[str, Callable[..., Built]] = {
    "debian": debian.build,
    "debian-tags": debian.build_tags,
    "wordnet": wordnet.build,
}


def build(name: str, source: Path | None = None, **options: Any) -> Built:
    """The graph ``name``, made from the files in ``source``; ``options`` are the builder's."""
    return BUILDERS[known_name("graph", name, BUILDERS)](source, **options)
