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
        check(graph)
        yield words


def _row_pointers(graph: Graph) -> None:
    falls = np.diff(graph.indptr) < 0
    if graph.indptr[0] != 0 or graph.indptr[-1] != len(graph.indices) or falls.any():
        raise _broken(
            f"the row pointers fall after node {np.argmax(falls)}, expected them to rise from 0 to "
            f"the {len(graph.indices)} stored edges"
        )


def _ids(graph: Graph) -> None:
    ids = graph.indices
    if len(ids):
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= len(graph):
            raise _broken(
                f"the edges name node {low if low < 0 else high}, expected ids from 0 to "
                f"{len(graph) - 1}"
            )


def _sorted(graph: Graph) -> None:
    if not csr.rows_are_sorted(graph.indptr, graph.indices):
        raise _broken("a row of edges is not sorted or has one twice, expected rising ids")


def _loops(graph: Graph) -> None:
    if graph.self_loops and (loops := csr.count_self_loops(graph.indptr, graph.indices)):
        raise _broken(f"{loops} self-loops are stored, expected none where P adds its own")


def _weights(graph: Graph) -> None:
    if graph.values is None:
        return
    bad = ~(graph.values >= 0) | np.isinf(graph.values)
    if bad.any():
        first = int(np.argmax(bad))
        raise _broken(
            f"stored edge {first} has weight {graph.values[first]}, expected finite numbers >= 0"
        )


def _symmetric(graph: Graph) -> None:
    if graph.directed:
        return
    if not csr.is_symmetric(graph.indptr, graph.indices):
        raise _broken(
            "an edge is stored in one direction alone, expected both in an undirected graph"
        )
    if graph.values is not None:
        turned = kernels.transpose(graph.indptr, graph.indices, graph.values, len(graph))
        if not np.array_equal(turned[2], graph.values):
            raise _broken("an undirected edge has two different weights, expected one")


def _scaling(graph: Graph) -> None:
    right = Graph(
        graph.indptr, graph.indices, graph.values,
        normalization=graph.normalization, self_loops=graph.self_loops,
    )  # fmt: skip
    for name in ("row", "col"):
        off = ~np.isclose(getattr(graph, name), getattr(right, name), rtol=1e-5, atol=0)
        if off.any():
            i = int(np.argmax(off))
            raise _broken(
                f"{name} scales node {i} by {getattr(graph, name)[i]:g}, expected "
                f"{getattr(right, name)[i]:g} by its degree"
            )


def _features(graph: Graph) -> None:
    x = graph.x
    if x is None:
        return
    if is_sparse(x):
        try:
            x.check_format(full_check=True)
        except ValueError as error:
            raise _broken(f"the features are no CSR matrix, expected one ({error})") from None
        if not np.isfinite(x.data).all():
            row = np.searchsorted(x.indptr, np.argmin(np.isfinite(x.data)), "right") - 1
            raise _broken(_not_finite(int(row)))
        return
    if x.dtype.kind not in "fiub":
        raise _broken(f"the features are {x.dtype}, expected numbers")
    for rows in chunks(len(graph), x[0].size):
        good = np.isfinite(x[rows]).reshape(len(x[rows]), -1).all(1)
        if not good.all():
            raise _broken(_not_finite(rows.start + int(np.argmin(good))))


def _not_finite(node: int) -> str:
    return f"node {node} has a feature that is not finite, expected finite numbers"


def _labels(graph: Graph) -> None:
    if graph.y is None:
        return
    y = np.asarray(graph.y)
    if y.ndim == 2:
        for rows in chunks(len(y), y.shape[1]):
            good = np.isin(y[rows], (0, 1)).all(1)
            if not good.all():
                raise _broken(
                    f"node {rows.start + int(np.argmin(good))} has a label other than 0 and 1, "
                    "expected only them where nodes have several labels"
                )
    elif y.dtype.kind not in "iu":
        raise _broken(f"the labels are {y.dtype}, expected whole class numbers")
    elif (y < -1).any():
        i = int(np.argmax(y < -1))
        raise _broken(f"node {i} has class {y[i]}, expected classes from 0 on, or -1 for no label")


def _split(graph: Graph) -> None:
    if graph.split is None:
        return
    split: Any = np.asarray(graph.split)
    bad = (split < -1) | (split > 2)
    if bad.any():
        i = int(np.argmax(bad))
        raise _broken(
            f"node {i} has split {split[i]}, expected 0 (train), 1 (validation), 2 (test) or -1"
        )


def _broken(what: str) -> SgcnError:
    return SgcnError(f"{what}: make the graph again")


#: In this order: a later check may rely on the earlier ones.
CHECKS: dict[str, Callable[[Graph], None]] = {
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
