"""How far the sampled propagation matrix M of one layer is from P: what the paper's bounds ask for.

Pbar = E[M | row kept]. The two distances are E|M - Pbar|^2, the noise of the sampler, and
|Pbar - P|^2, its bias, both over the rows R of a batch and relative to |P[R, :]|^2. Subgraph
samplers choose their rows: for them R is every row of the graph that the draws have met twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from sgcn.analysis.moments import Mean, jackknife, numbers
from sgcn.block import Block, Int32, Int64
from sgcn.graph import Graph
from sgcn.kernels.random import permutation
from sgcn.machine import check_memory
from sgcn.options import check, integer
from sgcn.rng import Key, Stream, check_seed
from sgcn.samplers import NodeSet, Sampler
from sgcn.samplers.base import LayerSampler, column_law, exact_block, size_of_layer
from sgcn.samplers.cluster import partition_of
from sgcn.task import train_nodes

Float64 = npt.NDArray[np.float64]

_GROUPS = 8  # the draws are left out in so many groups to see how much they matter
DRAWS = integer(2 * _GROUPS)


@dataclass(frozen=True)
class PropagationError:
    """Relative distances by Monte Carlo, and (variance, bias^2) by formula where there is one."""

    variance: Mean
    bias2: Mean
    rows: int  # rows that the Monte Carlo figures speak of
    formula: tuple[float, float] | None

    def as_dict(self) -> dict[str, Any]:
        variance, bias2 = self.formula or (None, None)
        return {
            **numbers(variance=self.variance),
            "variance_formula": variance,
            **numbers(bias2=self.bias2),
            "bias2_formula": bias2,
            "rows": self.rows,
        }


def some_rows(graph: Graph, count: int, seed: int) -> Int32:
    """A batch: ``count`` training nodes, or all if there are fewer."""
    train = train_nodes(graph)
    chosen: Int32 = train[permutation(len(train), Key(check_seed(seed)).shuffle_stream())[:count]]
    return chosen


def propagation_error(
    graph: Graph, sampler: Sampler, seeds: Int32, *, draws: int = 200, seed: int = 0, depth: int = 1
) -> PropagationError:
    """The distances of the block of layer ``depth``, the one whose rows are the ``seeds``."""
    check("draws", draws, DRAWS)
    nodes = NodeSet(seeds, len(graph))
    rows = np.flatnonzero(nodes.mask).astype(np.int32)
    if sampler.draws_nodes:
        rows = np.arange(len(graph), dtype=np.int32)
    entries = Entries.of(graph, rows)
    size = len(entries.value)
    check_memory(16 * _GROUPS * size, f"moments of {size:,} entries", "take a smaller graph")
    moments = Moments(entries, _GROUPS)
    for draw in tqdm(range(draws), desc=f"{sampler.name}: M", leave=False, disable=None):
        key = Key(seed, draw)
        if isinstance(sampler, LayerSampler):
            block = sampler.block(graph, rows, key.stream(Stream.LAYER, depth), depth, depth)
        else:
            block = sampler.sample(graph, nodes, key, depth).blocks[-1]
        moments.add(draw % _GROUPS, block)
    variance, bias2, met = moments.distances()
    return PropagationError(variance, bias2, met, formula(graph, sampler, rows, depth))


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of P[rows, :], by row and then by column."""

    nodes: int
    rows: Int32
    row: Int64  # index of an entry's row in ``rows``
    col: Int64
    value: Float64

    @staticmethod
    def of(graph: Graph, rows: Int32) -> Entries:
        block = exact_block(graph, rows)
        row = np.repeat(np.arange(len(rows)), np.diff(block.indptr))
        col = block.src[block.indices].astype(np.int64)
        order = np.lexsort((col, row))
        return Entries(
            len(graph), rows, row[order], col[order], block.weights[order].astype(np.float64)
        )

    @cached_property
    def places(self) -> Int64:
        """Of the entries in a matrix of all columns, read row by row: they ascend."""
        places: Int64 = self.row * self.nodes + self.col
        return places


