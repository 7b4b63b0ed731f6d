"""Models: a stack of layers with an activation between them and a dense head on top."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from sgcn.compute.buffers import elu
from sgcn.compute.gradients import Weights
from sgcn.compute.inputs import Input, as_tensor
from sgcn.compute.operators import Operator
from sgcn.errors import SgcnError
from sgcn.nn.base import Layer, MessagePassing, PlainModule, as_layer
from sgcn.nn.layers import (
    LAYERS,
    Attention,
    Carry,
    Dense,
    GraphConv,
    Isomorphism,
    LayerKind,
    Residual,
)
from sgcn.options import build, is_integer, known_name, plain

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": elu,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "identity": lambda z: z,
}
NORMS = ("none", "layer")
JUMPS = ("none", "cat", "max")


class Model(nn.Module):
    """Z^l = layer_l(block_l, H^(l-1)), H^l = act(Z^l), logits = head(H^L), or Z^L without a head.

    ``layers`` are any modules with ``forward(block, h) -> z``, or convolutions of PyG.
    Dropout on the layers' inputs is applied by whoever runs the model, so that two passes of one
    step can share a mask. ``norm`` and ``jump`` belong to `act`, so that Z is all that a history
    needs: with ``layer`` H is the activation of rows with mean 0 and variance 1, by a norm without
    weights; ``jump`` says what becomes of columns that layers hand on (`Carry`).
    """

    def __init__(
        self,
        layers: Sequence[nn.Module],
        head: nn.Module | None = None,
        *,
        activation: str = "elu",
        dropout: float = 0.0,
        norm: str = "none",
        jump: str = "none",
    ) -> None:
        super().__init__()
        if not layers:
            raise SgcnError("the model has no graph layers, expected at least one")
        self.activation = known_name("activation", activation, ACTIVATIONS)
        self.norm, self.jump = known_name("norm", norm, NORMS), known_name("jump", jump, JUMPS)
        if not 0.0 <= dropout < 1.0:
            raise SgcnError(f"dropout is {dropout}, expected a number from 0 to below 1")
        self.layers = nn.ModuleList(as_layer(layer) for layer in layers)
        self.bare = head is None  # the last layer gives the logits, and no activation follows it
        self.head = head if head is not None else nn.Identity()
        self.dropout = dropout
        self.output_mean: Tensor | None
        self.output_std: Tensor | None
        self.register_buffer("output_mean", None)
        self.register_buffer("output_std", None)
        for name, module in self.named_modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                raise SgcnError(
                    f"layer {name} is a batch-norm, whose statistics mean nothing beside histories "
                    "of other batches: use nn.LayerNorm"
                )
            drops = isinstance(module, nn.modules.dropout._DropoutNd)
            own = getattr(module, "p" if drops else "dropout", 0.0)
            if module is not self and isinstance(own, float) and own > 0:
                raise SgcnError(
                    f"layer {name} drops by itself ({own:g}), so that the passes of a step would "
                    f"have other masks: leave it out and take Model(..., dropout={own:g})"
                )
        if jump != "none" and not (self.layer(-1).carried or self.depth == 1):
            raise SgcnError(
                f"jump is {jump!r}, but the last layer hands no rows on: make the model by "
                "make_model, or its layers by Carry"
            )

    @property
    def depth(self) -> int:
        return len(self.layers)

    def layer(self, level: int) -> Layer:
        """Layer ``level``, 0 the first."""
        layer = self.layers[level]
        assert isinstance(layer, Layer)
        return layer

    def run_layer(self, level: int, weights: Weights, operator: Operator, h: Input) -> Tensor:
        """f_l(operator, h; weights), pure."""
        module, prefix = self.layer(level), f"layers.{level}."
        own = {k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix)}
        if not module.lazy_rows:
            h = as_tensor(h)
        z: Tensor = functional_call(module, own, (operator, h))
        return z

    def run_head(self, weights: Weights, h: Tensor) -> Tensor:
        """The logits, pure."""
        own = {k[5:]: v for k, v in weights.items() if k.startswith("head.")}
        logits: Tensor = functional_call(self.head, own, (h,))
        return self._scaled(logits)

    def scale_outputs(self, scale: tuple[Tensor, Tensor] | None) -> None:
        """From now on outputs are mean + std head(H), if there is a ``scale`` and was none before.

        So a model learns numbers of any size as if they had mean 0 and deviation 1, and its outputs
        are in their units. Both are saved with the weights.
        """
        if scale is not None and self.output_mean is None:
            self.output_mean, self.output_std = (part.clone() for part in scale)

    def _scaled(self, logits: Tensor) -> Tensor:
        if self.output_mean is None or self.output_std is None:
            return logits
        return self.output_mean + self.output_std * logits

    def act(self, z: Tensor, level: int) -> Tensor:
        """H of layer ``level`` (0 is the first) from its Z."""
        last, carried = level == self.depth - 1, self.layer(level).carried
        if self.bare and last:
            return z
        h = z[:, :-carried] if carried else z
        if self.norm == "layer":
            h = nn.functional.layer_norm(h, h.shape[1:])
        h = ACTIVATIONS[self.activation](h)
        if not carried:
            return h
        kept = z[:, -carried:]
        if self.jump == "max":
            kept = torch.maximum(h, kept)
        return kept if last and self.jump == "max" else torch.cat([h, kept], 1)

    def forward(self, blocks: Sequence[Operator], x: Input) -> Tensor:
        """Logits of the last block's destinations, without dropout."""
        h: Input = x
        for level, block in enumerate(blocks):
            layer = self.layer(level)
            h = self.act(layer(block, h if layer.lazy_rows else as_tensor(h)), level)
        return self._scaled(self.head(h))


