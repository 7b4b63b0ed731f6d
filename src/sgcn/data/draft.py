"""`Draft`: a graph directory in the making, for graphs that need not fit in memory.

Rows of nodes are files from their first byte on; edges wait on disk and are sorted there.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks, progress
from sgcn.errors import SgcnError
from sgcn.graph import Graph, checked_weights
from sgcn.kernels import csr
from sgcn.store import Writer

#: Edges as (row, column) or (row, column, weight), some at a time, as often as they are wanted.
Parts = Callable[[], Iterator[tuple[Any, ...]]]


def entries(indptr: Any, parts: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The entries of a CSR matrix, some (columns, values) at a time, as (columns, rows, values).

    An edge goes from the node that is read.
    """
    start = 0
    for columns, *values in parts:
        stop = start + len(columns)
        first = int(np.searchsorted(indptr, start, "right")) - 1
        last = int(np.searchsorted(indptr, stop, "left"))
        lengths = np.diff(np.clip(indptr[first : last + 1], start, stop))
        yield columns, np.repeat(np.arange(first, last, dtype=np.int32), lengths), *values
        start = stop


class Draft(Writer):
    """``with Draft.new(path) as draft:`` write the rows of nodes, make the edges, then `finish`.

    ``x``, ``y`` and ``split`` are rows in the order of nodes; edges come from `edges`.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.notes: list[str] = []  # what whoever asked for the graph should know

    def edges(
        self, parts: Iterable[tuple[Any, ...]], nodes: int | None = None, *, directed: bool = False
    ) -> Graph:
        """The topology of an edge list: (src, dst) or (src, dst, weights) in parts, ids checked.

        The parts wait on disk until N is known; rows are then sorted in a mapped file. Without
        ``nodes``, N is the largest id + 1. Weights of repeated edges add up and the two directions
        of an edge take the larger one, as in `Graph.from_edges`.
        """
        spool = _Spool(self.folder, parts)
        n = spool.most + 1 if nodes is None else nodes
        if n < 1:
            raise SgcnError("the graph is empty, expected at least one node")

        _give_back()
        if spool.weighted:
            made = _summed(self.folder, spool.read, n)
            made = made if directed else _both_ways(self.folder, made, n)
        else:
            made = self._bare(spool, n, directed)
        spool.unlink()
        return Graph(*made, directed=directed)

    def _bare(self, spool: _Spool, n: int, directed: bool) -> tuple[Any, ...]:
        """Sorted rows of edges without weights."""
        if directed or _balanced(spool, n):
            made = _sorted_rows(self.folder, spool.read, n, both=False)
            if directed or csr.is_symmetric(*made):
                return made
            del made
        return _sorted_rows(self.folder, spool.read, n, both=True)

    def finish(self, graph: Graph) -> None:
        """Add the topology and P of ``graph``, if the rows are of its nodes."""
        n = len(graph)
        for name in ("x", "y", "split"):
            rows = self.arrays[name]["shape"][0] if name in self.arrays else n
            if rows != n:
                raise SgcnError(f"{name} has {rows} rows, expected {n}, one for each node")
        graph.write_topology(self)


def _give_back() -> None:
    """Let the system have the memory that was freed.

    The C library keeps it in pieces, some 20 MB after long lists out of JSON, and takes new memory
    for large arrays. Only glibc has this call; without it the peak is higher, nothing else.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class _Spool:
    """Edges that wait in files until N is known."""

    def __init__(self, folder: Path, parts: Iterable[tuple[Any, ...]]) -> None:
        self.files = [folder / "edges", folder / "weights"]
        self.most, self.count, self.lengths, self.weighted = -1, 0, list[int](), False
        with (
            self.files[0].open("wb") as ends,
            self.files[1].open("wb") as beside,
            progress("reading edges", " edges") as step,
        ):
            for src, dst, *weights in parts:
                pair = np.stack((dst, src), dtype=np.int32, casting="same_kind")
                for values in weights:
                    checked_weights(values, pair.shape[1], self.count).tofile(beside)
                    self.weighted = True
                if pair.size:
                    self.most = max(self.most, int(pair.max()))
                    self.lengths.append(pair.shape[1])
                    pair.tofile(ends)
                    self.count += pair.shape[1]
                    step(pair.shape[1])

    def read(self) -> Iterator[tuple[Any, ...]]:
        with (
            self.files[0].open("rb") as ends,
            self.files[1].open("rb") as beside,
            progress("sorting edges", " edges", self.count) as step,
        ):
            for length in self.lengths:
                rows, cols = np.fromfile(ends, np.int32, 2 * length).reshape(2, length)
                yield rows, cols, np.fromfile(beside, np.float32, length)
                step(length)

    def unlink(self) -> None:
        for file in self.files:
            file.unlink()


