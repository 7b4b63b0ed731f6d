"""Every sampler as papers publish them: NumPy and SciPy, written for clarity and not for speed.

The steps are those of the literature's code: slice rows of the CSR matrix P, draw with ``choice``
(with probabilities, without replacement), slice columns, rescale; node-wise samplers go row by row,
and FastGCN's law is computed for every batch. The `tuned` ones compute that law once. What a graph
needs once (P, its entrywise square, its list of edges) is prepared in `Published` and not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from sgcn.block import Int32
from sgcn.graph import Graph
from sgcn.samplers.cluster import partition_of

Draw = Callable[["Published", Int32, np.random.Generator], list[Any]]
#: Of row i's columns: which to keep (an index), and the factors of what is kept.
Pick = Callable[[int, Any], tuple[Any, Any]]
DEPTH = 2


class Published:
    """P as a SciPy matrix, and what else the published samplers hold."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.P = graph.matrix()
        self.squares = self.P.multiply(self.P).tocsr()
        self.row_sums = np.asarray(self.P.sum(axis=1)).ravel()

    def fresh_law(self) -> Any:
        """FastGCN's p_j ~ |column j of P|^2."""
        return _law(self.squares)

    @cached_property
    def law(self) -> Any:
        """The same, computed once."""
        return self.fresh_law()

    @cached_property
    def edge_ends(self) -> Any:
        return np.repeat(np.arange(len(self.graph)), self.graph.degrees), self.graph.indices

    @cached_property
    def edge_law(self) -> Any:
        """GraphSAINT's p(u, v) ~ 1/deg(u) + 1/deg(v)."""
        inverse = 1.0 / np.maximum(self.graph.degrees, 1)
        weights = inverse[self.edge_ends[0]] + inverse[self.edge_ends[1]]
        return weights / weights.sum()


def _law(squares: Any) -> Any:
    sums = np.asarray(squares.sum(axis=0)).ravel().astype(np.float64)
    return sums / sums.sum()


def _choice(rng: np.random.Generator, law: Any, size: int) -> Any:
    return rng.choice(len(law), min(size, int(np.count_nonzero(law))), replace=False, p=law)


def neighbor(size: int) -> Draw:
    """GraphSAGE: ``choice`` without replacement among the neighbours, row by row."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        rows, blocks = np.unique(seeds), []
        for _ in range(DEPTH):
            block, rows = _row_by_row(data, rows, _some(size, rng))
            blocks.append(block)
        return blocks

    return draw


def vrgcn(size: int) -> Draw:
    """The sampled blocks, and the exact one for the history of every layer."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        rows, blocks = np.unique(seeds), []
        for _ in range(DEPTH):
            blocks.append(_row_by_row(data, rows, _all)[0])
            block, rows = _row_by_row(data, rows, _some(size, rng))
            blocks.append(block)
        return blocks

    return draw


