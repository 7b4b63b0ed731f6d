"""Node-link JSON, as NetworkX writes it: an object with a list of nodes and one of links."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from sgcn.data.readers.jsontext import json_text
from sgcn.errors import SgcnError

LINKS = ("links", "edges")  # networkx calls them edges since 3.4
WHAT = "a graph as node-link JSON: an object with nodes and links"


def listed(path: Path, keys: tuple[str, ...]) -> Iterator[list[Any]]:
    """The items of the one list of the graph that has one of the names ``keys``."""
    found = 0
    with json_text(path, WHAT) as text:
        for key in text.members():
            if key not in keys:
                text.skip()
                continue
            found += 1
            yield from text.items()
        text.end()
    if found != 1:
        raise SgcnError(
            f"{path} has {found or 'no'} list{'s' * (found > 1)} {' or '.join(keys)}, expected one"
        )


def is_directed(path: Path) -> bool:
    """What the graph says about itself."""
    directed = False
    with json_text(path, WHAT) as text:
        for key in text.members():
            if key == "directed":
                directed = bool(text.value())
            else:
                text.skip()
        text.end()
    return directed


def ends_of(links: list[Any], path: Path) -> tuple[list[Any], list[Any]]:
    """Sources and targets of some links."""
    try:
        return list(map(itemgetter("source"), links)), list(map(itemgetter("target"), links))
    except (KeyError, TypeError, IndexError):
        raise SgcnError(
            f"{path} has a link without source and target, expected objects with both"
        ) from None
