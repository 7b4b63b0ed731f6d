"""What a graph is like: counts, shapes, homophily, and what may surprise. One pass over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import chunks, rows_of
from sgcn.graph import Graph, is_sparse
from sgcn.kernels import csr
from sgcn.kernels import describe as kernels
from sgcn.labels import CLASSES, NUMBERS, SETS, kind_of, labelled

PARTS = ("train", "val", "test")
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
class NumberFacts:
    """Numbers to predict, ``width`` of them a node; ``labelled`` counts nodes that have them."""

    width: int
    labelled: int
    least: float
    most: float
    mean: float
    deviation: float


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
    numbers: NumberFacts | None
    split: dict[str, int] | None
    homophily: float | None
    memory: dict[str, int]
    notes: tuple[str, ...]


def describe(graph: Graph) -> Description:
    """Look over all of ``graph``; memory beside it is a few numbers for each node."""
    loops = int(csr.count_self_loops(graph.indptr, graph.indices))
    sizes = np.bincount(kernels.components(graph.indptr, graph.indices))
    x = _two_dimensional(graph.x)
    features = None if x is None else _features(x)
    kind = "" if graph.y is None else kind_of(np.asarray(graph.y))
    labels = _labels(np.asarray(graph.y)) if kind in (CLASSES, SETS) else None
    notes = _topology_notes(graph, sizes)
    if features is not None:
        notes += _feature_notes(features)
    if labels is not None:
        notes += _label_notes(graph, labels)
    if graph.split is not None and kind in (CLASSES, NUMBERS):
        notes += _missing_notes(np.asarray(graph.split), ~labelled(np.asarray(graph.y)))
    if graph.split is not None:
        notes += _split_notes(np.asarray(graph.split), x)
    arrays = (x.data, x.indices, x.indptr) if is_sparse(x) else (x,)
    memory = {"features": arrays, "labels and split": (graph.y, graph.split)}
    return Description(
        nodes=len(graph),
        edges=graph.edges if graph.directed else (graph.edges + loops) // 2,
        directed=graph.directed,
        weighted=graph.values is not None,
        degrees=_degrees(graph.degrees),
        components=int(np.count_nonzero(sizes)),
        largest_component=int(sizes.max()),
        features=features,
        labels=labels,
        numbers=_numbers(np.asarray(graph.y)) if kind == NUMBERS else None,
        split=_split(graph),
        homophily=None if labels is None else _homophily(graph, np.asarray(graph.y)),
        memory={"topology": graph.nbytes}
        | {name: sum(a.nbytes for a in kept if a is not None) for name, kept in memory.items()},
        notes=tuple(text for count, text in notes if count),
    )


def summary(graph: Graph) -> str:
    """In a line: how large the graph is, and whether it has features, labels and a split."""
    x, y, parts = graph.x, graph.y, _split(graph)
    classes = "no labels"
    if y is not None:
        kind, width = kind_of(np.asarray(y)), 1 if y.ndim == 1 else y.shape[1]
        classes = f"sets of {width:,} labels"
        if kind == NUMBERS:
            classes = f"{width:,} number{'s' * (width > 1)} a node"
        elif kind == CLASSES:
            classes = f"{int(y.max()) + 1:,} classes"
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


def _degrees(degrees: Any) -> Degrees:
    powers = np.frexp(degrees)[1]  # 0 | 1 | 2-3 | 4-7: the number of binary digits
    histogram = tuple(
        (1 << power >> 1, max((1 << power) - 1, 0), int(count))
        for power, count in enumerate(np.bincount(powers))
        if power >= powers.min()
    )
    least, most = int(degrees.min()), int(degrees.max())
    return Degrees(least, float(np.median(degrees)), float(degrees.mean()), most, histogram)


def _features(x: Any) -> FeatureFacts:
    n, width = x.shape
    if is_sparse(x):
        filled = x.data != 0
        constant = width - np.count_nonzero(np.bincount(x.indices[filled], minlength=width))
        # Zeros that are not stored count too.
        values = np.append(x.data, x.dtype.type(0)) if n * width > len(x.data) else x.data
        low, high = values.min(), values.max()
        rows = np.add.reduceat(np.append(filled, False), x.indptr[:-1], dtype=np.int64)
        nonzero = filled.sum()
        zero_rows = ((rows == 0) | (np.diff(x.indptr) == 0)).sum()
    else:
        least = most = np.asarray(x[0])
        nonzero = zero_rows = 0
        for part in chunks(n, width):
            rows = x[part]
            least, most = np.minimum(least, rows.min(0)), np.maximum(most, rows.max(0))
            filled = np.count_nonzero(rows, axis=1)
            nonzero, zero_rows = nonzero + filled.sum(), zero_rows + (filled == 0).sum()
        constant = np.count_nonzero(least == most)
        low, high = (least.min(), most.max()) if width else (0, 0)
    density = float(nonzero / max(n * width, 1))
    return FeatureFacts(
        width, is_sparse(x), str(x.dtype), density, float(low), float(high),
        constant=int(constant), zero_rows=int(zero_rows),
    )  # fmt: skip


def _labels(y: Any) -> LabelFacts:
    counts = class_counts(y, np.ones(len(y), np.bool_))
    some = np.count_nonzero(y >= 0 if y.ndim == 1 else (y > 0).any(1))
    return LabelFacts(len(counts), y.ndim == 2, int(some), tuple(counts.tolist()))


def _numbers(y: Any) -> NumberFacts:
    known = y[labelled(y)].astype(np.float64)
    width, rows = 1 if y.ndim == 1 else y.shape[1], known if known.size else np.array([np.nan])
    facts = rows.min(), rows.max(), rows.mean(), rows.std()
    return NumberFacts(width, len(known), *map(float, facts))


def class_counts(y: Any, chosen: Any) -> npt.NDArray[np.int64]:
    """How many of the ``chosen`` nodes have each class or label."""
    if y.ndim == 1:
        classes = max(int(y.max()) + 1, 0)
        return np.bincount(y[chosen & (y >= 0)].astype(np.int64), minlength=classes)
    counts = np.zeros(y.shape[1], np.int64)
    for part in chunks(*y.shape):
        counts += np.count_nonzero(y[part][chosen[part]], axis=0)
    return counts


def _split(graph: Graph) -> dict[str, int] | None:
    if graph.split is None:
        return None
    split = np.asarray(graph.split)
    parts = {"train": 0, "val": 1, "test": 2, "none": -1}
    return {name: int(np.count_nonzero(split == part)) for name, part in parts.items()}


def _homophily(graph: Graph, y: Any) -> float | None:
    if y.ndim == 1:
        alike, edges = kernels.same_classes(graph.indptr, graph.indices, y.astype(np.int64))
    else:
        y = y.astype(np.uint8, copy=False)
        alike, edges = kernels.shared_labels(graph.indptr, graph.indices, y)
    return float(alike.sum() / edges.sum()) if edges.any() else None


# -- what may surprise: how much of it there is, and the words for it -----------------------------

Notes = list[tuple[int, str]]


def _topology_notes(graph: Graph, sizes: Any) -> Notes:
    degrees = graph.degrees
    n, mean = len(degrees), degrees.mean()
    isolated, several, hubs = (
        int(np.count_nonzero(found)) for found in (degrees == 0, sizes > 1, degrees > _HUB * mean)
    )
    alone = "that read from nobody" if graph.directed else "without an edge"
    return [
        (isolated, f"{_nodes(isolated)} {alone} ({isolated / n:.1%})"),
        (
            several > 1,
            f"{several:,} components of more than one node; the largest has {sizes.max() / n:.1%} "
            "of all nodes",
        ),
        (
            hubs,
            f"{_nodes(hubs)} with more than {_HUB} times the mean degree; the largest hub is "
            f"joined to {degrees.max() / n:.1%} of all nodes",
        ),
    ]


def _feature_notes(facts: FeatureFacts) -> Notes:
    odd, same = not np.isfinite([facts.least, facts.most]).all(), facts.constant
    return [
        (odd, "features that are not finite numbers: training cannot use them"),
        (same, f"{same:,} of {facts.width:,} features are the same for all nodes"),
        (facts.zero_rows, f"{_nodes(facts.zero_rows)} with no feature but zeros"),
    ]


def _label_notes(graph: Graph, facts: LabelFacts) -> Notes:
    y, unused = np.asarray(graph.y), facts.counts.count(0)
    notes = [(unused, f"{unused:,} of {facts.classes:,} classes have no node")]
    if facts.multi_label:
        bare = len(y) - facts.labelled
        notes.append((bare, f"{_nodes(bare)} with none of the labels"))
    if graph.split is None:
        return notes
    split = np.asarray(graph.split)
    unseen = (class_counts(y, split == 0) == 0) & (class_counts(y, split > 0) > 0)
    count = int(unseen.sum())
    some = ", ".join(map(str, np.flatnonzero(unseen)[:5])) + ", ..." * (count > 5)
    return [*notes, (count, f"{count:,} classes of val or test never seen in training ({some})")]


def _missing_notes(split: Any, bare: Any) -> Notes:
    counts = [(int(np.count_nonzero(bare & (split == k))), name) for k, name in enumerate(PARTS)]
    words = "without a label in {}: they are left out"
    return [(count, f"{_nodes(count)} {words.format(name)}") for count, name in counts]


def _split_notes(split: Any, x: Any) -> Notes:
    notes: Notes = [(not (split == part).any(), f"no nodes in {PARTS[part]}") for part in range(3)]
    if x is None:
        return notes
    hashes = _hashes(x)
    train = np.unique(hashes[(split == 0) & (hashes != 0)])
    for part, name in ((1, "val"), (2, "test")):
        again = int(np.isin(hashes[split == part], train).sum())
        words = f"{_nodes(again)} of {name} with the very features of a training node"
        notes.append((again, words))
    return notes


def _nodes(count: int) -> str:
    return f"{count:,} node" if count == 1 else f"{count:,} nodes"


def _hashes(x: Any) -> npt.NDArray[np.uint64]:
    """Equal rows have equal hashes; 0 stands for a row of zeros."""
    size = x.dtype.itemsize
    words, sign = f"u{size}", np.uint64(1 << (8 * size - 1) if x.dtype.kind == "f" else 0)
    if is_sparse(x):
        hashes: npt.NDArray[np.uint64] = kernels.row_hashes(
            x.indptr, x.indices, x.data.view(words), sign
        )
        return hashes
    width, made = x.shape[1], []
    columns = np.tile(np.arange(width, dtype=np.int32), rows_of(width))
    for part in chunks(*x.shape):
        rows = np.ascontiguousarray(x[part])
        starts = np.arange(len(rows) + 1) * width
        made.append(kernels.row_hashes(starts, columns, rows.view(words).reshape(-1), sign))
    return np.concatenate(made)
