"""NetworkX: a graph object in Python, or the node-link JSON of ``networkx.node_link_data``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.features import finite, to_float32
from sgcn.data.importers.base import Importer, text_or_none
from sgcn.data.importers.rows import about, labels_of
from sgcn.data.importers.splits import part_of, split_of_numbers
from sgcn.data.readers.files import unreadable
from sgcn.data.readers.jsontext import json_text
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import option
from sgcn.store import IDS

LINKS = ("links", "edges")  # networkx calls them edges since 3.4
WHAT = "a graph as node-link JSON: an object with nodes and links"
_PLAIN = str | int | float | None  # what may name a part; anything else is text that names none
_ATTRIBUTE = text_or_none("an attribute's name")


@dataclass(frozen=True)
class NetworkX(Importer):
    """Nodes are numbered in the order of the file; the graph itself says if it is directed."""

    name: ClassVar[str] = "networkx"
    summary: ClassVar[str] = "graph.json of networkx.node_link_data"

    x: str = option("x", _ATTRIBUTE, "node attribute with features: a number or a list")
    y: str = option("y", _ATTRIBUTE, "node attribute with a class or a 0/1 list")
    split: str = option("split", _ATTRIBUTE, "node attribute with train, valid or test")
    weight: str | None = option(None, _ATTRIBUTE, "edge attribute with weights; none: none")

    def read(self, source: Path, draft: Draft) -> Graph:
        directed = is_directed(source)
        nodes = _Nodes({"x": self.x, "y": self.y, "split": self.split}, str(source))
        for some in listed(source, ("nodes",)):
            with unreadable(source, f"{WHAT}, each node with an id"):
                names = list(map(itemgetter("id"), some))
            nodes.add(names, some)
        number = nodes.numbered()
        n = len(number)
        nodes.write(draft)
        edges = _edges(source, number, self.weight)
        del number  # so that it is let go when the last edge is read
        with about(source):
            return draft.edges(edges, n, directed=directed)


def from_networkx(
    graph: Any, *, x: str | None = "x", y: str | None = "y", split: str | None = "split",
    weight: str | None = None, **options: Any,
) -> Graph:  # fmt: skip
    """A graph of NetworkX, its nodes numbered in the order of ``graph.nodes``.

    ``x``, ``y`` and ``split`` are the node attributes with features, labels and train, valid or
    test; ``weight`` is the edge attribute with weights. ``options`` are those of P.
    """
    for name in ("nodes", "edges", "is_directed"):
        if not hasattr(graph, name):
            raise SgcnError(f"{type(graph).__name__} has no {name}, expected a NetworkX graph")
    nodes = _Nodes({"x": x, "y": y, "split": split}, "the graph")
    nodes.add(list(graph.nodes), list(map(itemgetter(1), graph.nodes(data=True))))
    number = nodes.numbered()
    rows = {name: np.concatenate(parts) for name, parts in nodes.rows().items()}
    edges = list(graph.edges(data=True))
    *ends, links = (list(map(itemgetter(part), edges)) for part in range(3))
    src, dst, weights = (*_numbered(ends, links, number, weight, "the graph"), None)[:3]
    with about(Path("the graph")):
        return Graph.from_edges(
            src, dst, weights, nodes=len(number), directed=graph.is_directed(), **rows, **options
        )


class _Nodes:
    """Ids and attributes of nodes, which come some at a time; ``wanted`` names the attributes."""

    def __init__(self, wanted: dict[str, str | None], where: str) -> None:
        self.wanted, self.where = wanted, where
        self.names: list[Any] = []
        self.parts: dict[str, list[Any]] = {}

    def add(self, names: list[Any], nodes: list[Any]) -> None:
        for name, key in self.wanted.items():
            with unreadable(Path(self.where), f"{WHAT}, each node an object"):
                found = [key is not None and key in node for node in nodes]
            if not any(found) and name not in self.parts:
                continue
            if self.names and name not in self.parts:  # some came without it
                self._missing(self.names[0], key)
            if not all(found):
                self._missing(names[found.index(False)], key)
            values = [node[key] for node in nodes]
            self.parts.setdefault(name, []).append(self._array(name, values, names))
        self.names += names

    def _missing(self, node: Any, key: str | None) -> NoReturn:
        raise SgcnError(
            f"{self.where} has the node {node!r} without {key!r}, expected all to have it"
        )

    def _array(self, name: str, values: list[Any], names: list[Any]) -> Any:
        key = self.wanted[name]
        if name == "split":
            words = (word if isinstance(word, _PLAIN) else repr(word) for word in values)
            return np.array([part_of(word, f"{key} in {self.where}") for word in words], np.int64)
        for node, value in zip(names, values, strict=True) if name == "y" else ():
            if isinstance(value, str):  # text has no order that would number it
                raise SgcnError(
                    f"{key} of node {node!r} in {self.where} is {value[:40]!r}, expected a class "
                    "as a number, or a 0/1 list: number the classes from 0 on first"
                )
        array = _array(values, f"{key} of the nodes in {self.where}")
        if name == "y":
            return array
        table = to_float32(array[:, None] if array.ndim == 1 else array)
        return next(finite((table,), f"{key} of {self.where}", len(self.names)))

    def numbered(self) -> dict[Any, int]:
        """The numbers of the nodes, in their order."""
        n = len(self.names)
        if n == 0:
            raise SgcnError(f"{self.where} has no node, expected at least one")
        with unreadable(Path(self.where), "ids of nodes that are text or numbers"):
            number = dict(zip(self.names, range(n), strict=True))
        if len(number) != n:
            raise SgcnError(f"{self.where} has several nodes of one id, expected each id once")
        return number

    def write(self, draft: Draft) -> None:
        """Attributes and ids into the draft; what was gathered is let go."""
        for name, parts in self.rows().items():
            shape = (len(self.names), *parts[0].shape[1:])
            draft.stream(name, shape, parts[0].dtype, parts)
        self.parts.clear()
        draft.call(IDS, self.names)
        self.names.clear()

    def rows(self) -> dict[str, list[Any]]:
        """x, y and split in parts, as far as there are any."""
        made = dict(self.parts)
        for name, parts in self.parts.items():
            where = f"{self.wanted[name]} of the nodes in {self.where}"
            if len({part.shape[1:] for part in parts}) > 1:
                raise SgcnError(f"{where} are lists of several lengths, expected one length")
            if name == "y":
                made[name] = [labels_of(np.concatenate(parts), len(self.names), where)]
            elif name == "split":
                where = f"{self.wanted[name]} in {self.where}"
                made[name] = [split_of_numbers(len(self.names), np.concatenate(parts), where)]
        return made


def _edges(source: Path, number: dict[Any, int], weight: str | None) -> Iterator[tuple[Any, ...]]:
    for links in listed(source, LINKS):
        yield _numbered(ends_of(links, source), links, number, weight, str(source))


def _numbered(
    ends: Sequence[list[Any]], links: list[Any], number: dict[Any, int], weight: str | None,
    where: str,
) -> tuple[Any, ...]:  # fmt: skip
    """Sources, targets and, if there are any, weights of some edges."""
    with unreadable(Path(where), "ends of edges that are ids of nodes"):
        try:
            found = [map(number.__getitem__, side) for side in ends]
            src, dst = (np.fromiter(side, np.int32, len(links)) for side in found)
        except KeyError as error:
            raise SgcnError(
                f"{where} has an edge to {error.args[0]!r}, expected the id of a node"
            ) from None
    if weight is None:
        return src, dst
    for *edge, link in zip(*ends, links, strict=True):
        if weight not in link:
            raise SgcnError(
                f"{where} has the edge {tuple(edge)!r} without {weight!r}, expected all to have it"
            )
    return src, dst, _array([link[weight] for link in links], f"{weight} of the edges in {where}")


def _array(values: list[Any], where: str) -> Any:
    try:
        array = np.array(values)
    except ValueError:
        raise SgcnError(f"{where} are lists of several lengths, expected one length") from None
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise SgcnError(f"{where} are {array.dtype}, expected numbers or lists of them")
    return array


# -- node-link JSON, also GraphSAGE's ---------------------------------------------------------


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
    return directed


def ends_of(links: list[Any], path: Path) -> tuple[list[Any], list[Any]]:
    """Sources and targets of some links."""
    try:
        return list(map(itemgetter("source"), links)), list(map(itemgetter("target"), links))
    except (KeyError, TypeError, IndexError):
        raise SgcnError(
            f"{path} has a link without source and target, expected objects with both"
        ) from None
