"""What a layer is, and the adapter for modules that are none."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from sgcn.compute.operators import Operator
from sgcn.errors import SgcnError


class Layer(nn.Module, ABC):
    """``forward(block, h) -> z`` for the destinations of an `Operator`, h the sources' rows.

    A layer declares what it can do, as class or instance attributes; by default nothing special.
    """

    #: The width of z.
    width: int
    #: It takes `LazyRows`, rows not gathered yet; other layers get a tensor.
    lazy_rows: bool = False
    #: Z is linear in h for given parameters (but for a bias), and in the parameters for a given h:
    #: those of zero give zero.
    linear: bool = False
    #: Of its neighbours it reads M h alone, h its input as it is: the sum may come from elsewhere.
    sums_inputs: bool = False
    #: It reads the destinations' own rows of h, so they must be among the sources.
    reads_own: bool = True
    #: So many of the last columns of z are rows of earlier layers, handed on as they are (`jump`).
    carried: int = 0

    @abstractmethod
    def forward(self, block: Operator, h: Any) -> Tensor: ...


class PlainModule(Layer):
    """Any module with ``forward(block, h)``: nothing is known about it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        taken, kind = inspect.signature(module.forward), type(module).__name__
        try:
            taken.bind(None, None)
        except TypeError:
            raise SgcnError(
                f"{kind} takes {taken}, expected a graph layer with forward(block, h): dense "
                "layers are the head, Model([layers], head)"
            ) from None
        if "edge_index" in taken.parameters:
            raise SgcnError(
                f"{kind} takes {taken}, expected forward(block, h), where block.aggregate(h) sums "
                "over the edges, or a MessagePassing of PyG"
            )
        self.reads_own = False  # if it does, the operator refuses what is missing

    def forward(self, block: Operator, h: Tensor) -> Tensor:
        z: Tensor = self.module(block, h)
        if z.shape[0] != block.shape[0]:
            raise SgcnError(
                f"{type(self.module).__name__} gave {z.shape[0]} rows, expected {block.shape[0]}, "
                "one for each destination: block.own(h) are their rows of h"
            )
        return z


class MessagePassing(Layer):
    """A convolution of PyG, given the edges of the block and the weights of M.

    M has self-loops and is normalised already, so the convolution must do neither.
    """

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv
        self.takes_weights = "edge_weight" in inspect.signature(conv.forward).parameters
        # SAGEConv, which takes no weights, calls `normalize` what it does with its output.
        for name in ("normalize", "add_self_loops") if self.takes_weights else ("add_self_loops",):
            if getattr(conv, name, False) is True:
                raise SgcnError(
                    f"{type(conv).__name__} has {name}=True, but the blocks have self-loops and "
                    f"normalised weights: make it with {name}=False"
                )

    def forward(self, block: Operator, h: Tensor) -> Tensor:
        # The edges of a square matrix over the sources: what every convolution can take.
        indptr, indices, weights = block.csr()
        own = block.own_index
        rows = torch.arange(block.shape[0]) if own is None else own
        edges = torch.stack([indices.long(), rows.long().repeat_interleave(indptr.diff())])
        z: Tensor = self.conv(h, edges, weights) if self.takes_weights else self.conv(h, edges)
        return z if own is None else z.index_select(0, own)


def as_layer(module: nn.Module) -> Layer:
    """``module`` itself if it is a layer, else the adapter that makes it one."""
    if isinstance(module, Layer):
        return module
    if hasattr(module, "propagate") and hasattr(module, "message"):
        return MessagePassing(module)
    return PlainModule(module)
