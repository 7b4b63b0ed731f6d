"""Edge lists: CSV, TSV, lines with blanks between (SNAP), or Parquet; tables of nodes beside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sgcn.data.draft import Draft
from sgcn.data.importers.beside import Beside, Ids, Tabular, a_column
from sgcn.data.importers.rows import about, checked_edges
from sgcn.data.readers.tables import Table
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.options import flag, integer, one_of, option, optional
from sgcn.store import IDS


@dataclass(frozen=True)
class Edges(Tabular):
    """A row of a table is an edge; messages go from source to target."""

    source_column: int | str = option(0, a_column(), "where edges start")
    target_column: int | str = option(1, a_column(), "where edges end")
    weight_column: int | str | None = option(
        None, optional(a_column()), "weights of edges; none: none"
    )
    directed: bool = option(False, flag(), "keep directions; else every edge goes both ways")

    def edges_of(self, table: Table, ids: Ids) -> Iterator[tuple[Any, ...]]:
        """Sources, targets and, if there are any, weights; some rows at a time."""
        if table.width < 2:
            raise SgcnError(
                f"{table.path} has {table.width} column, expected an edge a line: set delimiter "
                "if it is another one"
            )
        ends = [table.index_of(column) for column in (self.source_column, self.target_column)]
        weights = [] if self.weight_column is None else [table.index_of(self.weight_column)]
        table.hints = dict.fromkeys(ends, self.names_hint)
        yield from map(tuple, ids.columns(table, ends, weights))


@dataclass(frozen=True)
class EdgeList(Edges, Beside):
    """Features, labels and split are in files beside the edges."""

    name: ClassVar[str] = "edgelist"
    summary: ClassVar[str] = "edges in .csv, .tsv, .txt (also .gz) or .parquet"
    names_hint: ClassVar[str] = "set ids=text if nodes have names"

    ids: str = option(
        "numbers", one_of("numbers", "compact", "text"),
        "numbers as they are, numbers renumbered without gaps, or names",
    )  # fmt: skip
    nodes: int | None = option(None, optional(integer()), "how many nodes; none: as the files say")

    def read(self, source: Path, draft: Draft) -> Graph:
        table = self.table(source, "an edge list")
        ids = Ids(self.ids)
        beside = [(self.rows_of(one, ids), str(one.path)) for one in self.tables().values()]
        last = max(((int(rows.max()), path) for rows, path in beside if rows is not None),
                   default=(-1, ""))  # fmt: skip
        n = (self.nodes or self.rows()) if ids.names is None else None
        edges = checked_edges(self.edges_of(table, ids), n, str(source))
        with about(source):
            if n is None:
                edges = _closed(edges, last, str(source), numbers=ids.names is None)
            graph = draft.edges(edges, n, directed=self.directed)
        if self.nodes not in (None, len(graph)):
            raise SgcnError(f"{source} names {len(graph)} nodes, expected nodes = {self.nodes}")
        if ids.names is not None:
            draft.call(IDS, ids.called(str(source)))
        self.write_rows(draft, len(graph), ids)
        return graph


def _closed(
    edges: Iterator[tuple[Any, ...]], last: tuple[int, str], where: str, *, numbers: bool
) -> Iterator[tuple[Any, ...]]:
    """Edges as they pass; behind them a loop at the last node, of an edge or of a table.

    A graph drops loops, so that this one only says how many nodes there are. Where nodes have
    names, those of the tables are nodes too; a number beyond those of the edges is likely wrong.
    """
    most = count = 0
    weights: list[Any] = []
    for src, dst, *weights in edges:
        most = max(most, int(src.max(initial=0)), int(dst.max(initial=0)))
        count += len(src)
        yield src, dst, *weights
    if numbers and last[0] > most:
        raise SgcnError(
            f"{last[1]} names node {last[0]}, expected ids from 0 to {most} as in {where}: set "
            f"nodes={last[0] + 1} if nodes without an edge are right"
        )
    most = max(most, last[0])
    if most > 200 * count + 1_000_000:  # memory is not for gaps
        raise SgcnError(
            f"{where} has {count} edges and names node {most}, expected ids without such gaps: set "
            "ids=compact to renumber them, or nodes if that is right"
        )
    end = np.array([most], np.int32)
    yield end, end, *(np.zeros(1) for _ in weights)
