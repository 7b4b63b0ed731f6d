"""GraphSAGE's rule (eq:node_wise): a few neighbours of every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sgcn.block import Int32
from sgcn.graph import Graph
from sgcn.kernels import batches as kernels
from sgcn.samplers.base import (
    OneCallSampler,
    marks,
    row_targets,
    scratch,
    sizes_of_layers,
    sizes_option,
    weighting_option,
)


@dataclass(frozen=True)
class Neighbor(OneCallSampler):
    """M_ij = P_ij deg(i) / min(s, deg(i)) for s neighbours, uniform, without replacement.

    The node's own entry P_ii is not a neighbour: it is always kept, as it is.
    """

    name = "neighbor"
    summary = "GraphSAGE: s neighbours of every node, uniform, without replacement"

    sizes: int | tuple[int, ...] = sizes_option(5, "neighbours drawn for a node")
    weighting: str = weighting_option("unbiased")

    _kernel: ClassVar[Any] = staticmethod(kernels.neighbor_batch)

    def _draw(
        self, graph: Graph, seeds: Int32, layers: Sequence[int], streams: Any, depth: int
    ) -> Any:
        return self._kernel(
            graph.propagation,
            seeds,
            sizes_of_layers(self.sizes, layers, depth),
            streams,
            row_targets(graph, self.weighting),
            scratch.position(graph),
            marks(graph),
        )
