"""`Draft`: a graph directory in the making, for graphs that need not fit in memory.

Arrays are files from their first byte on and are checked and summed while they pass. The directory
has a temporary name until it is whole; whatever goes wrong before, nothing is left behind.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.layout import FORMAT, HEADER, VERSION, is_graph
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels import csr

#: Entries that pass at a time: large enough for bulk speed, small beside any array worth streaming.
CHUNK = 1 << 18

#: Seconds after which work is long enough for a bar.
DELAY = 0.5


def chunks(rows: int, width: int = 1) -> Iterator[slice]:
    """Slices over ``rows`` rows, about `CHUNK` entries each."""
    step = max(1, CHUNK // max(width, 1))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def entries(indptr: Any, indices: Any) -> Iterator[tuple[Any, Any]]:
    """CSR arrays as (column, row) in parts: an edge goes from the node that is read."""
    for part in chunks(len(indices)):
        places = np.arange(part.start, part.stop)
        yield indices[part], np.searchsorted(indptr, places, "right") - 1


@contextmanager
def progress(what: str, unit: str, total: int | None = None) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal, silence elsewhere; call what it gives with each step."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=what, unit=unit, unit_scale=True, leave=False, delay=DELAY) as bar:
        yield bar.update


class Draft:
    """``with Draft(path) as draft:`` write the arrays, then `finish`; the directory then appears.

    ``x``, ``y`` and ``split`` are rows in the order of nodes; edges come from `edges` or `csr`.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.path = path
        self.arrays: dict[str, dict[str, Any]] = {}
        self.header: dict[str, Any] = {}
        try:
            taken = path.exists() and not (overwrite and is_graph(path))
            if not taken:
                self.parents = [parent for parent in path.parents if not parent.exists()]
                path.parent.mkdir(parents=True, exist_ok=True)
                self.folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        except OSError as error:
            raise SgcnError(
                f"{path} cannot be made ({error.strerror}), expected a place that can be written to"
            ) from None
        if taken:
            raise SgcnError(
                f"{path} exists already, expected a new directory: choose another name or "
                "overwrite it"
            )

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if error is not None:
            with suppress(OSError):  # someone else may have put something there meanwhile
                for parent in self.parents:
                    parent.rmdir()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise SgcnError(
                f"{self.path} cannot be written ({error.strerror}), expected room for the whole "
                "graph: free some or choose another place"
            ) from None

    # -- arrays ---------------------------------------------------------------------------------

    def write(self, name: str, array: Any) -> None:
        """A whole array."""
        array = np.ascontiguousarray(array)
        self.stream(name, array.shape, array.dtype, (array,))

    def stream(self, name: str, shape: tuple[int, ...], dtype: Any, parts: Iterable[Any]) -> None:
        """An array whose rows arrive in parts; together they must have ``shape``."""
        dtype = np.dtype(dtype)
        crc, rows = 0, 0
        size = math.prod(shape) * dtype.itemsize
        with (
            (self.folder / f"{name}.npy").open("wb") as file,
            progress(f"writing {name}", "B", size) as step,
        ):
            np.lib.format.write_array_header_1_0(
                file,
                {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False,
                 "shape": shape},
            )  # fmt: skip
            for part in parts:
                part = np.ascontiguousarray(part, dtype)
                if part.size:
                    data = part.reshape(-1).view(np.uint8).data
                    crc = zlib.crc32(data, crc)
                    file.write(data)
                    step(len(data))
                rows += len(part)
        if rows != shape[0]:
            raise SgcnError(f"{name} has {rows} rows, expected {shape[0]}, one for each node")
        self.arrays[name] = {"dtype": str(dtype), "shape": list(shape), "crc32": crc}

    # -- edges ----------------------------------------------------------------------------------

    def edges(
        self,
        parts: Iterable[tuple[Any, Any]],
        nodes: int | None = None,
        *,
        directed: bool = False,
    ) -> Graph:
        """The topology of an edge list whose (src, dst) arrive in parts, whole numbers >= 0.

        The parts wait on disk until N is known; memory then holds the sorted rows and no more.
        Without ``nodes``, N is the largest id + 1.
        """
        spool = self.folder / "edges"
        most, count, lengths = -1, 0, list[int]()
        with spool.open("wb") as file, progress("reading edges", " edges") as step:
            for src, dst in parts:
                pair = np.stack((_ids(dst, nodes, count), _ids(src, nodes, count)))
                if pair.size:
                    most = max(most, int(pair.max()))
                    lengths.append(pair.shape[1])
                    pair.tofile(file)
                    count += pair.shape[1]
                    step(pair.shape[1])
        n = most + 1 if nodes is None else nodes
        if n < 1:
            raise SgcnError("the graph is empty, expected at least one node")

        _give_back()
        done = False
        if directed or _balanced(spool, lengths, n):
            indptr, indices = _placed(spool, lengths, n, both=False)
            done = directed or csr.is_symmetric(indptr, indices)
        if not done:
            indptr = indices = None
            indptr, indices = _placed(spool, lengths, n, both=True)
        spool.unlink()
        return Graph(indptr, indices, directed=directed)

    def csr(self, indptr: Any, indices: Any, *, directed: bool = False) -> Graph:
        """The topology of CSR arrays, which are put in order where they are.

        Only those of an undirected graph with edges in one direction are written a second time.
        """
        if not csr.rows_are_sorted(indptr, indices):
            indptr = csr.compact_rows(indptr, indices, csr.sort_many_rows(indptr, indices))
            indices = indices[: indptr[-1]]
        if csr.count_self_loops(indptr, indices):
            indptr = csr.drop_self_loops(indptr, indices, indices)
            indices = indices[: indptr[-1]]
        if directed or csr.is_symmetric(indptr, indices):
            return Graph(indptr, indices, directed=directed)
        return self.edges(entries(indptr, indices), len(indptr) - 1)

    # -- the end --------------------------------------------------------------------------------

    def finish(self, graph: Graph) -> Graph:
        """Add the topology and P of ``graph``, give the directory its name, and open it."""
        from sgcn.data.store import open_graph

        n = len(graph)
        for name in ("x", "y", "split"):
            shape = self.arrays.get(name, {"shape": [n]})["shape"]
            if shape[0] != n:
                raise SgcnError(f"{name} has {shape[0]} rows, expected {n}, one for each node")
        for name in ("indptr", "indices", "values", "row", "col"):
            if getattr(graph, name) is not None:
                self.write(name, getattr(graph, name))
        header = {
            "format": FORMAT,
            "version": VERSION,
            "nodes": n,
            "directed": graph.directed,
            "normalization": graph.normalization,
            "self_loops": graph.self_loops,
            "arrays": self.arrays,
            **self.header,
        }
        (self.folder / HEADER).write_text(json.dumps(header, indent=1) + "\n")
        self.folder.chmod(0o755)
        if self.path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
            os.replace(self.path, old / "old")
            os.replace(self.folder, self.path)
            shutil.rmtree(old)
        else:
            os.replace(self.folder, self.path)
        return open_graph(self.path)


