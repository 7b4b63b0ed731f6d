"""The paper's algorithm pages in dense NumPy and float64: slow, plain, and nothing of `sgcn` in it.

Arrays have a row for every node of the graph; a block is a dense N x N matrix M whose rows outside
R are zero. Layers are ``mean`` (Z = M H W + b) or ``concat`` (Z = [H W, M H W] + b) with ELU, then
a dense head, softmax or sigmoid cross-entropy. Gradients are the formulas, not automatic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray
Weights = dict[str, Array]


def elu(z: Array) -> Array:
    return np.where(z > 0, z, np.expm1(np.minimum(z, 0.0)))


def elu_slope(z: Array) -> Array:
    return np.where(z > 0, 1.0, np.exp(np.minimum(z, 0.0)))


@dataclass
class Sample:
    """Blocks M of layers 1..L with their rows R (masks), and the loss weight of every node."""

    blocks: list[Array]
    rows: list[Array]
    loss_weights: Array


@dataclass
class Run:
    """A forward pass: H^0..H^L, Z^1..Z^L, and what each layer's W was multiplied with."""

    h: list[Array]
    z: list[Array]
    summed: list[Array]
    own: list[Array]
    weights: Weights


@dataclass
class Paper:
    """Algorithms SGCN+ and SGCN++ with their histories, for any forward and gradient rule."""

    P: Array
    x: Array
    y: Array
    depth: int
    concat: bool
    forward_rule: str
    gradient_rule: str
    with_d: bool
    Z: list[Array] = field(default_factory=list)  # the table of pre-activations
    D: dict[int, Array] = field(default_factory=dict)  # layer -> table of the gradient by H^layer
    G: Weights = field(default_factory=dict)
    G_snapshot: Weights = field(default_factory=dict)
    previous: Weights = field(default_factory=dict)
    anchor: Weights = field(default_factory=dict)

    # -- one layer --------------------------------------------------------------------------

    def f(self, M: Array, H: Array, weights: Weights, layer: int) -> Array:
        W, b = weights[f"layers.{layer}.weight"], weights[f"layers.{layer}.bias"]
        mixed = M @ H @ W
        return (np.concatenate([H @ W, mixed], 1) if self.concat else mixed) + b

    def forward(self, sample: Sample, weights: Weights, rule: str) -> Run:
        run = Run([self.x], [], [], [], weights)
        for layer, (M, rows) in enumerate(zip(sample.blocks, sample.rows, strict=True)):
            H = run.h[-1]
            old = self.x if layer == 0 or rule == "plain" else elu(self.Z[layer - 1])
            Z, summed, own = self.f(M, H, weights, layer), M @ H, H
            if rule in ("recursive", "anchored"):
                past = self.previous if rule == "recursive" else self.anchor
                Z = self.Z[layer] + Z - self.f(M, old, past, layer)
            elif rule == "vrgcn" and layer == 0:
                Z, summed = self.f(self.P, H, weights, layer), self.P @ H
            elif rule == "vrgcn":
                Z = self.f(self.P, old, weights, layer) + Z - self.f(M, old, weights, layer)
                summed = self.P @ old + M @ (H - old)
            Z = np.where(rows[:, None], Z, 0.0)
            run.z.append(Z)
            run.h.append(elu(Z))
            run.summed.append(summed)
            run.own.append(own)
        return run

    # -- gradients --------------------------------------------------------------------------

    def loss_gradient(self, run: Run, loss_weights: Array) -> Array:
        """By the logits."""
        logits = run.h[-1] @ run.weights["head.weight"].T + run.weights["head.bias"]
        if self.y.ndim == 2:
            each = (1.0 / (1.0 + np.exp(-logits)) - self.y) / self.y.shape[1]
        else:
            shifted = np.exp(logits - logits.max(1, keepdims=True))
            each = shifted / shifted.sum(1, keepdims=True) - np.eye(logits.shape[1])[self.y]
        return loss_weights[:, None] * each

    def head_gradient(self, run: Run, by_logits: Array) -> Weights:
        return {"head.weight": by_logits.T @ run.h[-1], "head.bias": by_logits.sum(0)}

    def layer_gradient(
        self, sample: Sample, run: Run, layer: int, D_above: Array
    ) -> tuple[Weights, Array]:
        """G of one layer and D, the gradient by its input, from D of the layer above."""
        W = run.weights[f"layers.{layer}.weight"]
        delta = D_above * elu_slope(run.z[layer]) * sample.rows[layer][:, None]
        through = delta[:, W.shape[1] :] if self.concat else delta
        G = run.summed[layer].T @ through
        D = sample.blocks[layer].T @ through @ W.T
        if self.concat:
            G = G + run.own[layer].T @ delta[:, : W.shape[1]]
            D = D + delta[:, : W.shape[1]] @ W.T
        return {f"layers.{layer}.weight": G, f"layers.{layer}.bias": delta.sum(0)}, D

    # -- steps ------------------------------------------------------------------------------

    def snapshot(self, weights: Weights, loss_weights: Array) -> Weights:
        everyone = np.ones(len(self.x), bool)
        sample = Sample([self.P] * self.depth, [everyone] * self.depth, loss_weights)
        run = self.forward(sample, weights, "plain")
        by_logits = self.loss_gradient(run, loss_weights)
        G = self.head_gradient(run, by_logits)
        D = by_logits @ weights["head.weight"]
        for layer in reversed(range(self.depth)):
            found, D = self.layer_gradient(sample, run, layer, D)
            G |= found
            self.D[layer] = D
        self.Z = run.z
        self.G = self.G_snapshot = G
        self.previous = self.anchor = weights
        return G

    def regular(self, weights: Weights, sample: Sample) -> Weights:
        live = self.forward(sample, weights, self.forward_rule)
        if self.gradient_rule == "plain":
            G = self.plain_gradient(sample, live)
        else:
            recursive = self.gradient_rule == "recursive"
            stale = self.forward(
                sample, self.previous if recursive else self.anchor, self.forward_rule
            )
            change = self.corrected_gradients(sample, live, stale, write=recursive)
            base = self.G if recursive else self.G_snapshot
            G = {name: base[name] + change[name] for name in base}
            self.G = G
        if self.forward_rule in ("recursive", "vrgcn"):
            for layer, rows in enumerate(sample.rows):
                self.Z[layer] = np.where(rows[:, None], live.z[layer], self.Z[layer])
        self.previous = weights
        return G

    def plain_gradient(self, sample: Sample, run: Run) -> Weights:
        by_logits = self.loss_gradient(run, sample.loss_weights)
        G = self.head_gradient(run, by_logits)
        D = by_logits @ run.weights["head.weight"]
        for layer in reversed(range(self.depth)):
            found, D = self.layer_gradient(sample, run, layer, D)
            G |= found
        return G

    def corrected_gradients(
        self, sample: Sample, live: Run, stale: Run, write: bool
    ) -> Weights:
        """g(live) - g(stale), layer by layer, with the table of D in between if there is one."""
        change: Weights = {}
        flowing = []
        for run, sign in ((live, 1.0), (stale, -1.0)):
            by_logits = self.loss_gradient(run, sample.loss_weights)
            for name, g in self.head_gradient(run, by_logits).items():
                change[name] = change.get(name, 0.0) + sign * g
            flowing.append(by_logits @ run.weights["head.weight"])
        for layer in reversed(range(self.depth)):
            found_live, D_live = self.layer_gradient(sample, live, layer, flowing[0])
            found_stale, D_stale = self.layer_gradient(sample, stale, layer, flowing[1])
            change |= {name: found_live[name] - found_stale[name] for name in found_live}
            flowing = [D_live, D_stale]
            if self.with_d and layer > 0:
                inputs = sample.rows[layer - 1][:, None]
                D = np.where(inputs, self.D[layer] + D_live - D_stale, 0.0)
                flowing = [D, np.where(inputs, self.D[layer], 0.0)]
                if write:
                    self.D[layer] = np.where(inputs, D, self.D[layer])
        return change