def make_model(
    features: int,
    classes: int,
    *,
    layer: str = "mean",
    widths: int | Sequence[int] = 256,
    layers: int = 2,
    activation: str = "elu",
    dropout: float = 0.0,
    norm: str = "none",
    residual: bool = False,
    jump: str = "none",
    bias: bool = False,
    head: bool = True,
    seed: int = 0,
    **layer_options: Any,
) -> Model:
    """The paper's model by default: 2 graph layers of width 256 with ELU and a dense head.

    Without ``head`` the last graph layer gives the logits, as in the first GCNs; its entry of
    ``widths`` is then not used. ``residual`` adds a node's own row to what each layer makes of it,
    ``jump`` lets the head read all layers. ``layer_options`` are those of the kind of layer.
    """
    kind: LayerKind = build("layer", LAYERS, layer, layer_options)
    sizes = [plain(widths)] * layers if is_integer(widths) else [*plain(widths)]
    if not sizes or min(sizes) < 1:
        raise SgcnError(f"widths are {sizes}, expected one whole number >= 1 for each layer")
    if not head:
        sizes[-1] = classes
        if jump != "none":
            raise SgcnError(f"jump is {jump!r}, but no head reads the layers: keep it (head=True)")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        stack: list[Layer] = []
        width, carried = features, 0
        for size in sizes:
            made = kind.make(width, size, bias=bias)
            made = Residual(made, width) if residual else made
            if jump == "max" and carried not in (0, made.width):
                raise SgcnError(f"widths are {sizes}, expected one width: jump is 'max'")
            stack.append(Carry(made, width, carried) if carried else made)
            width = made.width
            if jump != "none":
                carried = width + (carried if jump == "cat" else 0)
        dense = Dense(carried if jump == "cat" else width, classes) if head else None
    if width != classes and not head:
        raise SgcnError(
            f"the last {layer} layer gives {width} numbers for {classes} classes, expected one "
            "each: keep the head (head=True)"
        )
    return Model(stack, dense, activation=activation, dropout=dropout, norm=norm, jump=jump)


__all__ = [
    "ACTIVATIONS",
    "JUMPS",
    "LAYERS",
    "NORMS",
    "Attention",
    "Carry",
    "GraphConv",
    "Isomorphism",
    "Layer",
    "LayerKind",
    "MessagePassing",
    "Model",
    "PlainModule",
    "Residual",
    "as_layer",
    "make_model",
]
