"""Whether a graph is what it says: every byte is read, one check after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sgcn.chunks import chunks
from sgcn.data.source import open_as_is
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse
from sgcn.kernels import csr
from sgcn.kernels import spmm as kernels
from sgcn.labels import NUMBERS, kind_of


def verify(name: str) -> Iterator[str]:
    """Open the graph called ``name`` and name each check that it passes; the first it fails ends
    this with `SgcnError`.

    A saved graph is checked as it stands in its files. What is read from an ``.npz`` was put in
    order while it was read, and a generated one was never on disk: their edges pass by nature.
    """
    graph = open_as_is(name, verify=True)
    yield "checksums" if graph.path is not None else "readable"
    yield from verify_graph(graph)


def verify_graph(graph: Graph) -> Iterator[str]:
    """The checks of `verify` on a graph in memory."""
    for words, check in CHECKS.items():
        for wrong in check(graph):
            raise SgcnError(f"{wrong}: make the graph again")
        yield words


def _first(bad: Any) -> Iterator[int]:
    """Where the first true value is, if there is one."""
    if bad.any():
        yield int(np.argmax(bad))


# -- checks: each yields what is wrong, and only the first of that is asked for -------------------


def _row_pointers(graph: Graph) -> Iterator[str]:
    falls = np.diff(graph.indptr) < 0
    if graph.indptr[0] != 0 or graph.indptr[-1] != len(graph.indices) or falls.any():
        yield (
            f"the row pointers fall after node {np.argmax(falls)}, expected them to rise from 0 to "
            f"the {len(graph.indices)} stored edges"
        )


def _ids(graph: Graph) -> Iterator[str]:
    low, high = int(graph.indices.min(initial=0)), int(graph.indices.max(initial=0))
    if low < 0 or high >= len(graph):
        node = low if low < 0 else high
        yield f"the edges name node {node}, expected ids from 0 to {len(graph) - 1}"


def _sorted(graph: Graph) -> Iterator[str]:
    if not csr.rows_are_sorted(graph.indptr, graph.indices):
        yield "a row of edges is not sorted or has one twice, expected rising ids"


def _loops(graph: Graph) -> Iterator[str]:
    if graph.self_loops and (loops := csr.count_self_loops(graph.indptr, graph.indices)):
        yield f"{loops} self-loops are stored, expected none where P adds its own"


def _weights(graph: Graph) -> Iterator[str]:
    if graph.values is not None:
        for k in _first(~(graph.values >= 0) | np.isinf(graph.values)):
            yield f"stored edge {k} has weight {graph.values[k]}, expected finite numbers >= 0"


def _symmetric(graph: Graph) -> Iterator[str]:
    if graph.directed:
        return
    if not csr.is_symmetric(graph.indptr, graph.indices):
        yield "an edge is stored in one direction alone, expected both in an undirected graph"
    if graph.values is not None:
        turned = kernels.transpose(graph.indptr, graph.indices, graph.values, len(graph))
        if not np.array_equal(turned[2], graph.values):
            yield "an undirected edge has two different weights, expected one"


def _scaling(graph: Graph) -> Iterator[str]:
    right = Graph(graph.indptr, graph.indices, graph.values, **graph.options)
    for name in ("row", "col"):
        found, wanted = getattr(graph, name), getattr(right, name)
        for i in _first(~np.isclose(found, wanted, rtol=1e-5, atol=0)):
            yield f"{name} scales node {i} by {found[i]:g}, expected {wanted[i]:g} by its degree"


def _features(graph: Graph) -> Iterator[str]:
    x = graph.x
    if x is None:
        return
    words = "node {} has a feature that is not finite, expected finite numbers"
    if is_sparse(x):
        try:
            x.check_format(full_check=True)
        except ValueError as error:
            yield f"the features are no CSR matrix, expected one ({error})"
        for k in _first(~np.isfinite(x.data)):
            yield words.format(np.searchsorted(x.indptr, k, "right") - 1)
    elif x.dtype.kind not in "fiub":
        yield f"the features are {x.dtype}, expected numbers"
    else:
        for part in chunks(len(graph), x[0].size):
            for i in _first(~np.isfinite(x[part]).reshape(part.stop - part.start, -1).all(1)):
                yield words.format(part.start + i)


def _labels(graph: Graph) -> Iterator[str]:
    if graph.y is None:
        return
    y = np.asarray(graph.y)
    if kind_of(y) == NUMBERS:
        for i in _first(np.isinf(y).reshape(len(y), -1).any(1)):
            yield f"node {i} has an infinite label, expected numbers, or NaN for none"
    elif y.ndim == 2:
        for part in chunks(*y.shape):
            for i in _first(~(np.isin(y[part], (0, 1)) | (y[part] != y[part])).all(1)):
                yield (
                    f"node {part.start + i} has a label other than 0 and 1, expected only them "
                    "where nodes have several labels"
                )
    elif y.dtype.kind not in "iu":
        yield f"the labels are {y.dtype}, expected whole class numbers"
    else:
        for i in _first(y < -1):
            yield f"node {i} has class {y[i]}, expected classes from 0 on, or -1 for no label"


def _split(graph: Graph) -> Iterator[str]:
    if graph.split is not None:
        split = np.asarray(graph.split)
        for i in _first((split < -1) | (split > 2)):
            yield (
                f"node {i} has split {split[i]}, expected 0 (train), 1 (validation), 2 (test) or -1"
            )


#: In this order: a later check may rely on the earlier ones.
CHECKS: dict[str, Callable[[Graph], Iterator[str]]] = {
    "row pointers rise": _row_pointers,
    "ids in range": _ids,
    "rows sorted, no edge twice": _sorted,
    "no self-loop counted twice": _loops,
    "edge weights": _weights,
    "undirected edges both ways": _symmetric,
    "scaling agrees with degrees": _scaling,
    "features finite": _features,
    "labels in range": _labels,
    "split in range": _split,
}