def _give_back() -> None:
    """Let the system have the memory that was freed.

    The C library keeps it in pieces, some 20 MB after long lists out of JSON, and takes new memory
    for large arrays. Only glibc has this call; without it the peak is higher, nothing else.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _balanced(spool: Path, lengths: list[int], n: int) -> bool:
    """Whether as many edges go out of each node as go in.

    Both directions are then probably listed: as they are they need half the room.
    """
    into, out = np.zeros((2, n), np.int64)
    for rows, cols in _pairs(spool, lengths):
        csr.count_edges(into, rows, cols, False, True)
        csr.count_edges(out, cols, rows, False, True)
    return np.array_equal(into, out)


def _placed(spool: Path, lengths: list[int], n: int, *, both: bool) -> tuple[Any, Any]:
    """Sorted rows of the edges in ``spool``, without loops and duplicates."""
    cursor, indptr = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    for rows, cols in _pairs(spool, lengths):
        csr.count_edges(cursor, rows, cols, both, True)
    np.cumsum(cursor, out=indptr[1:])
    indices = np.empty(indptr[-1], np.int32)
    cursor[:] = indptr[:-1]
    for rows, cols in _pairs(spool, lengths):
        csr.place_edges(indices, cursor, rows, cols, both, True)
    del cursor  # rows may be short: a number a node then counts beside them
    indptr = csr.compact_rows(indptr, indices, csr.sort_many_rows(indptr, indices))
    return indptr, indices[: indptr[-1]]


def _pairs(spool: Path, lengths: list[int]) -> Iterator[npt.NDArray[np.int32]]:
    with spool.open("rb") as file:
        for length in lengths:
            yield np.fromfile(file, np.int32, 2 * length).reshape(2, length)


def _ids(ids: Any, nodes: int | None, before: int) -> npt.NDArray[np.int32]:
    """Checked ids; ``before`` edges came earlier, so that a bad one can be named."""
    ids = np.asarray(ids)
    if ids.dtype.kind not in "iu" and ids.size:
        raise SgcnError(f"the edges hold {ids.dtype} values, expected whole node ids")
    limit = np.iinfo(np.int32).max if nodes is None else nodes
    bad = (ids < 0) | (ids >= limit)
    if bad.any():
        first = int(np.argmax(bad))
        raise SgcnError(
            f"edge {before + first} names node {ids[first]}, expected ids from 0 to {limit - 1}"
        )
    single: npt.NDArray[np.int32] = ids.astype(np.int32, copy=False)
    return single