def _balanced(spool: _Spool, n: int) -> bool:
    """Whether as many edges go out of each node as go in.

    Both directions are then probably listed: as they are they need half the memory.
    """
    into, out = np.zeros((2, n), np.int64)
    for rows, cols, _ in spool.read():
        csr.count_edges(into, rows, cols, False, True)
        csr.count_edges(out, cols, rows, False, True)
    return np.array_equal(into, out)


def _sorted_rows(folder: Path, edges: Parts, n: int, *, both: bool) -> tuple[Any, ...]:
    """Sorted rows of ``edges``, without loops and duplicates."""
    indptr = _row_starts(edges, n, both)
    indices, cursor = _scratch(folder, np.int32, indptr[-1]), indptr[:-1].copy()
    for rows, cols, _ in edges():
        csr.place_edges(indices, cursor, rows, cols, both, True)
    del cursor  # rows may be short: a number a node then counts beside them
    indptr = csr.compact_rows(indptr, indices, csr.sort_many_rows(indptr, indices))
    return indptr, indices[: indptr[-1]]


def _summed(folder: Path, edges: Parts, n: int) -> tuple[Any, ...]:
    """The same with weights, those of a duplicate added up."""
    indptr, indices, values = _rows_as_they_come(folder, edges, n)
    kept = csr.sort_weighted_rows(indptr, indices, values)
    csr.compact_rows(indptr, values, kept)
    indptr = csr.compact_rows(indptr, indices, kept)
    return indptr, indices[: indptr[-1]], values[: indptr[-1]]


def _both_ways(folder: Path, rows: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Sorted rows and those of the other direction together."""
    indptr, *arrays = rows

    def parts() -> Iterator[tuple[Any, ...]]:
        return (tuple(array[part] for array in arrays) for part in chunks(len(arrays[0])))

    # Column and row change places, in order again.
    back = _rows_as_they_come(folder, lambda: entries(indptr, parts()), n)
    most = 2 * rows[0][-1]
    indices, values = (_scratch(folder, kind, most) for kind in (np.int32, np.float32))
    indptr = csr.merge_rows(rows, back, indices, values)
    return indptr, indices[: indptr[-1]], values[: indptr[-1]]


def _rows_as_they_come(folder: Path, edges: Parts, n: int) -> tuple[Any, ...]:
    """Rows of weighted edges in the order in which they come."""
    indptr = _row_starts(edges, n, both=False)
    indices, values = (_scratch(folder, kind, indptr[-1]) for kind in (np.int32, np.float32))
    cursor = indptr[:-1].copy()
    for rows, cols, weights in edges():
        csr.place_weighted_edges(indices, values, cursor, rows, cols, weights)
    return indptr, indices, values


def _row_starts(edges: Parts, n: int, both: bool) -> npt.NDArray[np.int64]:
    """Where each row begins, before duplicates are dropped."""
    indptr = np.zeros(n + 1, np.int64)
    for rows, cols, _ in edges():
        csr.count_edges(indptr[1:], rows, cols, both, True)
    return np.cumsum(indptr, out=indptr)


def _scratch(folder: Path, dtype: Any, length: int) -> npt.NDArray[Any]:
    """Zeros in a file without a name, whose memory the system can take back.

    They are written, not only reserved: a full disk is then an error and no signal.
    """
    size = int(length) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(dir=folder) as file:
        for part in chunks(max(size, 1)):
            file.write(bytes(part.stop - part.start))
        file.flush()
        return np.asarray(np.memmap(file, dtype, "r+", shape=(int(length),)))
