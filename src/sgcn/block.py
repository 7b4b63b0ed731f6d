"""What a sampler returns: blocks, and the batch they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, repr=False)
class Block:
    """A sparse |dst| x |src| matrix M standing for P[dst, src], importance weights folded in.

    ``indices`` point into ``src``; ``dst_in_src[k]`` is where ``dst[k]`` stands among the sources,
    or -1 where it is not one of them. Both id lists are free of duplicates.
    """

    indptr: Int64
    indices: Int32
    weights: Float32
    src: Int32
    dst: Int32
    dst_in_src: Int32

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.dst), len(self.src)

    @property
    def edges(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Block({self.shape[0]} x {self.shape[1]}, {self.edges} edges)"


@dataclass(frozen=True, slots=True, repr=False)
class Batch:
    """Blocks of layers 1..L, input side first: ``blocks[l].dst`` is ``blocks[l + 1].src``.

    The batch loss is ``sum_k loss_weights[k] * loss(dst[k])`` over the last block's destinations;
    its expectation is the mean loss over the training nodes. ``exact`` holds, for samplers that
    read histories (`vrgcn`), the unsampled rows P[dst, :] of every layer. ``version`` is that of
    the sampler's state that drew it; 0 for samplers that do not learn.
    """

    blocks: tuple[Block, ...]
    loss_weights: Float32
    exact: tuple[Block, ...] = ()
    version: int = 0

    @property
    def nodes(self) -> Int32:
        """The nodes whose outputs the batch computes."""
        return self.blocks[-1].dst

    @property
    def inputs(self) -> Int32:
        """The nodes whose features the batch reads."""
        return self.blocks[0].src

    @property
    def edges(self) -> int:
        return sum(block.edges for block in self.blocks)

    def __repr__(self) -> str:
        return f"Batch({', '.join(map(repr, self.blocks))})"
