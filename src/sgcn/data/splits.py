"""Splits into training, validation and test nodes: drawn, drawn class by class, or read from files.

A split is a function of (graph, shares, seed): the same on every machine. Nodes without a label get
no part (-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sgcn.data.checks import check_ids, first_bad
from sgcn.data.readers.arrays import npy
from sgcn.data.readers.tables import Text
from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.labels import NUMBERS, kind_of, labelled
from sgcn.rng import Key, Stream, check_seed

Split = npt.NDArray[np.int8]


def random_split(graph: Graph, train: float = 0.6, val: float = 0.2, seed: int = 0) -> Split:
    """``train`` and ``val`` of the labelled nodes at random; the rest is for testing."""
    return _drawn(graph, train, val, seed)


def stratified_split(graph: Graph, train: float = 0.6, val: float = 0.2, seed: int = 0) -> Split:
    """`random_split` in every class, each of which has at least one training node.

    With several labels a node, its class here is the rarest label that it has; the nodes without
    any are a class of their own.
    """
    return _drawn(graph, train, val, seed, stratified=True)


def _drawn(
    graph: Graph, train: float, val: float, seed: int, *, stratified: bool = False
) -> Split:
    if not (0 < train <= 1 and 0 <= val <= 1 and train + val <= 1 + 1e-9):
        raise SgcnError(
            f"train and val are {train:g} and {val:g}, expected shares with train > 0, val >= 0 "
            "and a sum of at most 1"
        )
    if stratified and graph.y is None:
        raise SgcnError(
            "the graph has no labels (y), expected them to stratify by: split it at random"
        )
    if stratified and kind_of(np.asarray(graph.y)) == NUMBERS:
        raise SgcnError("y holds numbers, expected classes to stratify by: split it at random")
    order = np.flatnonzero(_labelled(graph))
    if len(order) == 0:
        raise SgcnError("the graph has no labelled node, expected some to split")
    order = order[permutation(len(order), Key(check_seed(seed)).stream(Stream.SPLIT))]
    sizes = np.array([len(order)])
    if stratified:
        stratum = _strata(np.asarray(graph.y))[order]
        order = order[np.argsort(stratum, kind="stable")]
        sizes = np.unique(stratum, return_counts=True)[1]
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first = np.maximum(_rounded(train * sizes), int(stratified))
    second = np.maximum(_rounded((train + val) * sizes), first)
    split = np.full(len(graph), -1, np.int8)
    split[order] = sum(rank >= np.repeat(cut, sizes) for cut in (first, second))
    return split


def split_from_files(graph: Graph, files: Sequence[Path]) -> Split:
    """The nodes of three files: training, validation, test; a node in none has no part.

    A file has one node id a line, or is a ``.npy`` vector of them.
    """
    if len(files) != 3:
        raise SgcnError(f"{len(files)} files came, expected three: training, validation, test")
    n, labelled = len(graph), _labelled(graph)
    split = np.full(n, -1, np.int8)
    for part, path in enumerate(files):
        ids, lines = _read_ids(path)
        place = "in entry" if path.suffix == ".npy" else "in line", lines
        check_ids(ids, n, str(path), *place)
        again = np.ones(len(ids), np.bool_)
        again[np.unique(ids, return_index=True)[1]] = False
        first_bad(again, ids, str(path), "every node once", *place)
        for before, other in enumerate(files[:part]):
            first_bad(split[ids] == before, ids, str(path), f"no node of {other}", *place)
        first_bad(~labelled[ids], ids, str(path), "nodes with a label", *place)
        split[ids] = part
    return split


def _labelled(graph: Graph) -> npt.NDArray[np.bool_]:
    return np.ones(len(graph), np.bool_) if graph.y is None else labelled(np.asarray(graph.y))


def _rounded(counts: Any) -> Any:
    return np.floor(counts + (0.5 + 1e-9)).astype(np.int64)


def _strata(y: Any) -> npt.NDArray[np.int64]:
    """The class of every node; with several labels the rarest one, or their number for none."""
    if y.ndim == 1:
        classes: npt.NDArray[np.int64] = y.astype(np.int64)
        return classes
    rare_first = np.argsort(np.count_nonzero(y, axis=0), kind="stable")
    has = y[:, rare_first] != 0
    rarest: npt.NDArray[np.int64] = np.where(has.any(1), has.argmax(1), y.shape[1])
    return rarest


# -- files ----------------------------------------------------------------------------------------


def _read_ids(path: Path) -> tuple[Any, Any]:
    """The ids of a file, and where in it they stand: lines from 1, or entries from 0."""
    what = "a node id in each line, or a .npy vector of them"
    if path.suffix == ".npy":
        with npy(path, what, "iu", 1) as array:
            ids = array.all(np.int64)
        if len(ids) == 0:
            raise SgcnError(f"{path} holds no node id, expected at least one")
        return ids, np.arange(len(ids))
    table = Text(path, what, width=1, comments="")
    fields = list(table.fields([0]))
    ids = np.concatenate([table.values(part, [0], integer=True)[:, 0] for part in fields])
    return ids, np.concatenate([part.lines for part in fields])
