"""Edge lists: CSV, TSV, lines with blanks between (SNAP), or Parquet; tables of nodes beside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.importers.beside import Beside, Ids, a_column
from sgcn.data.importers.rows import about, checked_edges
from sgcn.data.readers.tables import Table
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, one_of, option, optional, whole


@dataclass(frozen=True)
class EdgeList(Beside):
    """A row is an edge; messages go from source to target."""

    name: ClassVar[str] = "edgelist"
    summary: ClassVar[str] = "edges in .csv, .tsv, .txt (also .gz) or .parquet"

    source_column: int | str = option(0, a_column(), "where edges start")
    target_column: int | str = option(1, a_column(), "where edges end")
    weight_column: int | str | None = option(
        None, optional(a_column()), "weights of edges; none: none"
    )
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")
    ids: str = option(
        "numbers", one_of("numbers", "compact", "text"),
        "numbers as they are, numbers renumbered without gaps, or names",
    )  # fmt: skip
    nodes: int | None = option(None, optional(whole()), "how many nodes; none: as the files say")

    def read(self, source: Path, draft: Draft) -> Graph:
        table = self.table(source, "an edge list")
        ids = Ids(self.ids)
        beside = [self.rows_of(table, ids) for table in self.tables().values()]
        least = max((int(rows.max()) + 1 for rows in beside if rows is not None), default=0)
        n = (self.nodes or self.rows()) if ids.names is None else None
        graph = self._graph(table, ids, n, least, draft)
        if self.nodes not in (None, len(graph)):
            raise SgcnError(f"{source} names {len(graph)} nodes, expected nodes = {self.nodes}")
        if ids.names is not None:
            text = json.dumps(ids.called(str(source)), ensure_ascii=False)
            (draft.folder / "ids.json").write_text(f"{text}\n", "utf-8")
        self.write_rows(draft, len(graph), ids)
        return draft.finish(graph)

    def _edges(self, table: Table, ids: Ids) -> Iterator[tuple[Any, ...]]:
        """Sources, targets and, if there are any, weights; some rows at a time."""
        if table.width < 2:
            raise SgcnError(
                f"{table.path} has {table.width} column, expected an edge a line: set delimiter "
                "if it is another one"
            )
        ends = [table.place(column) for column in (self.source_column, self.target_column)]
        weights = [] if self.weight_column is None else [table.place(self.weight_column)]
        yield from map(tuple, ids.columns(table, ends, weights))

    def _graph(self, table: Table, ids: Ids, n: int | None, least: int, draft: Draft) -> Graph:
        """``n`` nodes, or as many as the edges name, and not fewer than the tables do."""
        place = str(table.path)
        edges = checked_edges(self._edges(table, ids), n, place)
        with about(table.path):
            return draft.edges(
                edges if n else _closed(edges, least, place), n, directed=self.directed
            )


def _closed(edges: Iterator[tuple[Any, ...]], least: int, place: str) -> Iterator[tuple[Any, ...]]:
    """Edges as they pass; behind them a loop at the last of at least ``least`` nodes.

    A graph drops loops, so that this one only says how many nodes there are.
    """
    most = count = 0
    weights: list[Any] = []
    for src, dst, *weights in edges:
        most = max(most, int(src.max(initial=0)), int(dst.max(initial=0)))
        count += len(src)
        yield src, dst, *weights
    most = max(most, least - 1)
    if most > 200 * count + 1_000_000:  # memory is not for gaps
        raise SgcnError(
            f"{place} has {count} edges and names node {most}, expected ids without such gaps: set "
            "ids=compact to renumber them, or nodes if that is right"
        )
    last = np.array([most], np.int32)
    yield last, last, *(np.zeros(1) for _ in weights)
