"""NetworkX: a graph object in Python, or the node-link JSON of ``networkx.node_link_data``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.files import read_json, unreadable
from sgcn.data.importers.base import Importer
from sgcn.data.importers.rows import about, labels_of, part_of, single, split_of_numbers
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import Rule, option

_WHAT = "node-link JSON: nodes with an id, edges (or links) with source and target"


def _an_attribute() -> Rule:
    return Rule(
        "an attribute's name, or none", lambda v: v is None or (isinstance(v, str) and v != "")
    )


@dataclass(frozen=True)
class NetworkX(Importer):
    """Nodes are numbered in the order of the file; the graph itself says if it is directed."""

    name: ClassVar[str] = "networkx"
    summary: ClassVar[str] = "graph.json of networkx.node_link_data"

    x: str = option("x", _an_attribute(), "node attribute with features: a number or a list")
    y: str = option("y", _an_attribute(), "node attribute with a class or a 0/1 list")
    split: str = option("split", _an_attribute(), "node attribute with train, valid or test")
    weight: str | None = option(None, _an_attribute(), "edge attribute with weights; none: none")

    def read(self, source: Path, draft: Draft) -> Graph:
        given = read_json(source, _WHAT, dict)
        with unreadable(source, _WHAT):
            nodes, edges = given["nodes"], given["edges" if "edges" in given else "links"]
            names = list(map(itemgetter("id"), nodes))
            ends = [list(map(itemgetter(end), edges)) for end in ("source", "target")]
        weights = None
        if self.weight is not None:
            weights = _attribute(edges, self.weight, list(zip(*ends, strict=True)), "edge", source)
        graph = _graph(
            names, nodes, ends, weights, bool(given.get("directed")), self._attributes, str(source)
        )
        for name in ("x", "y", "split"):
            if getattr(graph, name) is not None:
                draft.write(name, getattr(graph, name))
        (draft.folder / "ids.json").write_text(json.dumps(names) + "\n")
        return draft.finish(graph)

    @property
    def _attributes(self) -> dict[str, str]:
        return {"x": self.x, "y": self.y, "split": self.split}


def from_networkx(
    graph: Any,
    *,
    x: str | None = "x",
    y: str | None = "y",
    split: str | None = "split",
    weight: str | None = None,
    **options: Any,
) -> Graph:
    """A graph of NetworkX, its nodes numbered in the order of ``graph.nodes``.

    ``x``, ``y`` and ``split`` are the node attributes with features, labels and train, valid or
    test; ``weight`` is the edge attribute with weights. ``options`` are those of P.
    """
    for name in ("nodes", "edges", "is_directed"):
        if not hasattr(graph, name):
            raise SgcnError(f"{type(graph).__name__} has no {name}, expected a NetworkX graph")
    names = list(graph.nodes)
    nodes = list(map(itemgetter(1), graph.nodes(data=True)))
    pairs = list(graph.edges())
    ends = [list(map(itemgetter(end), pairs)) for end in (0, 1)]
    weights = None
    if weight is not None:
        attributes = list(map(itemgetter(2), graph.edges(data=True)))
        weights = _attribute(attributes, weight, pairs, "edge", "the graph")
    wanted = {"x": x, "y": y, "split": split}
    made = _graph(names, nodes, ends, weights, graph.is_directed(), wanted, "the graph")
    return made.with_propagation(**options) if options else made


def _graph(
    names: Sequence[Any],
    nodes: Sequence[Any],
    ends: Sequence[Sequence[Any]],
    weights: Any,
    directed: bool,
    wanted: dict[str, Any],
    place: str,
) -> Graph:
    n = len(names)
    if n == 0:
        raise SgcnError(f"{place} has no node, expected at least one")
    with unreadable(Path(place), "ids of nodes that are text or numbers"):
        number = dict(zip(names, range(n), strict=True))
        strange = [end for end in {*ends[0], *ends[1]} if end not in number]
    if len(number) != n:
        raise SgcnError(f"{place} has several nodes of one id, expected each id once")
    if strange:
        raise SgcnError(f"{place} has an edge to {strange[0]!r}, expected the id of a node")
    src, dst = (np.fromiter(map(number.__getitem__, side), np.int32, len(side)) for side in ends)
    found = {
        name: _attribute(nodes, key, names, "node", place)
        for name, key in wanted.items()
        if key is not None and any(key in node for node in nodes)
    }
    rows: dict[str, Any] = {}
    if "x" in found:
        values = _array(found["x"], f"{wanted['x']} of the nodes in {place}")
        values = values[:, None] if values.ndim == 1 else values
        rows["x"] = next(single((values,), f"{wanted['x']} of {place}"))
    if "y" in found:
        values = _array(found["y"], f"{wanted['y']} of the nodes in {place}")
        rows["y"] = labels_of(values, n, f"{wanted['y']} in {place}")
    if "split" in found:
        where = f"{wanted['split']} in {place}"
        parts = np.array([part_of(_plain(word), where) for word in found["split"]])
        rows["split"] = split_of_numbers(n, parts, where)
    with about(Path(place)):
        return Graph.from_edges(src, dst, weights, nodes=n, directed=directed, **rows)


def _attribute(
    things: Sequence[Any], key: str, names: Sequence[Any], kind: str, place: Any
) -> list[Any]:
    """The attribute ``key`` of all things, which must have it."""
    missing = next((k for k, thing in enumerate(things) if key not in thing), None)
    if missing is not None:
        raise SgcnError(
            f"{place} has the {kind} {names[missing]!r} without {key!r}, expected all to have it"
        )
    return [thing[key] for thing in things]


def _plain(word: Any) -> Any:
    """Text, a number or nothing as it is; anything else as text that means no part."""
    return word if isinstance(word, str | int | float | None) else repr(word)


def _array(values: list[Any], place: str) -> Any:
    try:
        array = np.array(values)
    except ValueError:
        raise SgcnError(f"{place} are lists of several lengths, expected one length") from None
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise SgcnError(f"{place} are {array.dtype}, expected numbers or lists of them")
    return array
