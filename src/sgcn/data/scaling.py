"""Features made ready for training: rows of length 1, or columns standardised by training nodes.

Without it columns of large numbers, or long bags of words, decide how weights and histories move.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from sgcn.chunks import chunks
from sgcn.errors import SgcnError
from sgcn.graph import Graph, is_sparse

#: What a configuration may ask for; `auto` is a choice among the others.
KINDS = ("auto", "raw", "unit", "standard")
_NARROW = 256  # columns: so many standardised ones are never a matter of memory
_FILLED = 0.1  # share of values that are stored: from there they are no bag of words


@dataclass(frozen=True, eq=False)
class Scaling:
    """``raw``: as they are; ``unit``: rows of length 1; ``standard``: (x - mean) / deviation."""

    kind: str = "raw"
    mean: npt.NDArray[np.float32] | None = None
    deviation: npt.NDArray[np.float32] | None = None

    @classmethod
    def of(cls, graph: Graph, kind: str = "auto") -> Self:
        """What ``kind`` means for ``graph``; `standard` looks at its training rows alone."""
        if kind == "auto":
            kind = _usual(graph.x)
        if kind != "standard" or graph.x is None:
            return cls(kind)
        rows = slice(None) if graph.split is None else np.flatnonzero(np.asarray(graph.split) == 0)
        x = graph.x[rows]
        if x.shape[0] == 0:
            raise SgcnError("the graph has no training nodes, expected some to standardise by")
        total, squares = np.zeros((2, x.shape[1]))
        for part in chunks(*x.shape):
            values = _dense(x[part]).astype(np.float64)
            total += values.sum(0)
            squares += (values**2).sum(0)
        mean = total / x.shape[0]
        deviation = np.sqrt(np.maximum(squares / x.shape[0] - mean**2, 0.0))
        deviation[deviation <= 1e-6 * np.maximum(np.abs(mean), 1.0)] = 1.0  # one value, no scale
        return cls(kind, mean.astype(np.float32), deviation.astype(np.float32))

    def apply(self, graph: Graph) -> Graph:
        """``graph`` with its features scaled; rows of zeros have no length and stay."""
        if graph.x is None or self.kind == "raw":
            return graph
        made = copy(graph)
        made.x = _unit_rows(graph.x) if self.kind == "unit" else self._standardised(graph.x)
        return made

    def _standardised(self, x: Any) -> Any:
        assert self.mean is not None
        assert self.deviation is not None
        if x.shape[1] != len(self.mean):
            raise SgcnError(
                f"the graph has {x.shape[1]} features, expected {len(self.mean)}, as in training"
            )
        made = np.empty(x.shape, np.float32 if is_sparse(x) else _real(x.dtype))
        for part in chunks(*x.shape):
            made[part] = (_dense(x[part]) - self.mean) / self.deviation
        return made

    def tensors(self) -> dict[str, Any]:
        """What a run keeps of it, beside the kind."""
        kept = {"mean": self.mean, "deviation": self.deviation}
        return {name: array for name, array in kept.items() if array is not None}

    @classmethod
    def from_tensors(cls, kind: str, tensors: Mapping[str, Any]) -> Self:
        return cls(kind, tensors["mean"], tensors["deviation"])


def _usual(x: Any) -> str:
    """Bags of words are wide and nearly empty: rows of length 1. All else is standardised."""
    if is_sparse(x) and x.shape[1] > _NARROW and x.nnz < _FILLED * x.shape[0] * x.shape[1]:
        return "unit"
    return "standard"


def _dense(rows: Any) -> npt.NDArray[Any]:
    return rows.toarray() if is_sparse(rows) else np.asarray(rows)


def _unit_rows(x: Any) -> Any:
    if is_sparse(x):
        squares = sp.csr_array((x.data.astype(np.float64) ** 2, x.indices, x.indptr), x.shape)
        factor = np.repeat(_inverse_root(squares.sum(1)), np.diff(x.indptr))
        return sp.csr_array(
            (x.data * factor.astype(np.float32), x.indices, x.indptr), shape=x.shape
        )
    x = x.astype(_real(x.dtype), copy=False)
    squares = np.einsum("ij,ij->i", x, x, dtype=np.float64)
    return x * _inverse_root(squares).astype(_real(x.dtype))[:, None]


def _real(dtype: Any) -> Any:
    """The type of scaled features: whole numbers become real ones."""
    return dtype if dtype.kind == "f" else np.float32


def _inverse_root(squares: Any) -> Any:
    """1 / sqrt, and 0 for 0."""
    return np.divide(1.0, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)
