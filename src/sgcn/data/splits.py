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

from sgcn.errors import SgcnError
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.rng import Key, check_seed

_STREAM = (1 << 33) + 64  # a layer that no sample has
_DIGITS = 18  # what 64 bits surely hold

Split = npt.NDArray[np.int8]


def random_split(graph: Graph, train: float = 0.6, val: float = 0.2, seed: int = 0) -> Split:
    """``train`` and ``val`` of the labelled nodes at random; the rest is for testing."""
    _check_shares(train, val)
    order = _shuffled(graph, seed)
    cuts = [_rounded(share * len(order)) for share in (train, train + val)]
    split = np.full(len(graph), -1, np.int8)
    for part, nodes in enumerate(np.split(order, cuts)):
        split[nodes] = part
    return split


def stratified_split(graph: Graph, train: float = 0.6, val: float = 0.2, seed: int = 0) -> Split:
    """`random_split` in every class, each of which has at least one training node.

    With several labels a node, its class here is the rarest label that it has; the nodes without
    any are a class of their own.
    """
    _check_shares(train, val)
    if graph.y is None:
        raise SgcnError(
            "the graph has no labels (y), expected them to stratify by: split it at random"
        )
    order = _shuffled(graph, seed)
    stratum = _strata(np.asarray(graph.y))[order]
    by_class = np.argsort(stratum, kind="stable")
    order, stratum = order[by_class], stratum[by_class]
    starts = np.flatnonzero(np.diff(stratum, prepend=-2))
    sizes = np.diff(starts, append=len(order))
    rank = np.arange(len(order)) - np.repeat(starts, sizes)
    first = np.maximum(_rounded(train * sizes), 1)
    second = np.maximum(_rounded((train + val) * sizes), first)
    split = np.full(len(graph), -1, np.int8)
    split[order] = (rank >= np.repeat(first, sizes)).astype(np.int8) + (
        rank >= np.repeat(second, sizes)
    )
    return split


def split_from_files(graph: Graph, files: Sequence[Path]) -> Split:
    """The nodes of three files: training, validation, test; a node in none has no part.

    A file has one node id a line, or is a ``.npy`` vector of them.
    """
    if len(files) != 3:
        raise SgcnError(f"{len(files)} files came, expected three: training, validation, test")
    labelled = _labelled(graph)
    split = np.full(len(graph), -1, np.int8)
    for part, path in enumerate(files):
        ids, lines = _read_ids(path)
        _check_ids(path, ids, lines, len(graph))
        known = split[ids] >= 0
        if known.any():
            k = int(np.argmax(known))
            raise SgcnError(
                f"{path} has node {ids[k]} ({_where(path, lines[k])}), which is in "
                f"{files[split[ids[k]]]} too, expected every node in one file"
            )
        bare = ~labelled[ids]
        if bare.any():
            k = int(np.argmax(bare))
            raise SgcnError(
                f"{path} has node {ids[k]} ({_where(path, lines[k])}), which has no label, "
                "expected labelled nodes"
            )
        split[ids] = part
    return split


def with_split(graph: Graph, split: Any) -> Graph:
    """The same graph with another split; everything else is shared."""
    return Graph(
        graph.indptr,
        graph.indices,
        graph.values,
        directed=graph.directed,
        normalization=graph.normalization,
        self_loops=graph.self_loops,
        x=graph.x,
        y=graph.y,
        split=split,
        scaling=(graph.row, graph.col),
    )


def _check_shares(train: float, val: float) -> None:
    if not (0 < train <= 1 and 0 <= val <= 1 and train + val <= 1 + 1e-9):
        raise SgcnError(
            f"train and val are {train:g} and {val:g}, expected shares with train > 0, val >= 0 "
            "and a sum of at most 1"
        )


def _labelled(graph: Graph) -> npt.NDArray[np.bool_]:
    if graph.y is None or np.ndim(graph.y) == 2:
        return np.ones(len(graph), np.bool_)
    known: npt.NDArray[np.bool_] = np.asarray(graph.y) >= 0
    return known


def _shuffled(graph: Graph, seed: int) -> npt.NDArray[np.int64]:
    """The labelled nodes in random order."""
    nodes = np.flatnonzero(_labelled(graph))
    if len(nodes) == 0:
        raise SgcnError("the graph has no labelled node, expected some to split")
    order: npt.NDArray[np.int64] = nodes[
        permutation(len(nodes), Key(check_seed(seed)).stream(_STREAM))
    ]
    return order


def _rounded(counts: Any) -> Any:
    return np.floor(np.asarray(counts) + (0.5 + 1e-9)).astype(np.int64)


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


def _read_ids(path: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The ids of a file, and where in it they stand: lines from 1, or entries from 0."""
    try:
        if path.suffix == ".npy":
            array = np.load(path, allow_pickle=False)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise SgcnError(
                    f"{path} holds {array.dtype} of shape {array.shape}, expected a vector of "
                    "whole node ids"
                )
            return array.astype(np.int64), np.arange(len(array))
        lines = path.read_text().split("\n")
    except SgcnError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise SgcnError(
            f"{path} cannot be read, expected one node id a line, or a .npy file ({error})"
        ) from None
    texts = [line.strip() for line in lines]
    kept = [k for k, text in enumerate(texts) if text]
    for k in kept:
        if not (texts[k].isascii() and texts[k].isdecimal() and len(texts[k]) <= _DIGITS):
            raise SgcnError(
                f"{path} has {texts[k][:40]!r} in line {k + 1}, expected one whole node id from 0 "
                "on in each line"
            )
    return np.array([int(texts[k]) for k in kept], np.int64), np.array(kept, np.int64) + 1


def _check_ids(path: Path, ids: Any, lines: Any, n: int) -> None:
    if len(ids) == 0:
        raise SgcnError(f"{path} holds no node id, expected at least one")
    outside = (ids < 0) | (ids >= n)
    if outside.any():
        k = int(np.argmax(outside))
        raise SgcnError(
            f"{path} has node {ids[k]} ({_where(path, lines[k])}), expected ids from 0 to {n - 1}"
        )
    _, first = np.unique(ids, return_index=True)
    if len(first) < len(ids):
        again = np.ones(len(ids), np.bool_)
        again[first] = False
        k = int(np.argmax(again))
        raise SgcnError(
            f"{path} has node {ids[k]} twice ({_where(path, lines[k])} is the second), expected "
            "every node once"
        )


def _where(path: Path, line: int) -> str:
    return f"entry {line}" if path.suffix == ".npy" else f"line {line}"
