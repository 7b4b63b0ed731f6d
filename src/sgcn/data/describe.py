"""What a graph is like: counts, shapes, homophily, and what may surprise. One pass over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.graph import Graph, is_sparse
from sgcn.kernels import csr
from sgcn.kernels import describe as kernels

PARTS = ("train", "val", "test")
_CHUNK = 1 << 21  # feature values looked at in one go
_HUB = 50  # times the mean degree: from there a node is worth a note


@dataclass(frozen=True)
class Degrees:
    """Stored entries of a row. ``histogram`` has (from, to, nodes): 0, 1, 2-3, 4-7 and so on."""

    least: int
    median: float
    mean: float
    most: int
    histogram: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class FeatureFacts:
    """``density`` is the share of values that are not 0; ``constant`` counts columns with one
    value."""

    width: int
    sparse: bool
    dtype: str
    density: float
    least: float
    most: float
    constant: int
    zero_rows: int


@dataclass(frozen=True)
class LabelFacts:
    """``counts`` has the nodes of every class; ``labelled`` those that have any."""

    classes: int
    multi_label: bool
    labelled: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Description:
    """What `describe` finds. Memory is in bytes; None stands for what the graph does not have.

    ``homophily`` is the share of edges whose ends have one class, of those with a class at both;
    with several labels a node it is the mean over edges of |A & B| / |A | B| for the label sets A
    and B of the ends, of those with any label.
    """

    nodes: int
    edges: int
    directed: bool
    weighted: bool
    degrees: Degrees
    components: int
    largest_component: int
    features: FeatureFacts | None
    labels: LabelFacts | None
    split: dict[str, int] | None
    homophily: float | None
    memory: dict[str, int]
    notes: tuple[str, ...]


def describe(graph: Graph) -> Description:
    """Look over all of ``graph``; memory beside it is a few numbers for each node."""
    loops = int(csr.count_self_loops(graph.indptr, graph.indices))
    roots = kernels.components(graph.indptr, graph.indices)
    sizes = np.bincount(roots)
    x = _two_dimensional(graph.x)
    features = None if x is None else _features(x)
    return Description(
        nodes=len(graph),
        edges=graph.edges if graph.directed else (graph.edges + loops) // 2,
        directed=graph.directed,
        weighted=graph.values is not None,
        degrees=_degrees(graph),
        components=int(np.count_nonzero(sizes)),
        largest_component=int(sizes.max()),
        features=features,
        labels=_labels(graph),
        split=_split(graph),
        homophily=_homophily(graph),
        memory=_memory(graph),
        notes=tuple(_notes(graph, x, features, sizes)),
    )


def summary(graph: Graph) -> str:
    """In a line: how large the graph is, and whether it has features, labels and a split."""
    x, y, parts = graph.x, graph.y, _split(graph)
    classes = "no labels"
    if y is not None:
        sets = np.ndim(y) == 2
        classes = f"sets of {y.shape[1]:,} labels" if sets else f"{int(y.max()) + 1:,} classes"
    return ", ".join(
        (
            f"{len(graph):,} nodes",
            f"{graph.edges:,} stored edges{' (directed)' * graph.directed}",
            "no features" if x is None else f"{_two_dimensional(x).shape[1]:,} features",
            classes,
            "no split" if parts is None
            else "split " + " / ".join(f"{parts[part]:,} {part}" for part in PARTS),
        )
    )  # fmt: skip


def without_edges(graph: Graph) -> int:
    """How many nodes are at no end of an edge."""
    alone = graph.degrees == 0
    alone[graph.indices] = False
    return int(np.count_nonzero(alone))


def _two_dimensional(x: Any) -> Any:
    return x[:, None] if x is not None and x.ndim == 1 else x


def _degrees(graph: Graph) -> Degrees:
    degrees = graph.degrees
    powers = np.zeros(len(degrees), np.int64)  # 0 | 1 | 2-3 | 4-7: the number of binary digits
    linked = degrees > 0
    powers[linked] = np.frexp(degrees[linked])[1]
    histogram = tuple(
        (1 << power >> 1, max((1 << power) - 1, 0), int(count))
        for power, count in enumerate(np.bincount(powers))
        if power >= powers.min()
    )
    return Degrees(
        int(degrees.min()),
        float(np.median(degrees)),
        float(degrees.mean()),
        int(degrees.max()),
        histogram,
    )


def _row_chunks(x: Any) -> Iterator[Any]:
    step = max(1, _CHUNK // max(x.shape[1], 1))
    return (x[start : start + step] for start in range(0, x.shape[0], step))


def _features(x: Any) -> FeatureFacts:
    n, width = x.shape
    if is_sparse(x):
        filled = x.data != 0
        columns = np.bincount(x.indices[filled], minlength=width)
        some = n * width > len(x.data)  # then there are zeros that are not stored
        values = x.data if len(x.data) else np.zeros(1)
        low, high = float(values.min()), float(values.max())
        low, high = (min(low, 0.0), max(high, 0.0)) if some else (low, high)
        rows = np.add.reduceat(np.append(filled, False), x.indptr[:-1], dtype=np.int64)
        empty = (rows == 0) | (np.diff(x.indptr) == 0)
        nonzero, constant, zero_rows = filled.sum(), (columns == 0).sum(), empty.sum()
    else:
        least, most = np.asarray(x[0]), np.asarray(x[0])
        nonzero, zero_rows = 0, 0
        for rows in _row_chunks(x):
            least, most = np.minimum(least, rows.min(0)), np.maximum(most, rows.max(0))
            filled = np.count_nonzero(rows, axis=1)
            nonzero, zero_rows = nonzero + filled.sum(), zero_rows + (filled == 0).sum()
        constant = np.count_nonzero(least == most)
        low, high = (float(least.min()), float(most.max())) if width else (0.0, 0.0)
    return FeatureFacts(
        width=width,
        sparse=is_sparse(x),
        dtype=str(x.dtype),
        density=float(nonzero / max(n * width, 1)),
        least=low,
        most=high,
        constant=int(constant),
        zero_rows=int(zero_rows),
    )


def _labels(graph: Graph) -> LabelFacts | None:
    if graph.y is None:
        return None
    y = np.asarray(graph.y)
    counts = class_counts(y, np.ones(len(y), np.bool_))
    labelled = np.count_nonzero(y >= 0 if y.ndim == 1 else y.any(1))
    return LabelFacts(len(counts), y.ndim == 2, int(labelled), tuple(counts.tolist()))


def class_counts(y: Any, chosen: Any) -> npt.NDArray[np.int64]:
    """How many of the ``chosen`` nodes have each class or label."""
    if y.ndim == 1:
        classes = max(int(y.max()) + 1, 0)
        return np.bincount(y[chosen & (y >= 0)].astype(np.int64), minlength=classes)
    counts = np.zeros(y.shape[1], np.int64)
    step = max(1, _CHUNK // max(y.shape[1], 1))
    for start in range(0, len(y), step):
        rows = slice(start, start + step)
        counts += np.count_nonzero(y[rows][chosen[rows]], axis=0)
    return counts


def _split(graph: Graph) -> dict[str, int] | None:
    if graph.split is None:
        return None
    return {
        name: int(np.count_nonzero(np.asarray(graph.split) == part))
        for name, part in (*zip(PARTS, range(3), strict=True), ("none", -1))
    }


def _homophily(graph: Graph) -> float | None:
    if graph.y is None:
        return None
    y = np.asarray(graph.y)
    if y.ndim == 1:
        alike, edges = kernels.same_classes(graph.indptr, graph.indices, y.astype(np.int64))
    else:
        y = y.astype(np.uint8, copy=False)
        alike, edges = kernels.shared_labels(graph.indptr, graph.indices, y)
    return float(alike.sum() / edges.sum()) if edges.any() else None


def _memory(graph: Graph) -> dict[str, int]:
    x = graph.x
    parts = (x.data, x.indices, x.indptr) if is_sparse(x) else (x,)
    features = sum(part.nbytes for part in parts if part is not None)
    labels = sum(part.nbytes for part in (graph.y, graph.split) if part is not None)
    return {"topology": graph.nbytes, "features": features, "labels and split": labels}


# -- what may surprise ----------------------------------------------------------------------------


def _notes(graph: Graph, x: Any, features: FeatureFacts | None, sizes: Any) -> Iterator[str]:
    yield from _topology_notes(graph, sizes)
    if features is not None:
        yield from _feature_notes(features)
    if graph.y is not None:
        yield from _label_notes(graph)
    if graph.split is not None:
        yield from _split_notes(graph, x)


def _topology_notes(graph: Graph, sizes: Any) -> Iterator[str]:
    degrees = graph.degrees
    n, isolated = len(degrees), int(np.count_nonzero(degrees == 0))
    if isolated and not graph.directed:
        yield f"{_nodes(isolated)} without an edge ({isolated / n:.1%})"
    elif isolated:
        yield f"{_nodes(isolated)} that read from nobody ({isolated / n:.1%})"
    several = int(np.count_nonzero(sizes > 1))
    if several > 1:
        yield (
            f"{several:,} components of more than one node; the largest has {sizes.max() / n:.1%} "
            "of all nodes"
        )
    most = int(degrees.max())
    if degrees.mean() > 0 and most > _HUB * degrees.mean():
        hubs = int(np.count_nonzero(degrees > _HUB * degrees.mean()))
        yield (
            f"{_nodes(hubs)} with more than {_HUB} times the mean degree; the largest hub is "
            f"joined to {most / n:.1%} of all nodes"
        )


def _feature_notes(facts: FeatureFacts) -> Iterator[str]:
    if not np.isfinite([facts.least, facts.most]).all():
        yield "features that are not finite numbers: training cannot use them"
    if facts.constant:
        yield f"{facts.constant:,} of {facts.width:,} features are the same for all nodes"
    if facts.zero_rows:
        yield f"{_nodes(facts.zero_rows)} with no feature but zeros"


def _label_notes(graph: Graph) -> Iterator[str]:
    y = np.asarray(graph.y)
    every = class_counts(y, np.ones(len(y), np.bool_))
    if unused := int(np.count_nonzero(every == 0)):
        yield f"{unused:,} of {len(every):,} classes have no node"
    if y.ndim == 2:
        bare = int(np.count_nonzero(~(y != 0).any(1)))
        if bare:
            yield f"{_nodes(bare)} with none of the labels"
    if graph.split is None:
        return
    split = np.asarray(graph.split)
    if y.ndim == 1:
        for part, name in enumerate(PARTS):
            if bare := int(np.count_nonzero((split == part) & (y < 0))):
                yield f"{_nodes(bare)} without a label in {name}: they are left out"
    unseen = (class_counts(y, split == 0) == 0) & (class_counts(y, split > 0) > 0)
    if unseen.any():
        some = ", ".join(map(str, np.flatnonzero(unseen)[:5]))
        more = ", ..." if unseen.sum() > 5 else ""
        yield f"{unseen.sum():,} classes of val or test never seen in training ({some}{more})"


def _split_notes(graph: Graph, x: Any) -> Iterator[str]:
    split = np.asarray(graph.split)
    for part, name in enumerate(PARTS):
        if not (split == part).any():
            yield f"no nodes in {name}"
    if x is None:
        return
    hashes = _hashes(x)
    train = np.unique(hashes[(split == 0) & (hashes != 0)])
    for part, name in ((1, "val"), (2, "test")):
        again = int(np.isin(hashes[split == part], train).sum())
        if again:
            yield f"{_nodes(again)} of {name} with the very features of a training node"


def _nodes(count: int) -> str:
    return f"{count:,} node" if count == 1 else f"{count:,} nodes"


def _hashes(x: Any) -> npt.NDArray[np.uint64]:
    """Equal rows have equal hashes; 0 stands for a row of zeros."""
    size = x.dtype.itemsize
    words, sign = f"u{size}", np.uint64(1 << (8 * size - 1) if x.dtype.kind == "f" else 0)
    if is_sparse(x):
        hashes: npt.NDArray[np.uint64] = kernels.sparse_row_hashes(
            x.indptr, x.indices, x.data.view(words), sign
        )
        return hashes
    return np.concatenate(
        [kernels.row_hashes(np.ascontiguousarray(r).view(words), sign) for r in _row_chunks(x)]
    )