def exact(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
    """All neighbours, row by row."""
    rows, blocks = np.unique(seeds), []
    for _ in range(DEPTH):
        block, rows = _row_by_row(data, rows, _all)
        blocks.append(block)
    return blocks


def _all(i: int, columns: Any) -> tuple[Any, Any]:
    return slice(None), 1.0


def _some(size: int, rng: np.random.Generator) -> Pick:
    """``size`` of the neighbours, and the row's own entry where P has one."""

    def pick(i: int, columns: Any) -> tuple[Any, Any]:
        own = columns.searchsorted(i)
        has_own = own < len(columns) and columns[own] == i
        others = len(columns) - has_own
        if others <= size:
            return slice(None), 1.0
        kept = rng.choice(others, size, replace=False)
        if not has_own:
            return kept, others / size
        kept[kept >= own] += 1
        factor = np.full(size + 1, others / size)
        factor[size] = 1.0
        return np.append(kept, own), factor

    return pick


def _row_by_row(data: Published, rows: Int32, pick: Pick) -> tuple[Any, Int32]:
    """A block and its columns; ``pick`` says which entries of a row stay, and their factors."""
    U = data.P[rows, :]
    indptr, indices, values = [0], [], []
    for k, i in enumerate(rows):
        row = slice(U.indptr[k], U.indptr[k + 1])
        kept, factor = pick(i, U.indices[row])
        indices.append(U.indices[row][kept])
        values.append(U.data[row][kept] * factor)
        indptr.append(indptr[-1] + len(indices[-1]))
    found = np.concatenate(indices)
    block = sp.csr_array((np.concatenate(values), found, indptr), shape=U.shape)
    after = np.unique(np.concatenate([rows, found]))
    return block[:, after], after


def labor(size: int) -> Draw:
    """LABOR-0: one number a node; every row keeps the neighbours whose number is small enough."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        rows, blocks = np.unique(seeds), []
        for _ in range(DEPTH):
            number = rng.random(data.P.shape[1])

            def small(i: int, columns: Any, number: Any = number) -> tuple[Any, Any]:
                chance = min(1.0, size / max(len(columns) - 1, 1))
                kept = np.flatnonzero((number[columns] < chance) | (columns == i))
                return kept, np.where(columns[kept] == i, 1.0, 1.0 / chance)

            block, rows = _row_by_row(data, rows, small)
            blocks.append(block)
        return blocks

    return draw


def ladies(size: int) -> Draw:
    """Draws among the columns of the rows above, p_j ~ sum of P_ij^2, the rows added."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        return [block for block, _, _ in ladies_layers(data, seeds, size, rng)]

    return draw


def ladies_layers(
    data: Published, seeds: Int32, size: int, rng: np.random.Generator
) -> list[tuple[Any, Int32, Int32]]:
    """LADIES' blocks with their rows and columns, output side first."""
    rows, layers = np.unique(seeds), []
    for _ in range(DEPTH):
        law = _law(data.squares[rows, :])
        block, after = _columns(data, rows, _choice(rng, law, size), law)
        layers.append((block, rows, after))
        rows = after
    return layers


def fastgcn(size: int, *, tuned: bool = False) -> Draw:
    """Draws from one law over all nodes in every layer, the rows added."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        rows, blocks = np.unique(seeds), []
        law = data.law if tuned else data.fresh_law()
        for _ in range(DEPTH):
            block, rows = _columns(data, rows, _choice(rng, law, size), law)
            blocks.append(block)
        return blocks

    return draw


def _columns(data: Published, rows: Int32, drawn: Any, law: Any) -> tuple[Any, Int32]:
    """P's drawn columns with importance weights, rows rescaled to their true sums."""
    after = np.unique(np.concatenate([rows, drawn]))
    weights = 1.0 / (len(drawn) * np.maximum(law[after], 1e-12))
    block = data.P[rows, :][:, after] @ sp.diags_array(weights)
    return _rescaled(block, data.row_sums[rows]), after


def _rescaled(block: Any, target: Any) -> Any:
    sums = np.asarray(block.sum(axis=1)).ravel()
    scale = np.divide(target, sums, out=np.zeros(len(target)), where=sums > 0)
    return sp.diags_array(scale) @ block


def _induced(data: Published, nodes: Any) -> list[Any]:
    """P among ``nodes``, for all layers."""
    return [_rescaled(data.P[nodes, :][:, nodes], data.row_sums[nodes])]


def saint_node(size: int, *, tuned: bool = False) -> Draw:
    """Nodes from FastGCN's law, and the subgraph they induce."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        law = data.law if tuned else data.fresh_law()
        return _induced(data, np.sort(_choice(rng, law, size)))

    return draw


def saint_edge(size: int) -> Draw:
    """Edges from GraphSAINT's law over the list of all edges, and what their ends induce."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        drawn = rng.choice(len(data.edge_law), size, p=data.edge_law)
        return _induced(data, np.unique(np.concatenate([end[drawn] for end in data.edge_ends])))

    return draw


def saint_walk(size: int, length: int) -> Draw:
    """Random walks one after the other, and what the visited nodes induce."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        P, visited = data.P, []
        for root in rng.choice(P.shape[0], size):
            node = root
            visited.append(node)
            for _ in range(length):
                node = rng.choice(P.indices[P.indptr[node] : P.indptr[node + 1]])
                visited.append(node)
        return _induced(data, np.unique(visited))

    return draw


def cluster(parts: int, taken: int) -> Draw:
    """The subgraph of ``taken`` parts of the same METIS partition that ours uses."""

    def draw(data: Published, seeds: Int32, rng: np.random.Generator) -> list[Any]:
        part = partition_of(data.graph, parts).part
        chosen = rng.choice(parts, taken, replace=False)
        return _induced(data, np.flatnonzero(np.isin(part, chosen)))

    return draw
