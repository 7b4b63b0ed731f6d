"""`Graph`: a topology at 4 bytes a stored edge, and P as two scaling vectors over it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sgcn import store
from sgcn.errors import SgcnError
from sgcn.kernels import Propagation, csr
from sgcn.options import is_integer

Array = npt.NDArray[Any]
Normalization = Literal["sym", "row"]
T = TypeVar("T")

_OPTIONS = ("directed", "normalization", "self_loops")


class Graph:
    """N nodes, their edges as CSR, and the propagation matrix P = diag(r) (A + I) diag(c).

    Row i lists the nodes that i reads from. Make one with `from_csr`, `from_edges`,
    `from_edge_index`, `from_scipy` or `from_pyg`, or `open` a saved one. Arrays are shared, never
    copied, by `with_propagation`; treat them as read-only.
    """

    def __init__(
        self, indptr: Array, indices: Array, values: Array | None = None, *,
        directed: bool = False, normalization: Normalization = "sym", self_loops: bool = True,
        x: Any = None, y: Any = None, split: Any = None,
        scaling: tuple[Array, Array] | None = None,
    ) -> None:  # fmt: skip
        """For arrays that are known to be sound; everyone else uses the `from_` constructors."""
        if normalization not in ("sym", "row"):
            raise SgcnError(f"normalization is {normalization!r}, expected one of sym, row")
        self.indptr: npt.NDArray[np.int64] = indptr
        self.indices: npt.NDArray[np.int32] = indices
        self.values: npt.NDArray[np.float32] | None = values
        self.directed = directed
        self.normalization: Normalization = normalization
        self.self_loops = self_loops
        self.row, self.col = scaling if scaling is not None else self._scaling()
        self.x, self.y, self.split = _checked_rows(len(self), x, y, split)
        self.path: Path | None = None
        self._memo: dict[Hashable, Any] = {}
        self._lock = threading.RLock()

    # -- making one ---------------------------------------------------------------------------

    @classmethod
    def from_csr(
        cls, indptr: Any, indices: Any, values: Any = None, *, directed: bool = False,
        **options: Any,
    ) -> Graph:  # fmt: skip
        """From CSR arrays; symmetrised unless ``directed``, duplicates merged."""
        indptr, indices = _numpy(indptr), _numpy(indices)
        if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or len(indptr) < 2:
            raise SgcnError(
                f"indptr is {indptr.dtype} of shape {indptr.shape}, expected a vector of N + 1 "
                "whole numbers with N >= 1"
            )
        n, stored = len(indptr) - 1, indices.size
        indptr = indptr.astype(np.int64, copy=False)
        if indptr[0] != 0 or indptr[-1] != stored or np.any(np.diff(indptr) < 0):
            raise SgcnError(
                f"indptr runs from {indptr[0]} to {indptr[-1]}, expected it to rise from 0 to the "
                f"{stored} entries of indices without falling"
            )
        indices = _checked_ids("indices", indices, n)
        if values is not None:
            values = checked_weights(values, stored)
        elif csr.rows_are_sorted(indptr, indices) and (
            directed or csr.is_symmetric(indptr, indices)
        ):
            if options.get("self_loops", True) and csr.count_self_loops(indptr, indices):
                kept = np.empty_like(indices)
                indptr = csr.drop_self_loops(indptr, indices, kept)
                indices = kept[: indptr[-1]].copy()
            return cls(indptr, indices, directed=directed, **options)
        rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
        return cls._from_entries(rows, indices, values, n, directed, options)

    @classmethod
    def from_edges(
        cls, src: Any, dst: Any, weights: Any = None, *, nodes: int | None = None,
        directed: bool = False, **options: Any,
    ) -> Graph:  # fmt: skip
        """From an edge list, messages going ``src`` to ``dst``; N is ``nodes`` or max id + 1."""
        src, dst = _numpy(src), _numpy(dst)
        if src.shape != dst.shape or src.ndim != 1:
            raise SgcnError(
                f"src and dst have shapes {src.shape} and {dst.shape}, expected two vectors of one "
                "length"
            )
        if nodes is None:
            if len(src) == 0:
                raise SgcnError("the graph is empty, expected at least one node: pass nodes=N")
            integers = src.dtype.kind in "iu" and dst.dtype.kind in "iu"
            nodes = max(int(max(src.max(), dst.max())) + 1, 1) if integers else 1
        if not is_integer(nodes) or nodes < 1:
            raise SgcnError(f"nodes is {nodes!r}, expected a whole number >= 1")
        src, dst = _checked_ids("src", src, nodes), _checked_ids("dst", dst, nodes)
        values = None if weights is None else checked_weights(weights, len(src))
        return cls._from_entries(dst, src, values, nodes, directed, options)

    @classmethod
    def from_edge_index(cls, edge_index: Any, weights: Any = None, **options: Any) -> Graph:
        """From a 2 x E array or tensor in PyG's layout: sources above, destinations below."""
        pair = _numpy(edge_index)
        if pair.ndim != 2 or pair.shape[0] != 2:
            raise SgcnError(f"edge_index has shape {pair.shape}, expected (2, E)")
        return cls.from_edges(pair[0], pair[1], weights, **options)

    @classmethod
    def from_scipy(cls, matrix: Any, *, weighted: bool = False, **options: Any) -> Graph:
        """From a square scipy sparse matrix; its values count only with ``weighted``."""
        if not (is_sparse(matrix) or isinstance(matrix, np.ndarray)):
            raise SgcnError(
                f"the matrix is a {type(matrix).__name__}, expected a scipy sparse matrix"
            )
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise SgcnError(f"the matrix has shape {matrix.shape}, expected a square one")
        if matrix.shape[0] == 0:
            raise SgcnError("the graph is empty, expected at least one node")
        rows = sp.csr_array(matrix)
        values = rows.data if weighted else None
        return cls.from_csr(rows.indptr, rows.indices, values, **options)

    @classmethod
    def from_pyg(cls, data: Any, **options: Any) -> Graph:
        """From a PyG ``Data`` object (anything with ``edge_index`` and ``num_nodes``)."""
        for name, expected in (
            ("edge_index", "a homogeneous PyG Data object"),
            ("num_nodes", "a PyG Data object: set it to N"),
        ):
            if getattr(data, name, None) is None:
                raise SgcnError(f"{type(data).__name__} has no {name}, expected {expected}")
        x, y, weights = (getattr(data, name, None) for name in ("x", "y", "edge_weight"))
        if y is not None:
            y = _numpy(y)
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        found = {"x": x, "y": y, "split": _split_of(data), "nodes": int(data.num_nodes)}
        return cls.from_edge_index(data.edge_index, weights, **found | options)

    @classmethod
    def _from_entries(
        cls, rows: Array, cols: Array, values: Array | None, n: int, directed: bool,
        options: dict[str, Any],
    ) -> Graph:  # fmt: skip
        loops = options.get("self_loops", True)
        if values is None:
            edges = [(rows, cols, np.empty(0, np.float32))]
            indptr, indices = csr.sorted_rows(lambda: edges, n, both=not directed, drop_loops=loops)
            if indices.base is not None:  # a part, which would keep the larger array in memory
                indices = indices.copy()
            return cls(indptr, indices, directed=directed, **options)
        # Repeated entries add up; the two directions of an edge take the larger weight, so that
        # a matrix which is symmetric already stays as it is.
        matrix = sp.coo_array((values, (rows, cols)), shape=(n, n)).tocsr()
        if loops:
            matrix.setdiag(0)
        matrix = matrix if directed else matrix.maximum(matrix.T).tocsr()
        matrix.eliminate_zeros()
        matrix.sort_indices()
        indptr = matrix.indptr.astype(np.int64, copy=False)
        indices = matrix.indices.astype(np.int32, copy=False)
        return cls(indptr, indices, matrix.data, directed=directed, **options)

    # -- what it is ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def edges(self) -> int:
        """Stored entries: twice the number of undirected edges."""
        return len(self.indices)

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        return np.diff(self.indptr)

    @property
    def nbytes(self) -> int:
        """Memory of topology and scaling, beside features, labels and split."""
        arrays = {id(a): a.nbytes for a in (self.indptr, self.indices, self.row, self.col)}
        return sum(arrays.values()) + (0 if self.values is None else self.values.nbytes)

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with beside its arrays: the direction of edges, and P."""
        return {name: getattr(self, name) for name in _OPTIONS}

    @property
    def node_data(self) -> dict[str, Any]:
        """What nodes have beside their edges: features, labels and split, or None for each."""
        return {"x": self.x, "y": self.y, "split": self.split}

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return (
            f"Graph({len(self):,} nodes, {self.edges:,} stored edges, {kind}, "
            f"{self.normalization}{' + self-loops' if self.self_loops else ''})"
        )

    @cached_property
    def propagation(self) -> Propagation:
        """P as kernels take it."""
        values = self.values if self.values is not None else np.empty(0, np.float32)
        return Propagation(self.indptr, self.indices, values, self.row, self.col, self.self_loops)

    def adjacency(self) -> Any:
        """A as a scipy matrix."""
        values = self.values if self.values is not None else np.ones(self.edges, np.float32)
        return sp.csr_array((values, self.indices, self.indptr), shape=(len(self), len(self)))

    def matrix(self) -> Any:
        """P as a scipy matrix, one value an entry: for small graphs, tests and baselines."""
        a = self.adjacency()
        if self.self_loops:
            a = a + sp.eye_array(len(self), dtype=np.float32)
        return sp.csr_array(sp.diags_array(self.row) @ a @ sp.diags_array(self.col))

    def with_propagation(
        self, normalization: Normalization = "sym", *, self_loops: bool = True
    ) -> Graph:
        """The same graph with another P; topology, features and labels are shared."""
        make: Callable[..., Graph] = Graph
        if self_loops and not self.self_loops:
            make = Graph.from_csr  # drops a stored diagonal
        options = self.node_data | self.options
        options |= {"normalization": normalization, "self_loops": self_loops}
        return make(self.indptr, self.indices, self.values, **options)

    def with_split(self, split: Any) -> Graph:
        """The same graph with another split; everything else is shared."""
        options = self.node_data | self.options | {"split": split, "scaling": (self.row, self.col)}
        return Graph(self.indptr, self.indices, self.values, **options)

    def subgraph(self, nodes: Any) -> Graph:
        """The edges among ``nodes`` (distinct ids, or a mask), which are numbered in that order.

        Features, labels and split come along; P is made anew of the edges that are left. With the
        training nodes it is the inductive view of the graph: nothing else can be seen from there.
        """
        ids = _numpy(nodes)
        if ids.dtype.kind == "b" and ids.shape == (len(self),):
            ids = np.flatnonzero(ids)
        ids = _checked_ids("nodes", ids, len(self))
        if len(np.unique(ids)) < len(ids):
            raise SgcnError("nodes names a node twice, expected distinct ids")
        rows = {k: None if table is None else table[ids] for k, table in self.node_data.items()}
        matrix, weighted = self.adjacency()[ids][:, ids], self.values is not None
        return Graph.from_scipy(matrix, weighted=weighted, **self.options | rows)

    def _scaling(self) -> tuple[Array, Array]:
        if self.values is None:
            degrees = np.diff(self.indptr).astype(np.float64)
        else:
            degrees = csr.weighted_degrees(self.indptr, self.values)
            bad = (degrees > 0) & ~((degrees > 1e-38) & (degrees < 1e38))
            if bad.any():
                raise SgcnError(
                    f"the edge weights of node {np.argmax(bad)} sum to {degrees[bad][0]:g}, "
                    "expected 0 or a sum from 1e-38 to 1e38, which float32 can normalise"
                )
        degrees += self.self_loops
        inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
        if self.normalization == "row":
            return inverse.astype(np.float32), np.ones(len(degrees), np.float32)
        root = np.sqrt(inverse).astype(np.float32)
        return root, root

    def memo(self, key: Hashable, compute: Callable[[], T]) -> T:
        """``compute()`` once for this graph; what samplers derive from it lives here."""
        with self._lock:
            if key not in self._memo:
                self._memo[key] = compute()
            value: T = self._memo[key]
            return value

    # -- files --------------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a directory of ``.npy`` files and a JSON header, complete or not at all."""
        with store.Writer.new(Path(path), overwrite=overwrite) as files:
            self.write_rows(files)
            self.write_topology(files)

    def write_rows(self, files: store.Writer) -> None:
        """Features, labels and split: what a node has beside its edges."""
        for name, rows in self.node_data.items():
            if is_sparse(rows):
                for part in ("indptr", "indices", "data"):
                    files.write(f"x_{part}", getattr(rows, part))
                files.header["x_shape"] = list(rows.shape)
            else:
                files.write(name, rows)

    def write_topology(self, files: store.Writer) -> None:
        """Edges and P, and the header that goes with them."""
        for name in ("indptr", "indices", "values", "row", "col"):
            files.write(name, getattr(self, name))
        files.header.update(nodes=len(self), **self.options)

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False) -> Graph:
        """Map a saved graph into memory; ``verify`` also reads it all and checks the checksums."""
        path = Path(path)
        header, arrays = store.open_arrays(path, verify=verify)
        x = arrays.get("x")
        if "x_shape" in header:
            parts = (arrays["x_data"], arrays["x_indices"], arrays["x_indptr"])
            x = sp.csr_array(parts, shape=tuple(header["x_shape"]), copy=False)
        graph = cls(
            arrays["indptr"], arrays["indices"], arrays.get("values"),
            x=x, y=arrays.get("y"), split=arrays.get("split"),
            scaling=(arrays["row"], arrays["col"]), **{name: header[name] for name in _OPTIONS},
        )  # fmt: skip
        graph.path = path
        return graph