class Moments:
    """Sums of M and of its squares over the draws of each group, and how often a row was kept."""

    def __init__(self, entries: Entries, groups: int) -> None:
        self.entries = entries
        self.total = np.zeros((groups, len(entries.value)))
        self.squares = np.zeros((groups, len(entries.value)))
        self.kept = np.zeros((groups, len(entries.rows)))
        self._row_of = np.full(entries.nodes, -1, np.int64)  # of a node
        self._row_of[entries.rows] = np.arange(len(entries.rows))

    def add(self, group: int, block: Block) -> None:
        kept = self._row_of[block.dst]
        row = np.repeat(kept, np.diff(block.indptr))
        places = row * self.entries.nodes + block.src[block.indices].astype(np.int64)
        at = np.searchsorted(self.entries.places, places)
        value = block.weights.astype(np.float64)
        self.total[group][at] += value  # a block has an entry once
        self.squares[group][at] += value**2
        self.kept[group][kept] += 1

    def distances(self) -> tuple[Mean, Mean, int]:
        """Relative E|M - Pbar|^2 and |Pbar - P|^2, and the rows that they are of."""
        sums = (self.total, self.squares, self.kept)
        all_draws = [part.sum(0) for part in sums]
        variance, bias2, rows = self._found(*all_draws)
        left_out = [
            self._found(*(total - part[g] for total, part in zip(all_draws, sums, strict=True)))
            for g in range(len(self.kept))
        ]
        variances, biases, _ = zip(*left_out, strict=True)
        return Mean(variance, jackknife(variances)), Mean(bias2, jackknife(biases)), rows

    def _found(self, total: Float64, squares: Float64, kept: Float64) -> tuple[float, float, int]:
        enough = kept >= 2
        used = enough[self.entries.row]
        n, exact = kept[self.entries.row][used], self.entries.value[used]
        mean = total[used] / n
        variance = np.maximum(squares[used] - n * mean**2, 0.0) / (n - 1)
        bias2 = (mean - exact) ** 2 - variance / n  # a mean of n draws is off by that much anyway
        size = float((exact**2).sum())
        scale = 1.0 / size if size > 0 else math.nan
        return float(variance.sum()) * scale, float(bias2.sum()) * scale, int(enough.sum())


# -- formulas -----------------------------------------------------------------------------------


def formula(
    graph: Graph, sampler: Sampler, rows: Int32, depth: int = 1
) -> tuple[float, float] | None:
    """Relative (E|M - Pbar|^2, |Pbar - P|^2) given the rows, where a formula is known."""
    known = _FORMULAS.get(sampler.name)
    if known is None or getattr(sampler, "weighting", "unbiased") != "unbiased":
        return None
    entries = Entries.of(graph, rows)
    found = known(graph, sampler, entries, depth)
    size = float((entries.value**2).sum())
    if found is None or size == 0:
        return None
    variance, bias2 = found
    weights = entries.value**2 / size
    return float((variance * weights).sum()), float((bias2 * weights).sum())


#: Of every entry, or of all alike: variance and squared bias over P_ij^2.
_Found = tuple[Float64, Float64] | None


def _node_wise(graph: Graph, sampler: Any, entries: Entries, depth: int) -> _Found:
    """A neighbour is kept with chance s / deg and weighed by its inverse: deg / s - 1."""
    size = size_of_layer(sampler.sizes, depth, depth)
    degree = graph.degrees[entries.rows][entries.row]
    variance = np.maximum(degree / size, 1.0) - 1.0
    if graph.self_loops:  # P_ii is kept as it is
        variance[entries.col == entries.rows[entries.row]] = 0.0
    return variance, np.zeros(1)


def _layer_wise(graph: Graph, sampler: Any, entries: Entries, depth: int) -> _Found:
    """count ~ Binomial(s, p), weighed by 1 / (s p): (1 / p - 1) / s."""
    if sampler.name == "ladies":
        if sampler.draws == "stratified":
            return None  # draws that depend on each other
        law = np.bincount(entries.col, entries.value**2, entries.nodes).astype(np.float64)
    else:
        law = column_law(graph).law.copy()
    if sampler.keep_destinations:
        law[entries.rows] = 0.0
    total = law.sum()
    chance = law[entries.col] / total if total > 0 else np.zeros(len(entries.col))
    size = size_of_layer(sampler.sizes, depth, depth)
    # Without a chance are only the destinations: they are kept as they are.
    inverse = np.divide(1.0, chance, out=np.ones_like(chance), where=chance > 0)
    return (inverse - 1.0) / size, np.zeros(1)


def _cluster(graph: Graph, sampler: Any, entries: Entries, depth: int) -> _Found:
    """An entry between parts is there with chance c = (q - 1) / (parts - 1), over c or as it is."""
    partition = partition_of(graph, sampler.parts)
    taken = min(sampler.parts_per_batch, partition.parts)
    part = partition.part
    between = part[entries.rows[entries.row]] != part[entries.col]
    chance = (taken - 1) / max(partition.parts - 1, 1)
    factor = 1.0 / chance if sampler.rescale_between and taken > 1 else 1.0
    variance = np.where(between, factor**2 * chance * (1.0 - chance), 0.0)
    return variance, np.where(between, (factor * chance - 1.0) ** 2, 0.0)


_FORMULAS: dict[str, Callable[[Graph, Any, Entries, int], _Found]] = {
    "exact": lambda graph, sampler, entries, depth: (np.zeros(1), np.zeros(1)),
    "neighbor": _node_wise,
    "vrgcn": _node_wise,
    "labor": _node_wise,
    "fastgcn": _layer_wise,
    "ladies": _layer_wise,
    "cluster": _cluster,
}
