"""VR-GCN: two neighbours for the live embeddings, all of them for the historical ones."""

from __future__ import annotations

from dataclasses import dataclass

from sgcn.kernels.batches import vrgcn_batch
from sgcn.samplers.base import sizes_option
from sgcn.samplers.neighbor import Neighbor


@dataclass(frozen=True)
class Vrgcn(Neighbor):
    """`neighbor` with s = 2; ``batch.exact`` has P[R, :] of every layer for the histories."""

    name = "vrgcn"
    summary = "VR-GCN: s neighbours of every node, and the exact block for its history"
    kernel = staticmethod(vrgcn_batch)

    sizes: int | tuple[int, ...] = sizes_option(2, "neighbours drawn for a node")