# -- checks -------------------------------------------------------------------------------------


def is_sparse(value: Any) -> bool:
    """Whether ``value`` is a scipy sparse array (without narrowing its type for the checker)."""
    return bool(sp.issparse(value))


def _numpy(value: Any) -> Array:
    """A numpy view of an array, list or torch tensor."""
    if hasattr(value, "detach"):
        try:
            value = value.detach().cpu().numpy()
        except (TypeError, RuntimeError):
            raise SgcnError(
                f"a tensor is {value.layout} of {value.dtype}, expected a dense one of a type that "
                "numpy has: pass to_dense() or float()"
            ) from None
    try:
        return np.asarray(value)
    except ValueError:  # rows of unequal length
        raise SgcnError(
            f"a {type(value).__name__} of {len(value)} rows is no array, expected rows of one "
            "length"
        ) from None


def _checked_ids(name: str, ids: Array, n: int) -> npt.NDArray[np.int32]:
    if ids.ndim != 1:
        raise SgcnError(f"{name} has shape {ids.shape}, expected a vector of node ids")
    if ids.dtype.kind not in "iu":
        if ids.size:
            raise SgcnError(f"{name} holds {ids.dtype} values, expected whole node ids")
        ids = ids.astype(np.int32)
    if n > np.iinfo(np.int32).max:
        raise SgcnError(f"the graph has {n} nodes, expected at most 2**31 - 1")
    if ids.size:
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= n:
            raise SgcnError(
                f"{name} holds node {low if low < 0 else high}, expected ids from 0 to {n - 1}"
            )
    return ids.astype(np.int32, copy=False)


