"""`Draft`: a graph directory in the making, for graphs that need not fit in memory.

Rows of nodes are files from their first byte on; edges wait on disk and are sorted there.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks, progress
from sgcn.data.checks import check_rows
from sgcn.errors import SgcnError
from sgcn.graph import Graph, checked_weights
from sgcn.kernels import csr
from sgcn.kernels.csr import sorted_rows
from sgcn.store import Writer


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
        empty = partial(_scratch, self.folder)
        rows = partial(sorted_rows, spool.read, n, weighted=spool.weighted, empty=empty)
        made = None
        if not directed and not spool.weighted and _balanced(spool, n):
            made = rows(both=False)
        if made is None or not csr.is_symmetric(*made):
            made = None
            made = rows(both=not directed)
        spool.unlink()
        return Graph(*made, directed=directed)

    def finish(self, graph: Graph) -> None:
        """Add the topology and P of ``graph``, if the rows are of its nodes."""
        n = len(graph)
        for name in ("x", "y", "split"):
            if name in self.arrays:
                check_rows(self.arrays[name]["shape"][0], n, name)
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


def _scratch(folder: Path, length: int, dtype: Any) -> npt.NDArray[Any]:
    """Zeros in a file without a name, whose memory the system can take back.

    They are written, not only reserved: a full disk is then an error and no signal.
    """
    size = int(length) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(dir=folder) as file:
        for part in chunks(max(size, 1)):
            file.write(bytes(part.stop - part.start))
        file.flush()
        return np.asarray(np.memmap(file, dtype, "r+", shape=(int(length),)))
