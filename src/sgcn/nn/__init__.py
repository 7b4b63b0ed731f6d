"""Models: a stack of layers with an activation between them and a dense head on top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from sgcn.compute.buffers import elu
from sgcn.compute.operators import Operator
from sgcn.errors import SgcnError
from sgcn.nn.layers import Attention, Dense, GraphConv, Input, Isomorphism, Residual
from sgcn.options import nearest
from sgcn.rows import Rows

#: Layer kinds by name: (input width, output width, bias=) -> layer with a ``width``.
LAYERS: dict[str, Callable[..., nn.Module]] = {
    "mean": GraphConv,
    "concat": partial(GraphConv, aggregation="concat"),
    "attention": Attention,
    "gin": Isomorphism,
    "residual": Residual,
}

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": elu,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "identity": lambda z: z,
}


class Model(nn.Module):
    """Z^l = layer_l(block_l, H^(l-1)), H^l = act(Z^l), logits = head(H^L), or Z^L without a head.

    ``layers`` are any modules with ``forward(block, h) -> z``. Dropout on the layers' inputs is
    applied by whoever runs the model, so that two passes of one step can share a mask.
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        head: nn.Module | None = None,
        *,
        activation: str = "elu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not layers:
            raise SgcnError("the model has no graph layers, expected at least one")
        if activation not in ACTIVATIONS:
            raise SgcnError(
                f"activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}"
                f"{nearest(activation, ACTIVATIONS)}"
            )
        if not 0.0 <= dropout < 1.0:
            raise SgcnError(f"dropout is {dropout}, expected a number from 0 to below 1")
        self.layers = nn.ModuleList(layers)
        self.bare = head is None  # the last layer gives the logits, and no activation follows it
        self.head = head if head is not None else nn.Identity()
        self.activation = activation
        self.dropout = dropout
        for name, module in self.named_modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                raise SgcnError(
                    f"layer {name} is a batch-norm, whose statistics mean nothing beside histories "
                    "of other batches: use nn.LayerNorm"
                )

    @property
    def depth(self) -> int:
        return len(self.layers)

    def act(self, z: Tensor, level: int) -> Tensor:
        """H of layer ``level`` (0 is the first) from its Z."""
        last = self.bare and level == self.depth - 1
        return z if last else ACTIVATIONS[self.activation](z)

    def forward(self, blocks: Sequence[Operator], x: Input) -> Tensor:
        """Logits of the last block's destinations, without dropout."""
        h: Input = x
        for level, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            h = self.act(layer(block, layer_input(layer, h)), level)
        logits: Tensor = self.head(h)
        return logits


def layer_input(layer: nn.Module, h: Input) -> Input:
    """``h`` as ``layer`` can take it."""
    if isinstance(h, Rows) and not getattr(layer, "lazy", False):
        return h.dense()
    return h


def make_model(
    features: int,
    classes: int,
    *,
    layer: str = "mean",
    widths: int | Sequence[int] = 256,
    layers: int = 2,
    activation: str = "elu",
    dropout: float = 0.0,
    bias: bool = False,
    head: bool = True,
    seed: int = 0,
) -> Model:
    """The paper's model by default: 2 graph layers of width 256 with ELU and a dense head.

    Without ``head`` the last graph layer gives the logits, as in the first GCNs; its entry of
    ``widths`` is then not used.
    """
    if layer not in LAYERS:
        raise SgcnError(
            f"layer is {layer!r}, expected one of {', '.join(LAYERS)}{nearest(layer, LAYERS)}"
        )
    sizes = [widths] * layers if isinstance(widths, int) else list(widths)
    if not sizes or min(sizes) < 1:
        raise SgcnError(f"widths are {sizes}, expected one whole number >= 1 for each layer")
    if not head:
        sizes[-1] = classes
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        stack, width = [], features
        for size in sizes:
            stack.append(LAYERS[layer](width, size, bias=bias))
            # A Module types its attributes as tensors or modules; a width is a plain int.
            width = int(stack[-1].width)  # type: ignore[arg-type]
        dense = Dense(width, classes) if head else None
    if width != classes and not head:
        raise SgcnError(
            f"the last {layer} layer gives {width} numbers for {classes} classes, expected one "
            "each: keep the head (head=True)"
        )
    return Model(stack, dense, activation=activation, dropout=dropout)


__all__ = [
    "ACTIVATIONS",
    "LAYERS",
    "Attention",
    "GraphConv",
    "Isomorphism",
    "Model",
    "Residual",
    "layer_input",
    "make_model",
]