def checked_weights(weights: Any, stored: int, before: int = 0) -> npt.NDArray[np.float32]:
    """Weights of ``stored`` edges, ``before`` of which came earlier, as float32."""
    weights = _numpy(weights)
    if weights.shape != (stored,):
        raise SgcnError(
            f"the edge weights have shape {weights.shape}, expected one for each of the {stored} "
            "edges"
        )
    if weights.dtype.kind not in "iufb":
        raise SgcnError(f"the edge weights are {weights.dtype}, expected numbers")
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
        single: npt.NDArray[np.float32] = weights.astype(np.float32, copy=False)
    bad = ~(single >= 0) | np.isinf(single)
    if bad.any():
        first = int(np.argmax(bad))
        raise SgcnError(
            f"edge {before + first} has weight {single[first]}, expected finite numbers >= 0"
        )
    return single


def _checked_rows(n: int, x: Any, y: Any, split: Any) -> tuple[Any, Any, Any]:
    if x is not None:
        x = sp.csr_array(x) if is_sparse(x) else _numpy(x)
    y = None if y is None else _numpy(y)
    if y is not None and y.ndim == 2 and y.shape[1] == 1 and y.dtype.kind in "iu" and y.max() > 1:
        y = y[:, 0]  # classes in a column
    if split is not None:
        # Reading all of what a saved graph maps would cost its opening.
        known = isinstance(getattr(split, "base", None), np.memmap)
        split = _numpy(split)
        if split.dtype == bool:
            raise SgcnError(
                "split is a mask of true and false, expected 0 (train), 1 (validation), 2 (test) "
                "or -1 (none) for each node: numpy.select([train_mask, val_mask, test_mask], "
                "[0, 1, 2], -1)"
            )
        if not known and not np.isin(split, (-1, 0, 1, 2)).all():
            raise SgcnError(
                "split holds values other than 0 (train), 1 (validation), 2 (test) and -1 (none), "
                "expected only these"
            )
        split = split.astype(np.int8, copy=False)
    for name, rows, most in (("x (features)", x, 2), ("y (labels)", y, 2), ("split", split, 1)):
        if rows is not None and (not 0 < rows.ndim <= most or rows.shape[0] != n):
            raise SgcnError(f"{name} has shape {rows.shape}, expected {n} rows, one for each node")
    return x, y, split


def _split_of(data: Any) -> Array | None:
    """0, 1, 2 from the train, validation and test masks of a PyG object."""
    masks = [getattr(data, name, None) for name in ("train_mask", "val_mask", "test_mask")]
    if all(mask is None for mask in masks):
        return None
    split = np.full(int(data.num_nodes), -1, np.int8)
    for part, mask in enumerate(masks):
        if mask is not None and _numpy(mask).ndim == 1:
            if len(mask) != len(split):
                raise SgcnError(
                    f"a mask has {len(mask)} entries, expected one for each of {len(split)} nodes"
                )
            split[_numpy(mask).astype(bool)] = part
    return split
