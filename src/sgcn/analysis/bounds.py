"""The constants and bounds of the paper's appendix as arithmetic; docs/theory.md has the equations.

All norms are Frobenius norms, as in the paper. The slips of its proofs are repaired here, each at
its line. Where the paper squares sums and pays with factors 2, 3 and L + 1, root mean squares are
added: the triangle inequality, never larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

#: C_sigma and L_sigma of the smooth activations. relu has no L_sigma: its slope jumps.
SMOOTH: dict[str, tuple[float, float]] = {
    "elu": (1.0, 1.0),
    "tanh": (1.0, 4.0 / math.sqrt(27.0)),
    # The slope Phi + z phi is largest at sqrt(2), its own slope phi (2 - z^2) at 0.
    "gelu": (
        0.5 * (1.0 + math.erf(1.0)) + math.exp(-1.0) / math.sqrt(math.pi),
        2.0 / math.sqrt(2.0 * math.pi),
    ),
    "identity": (1.0, 0.0),
}


@dataclass(frozen=True)
class Norms:
    """What the assumptions of the paper bound."""

    depth: int
    C_sigma: float
    L_sigma: float
    C_loss: float
    L_loss: float
    B_LA: float  # of P, of every sampled M and of Pbar
    B_W: float
    B_X: float


@dataclass(frozen=True)
class Constants:
    """Lipschitz constants and sizes of a layer and of the network."""

    B_H: float
    B_D: float
    C_H: float
    C_W: float
    L_H: float
    L_W: float
    L_F: float

    @staticmethod
    def of(n: Norms, alpha: float = 1.0, beta: float = 1.0) -> Constants:
        """With histories, H may be larger by ``alpha`` and D by ``beta`` until a restart."""
        c_h = n.C_sigma * n.B_LA * n.B_W
        # D^(l) has passed L - l + 1 layers: the exponent L of the proof holds for all of them, the
        # L - l of the statement for none.
        b_h = alpha * max(1.0, power(c_h, n.depth)) * n.B_X
        b_d = beta * max(1.0, power(c_h, n.depth)) * n.C_loss
        c_w = n.C_sigma * n.B_LA * b_h
        l_h = max(
            n.B_LA * n.C_sigma * n.B_W,
            n.B_LA * n.B_LA * b_d * n.B_W * n.B_W * n.L_sigma,
            n.B_LA * b_d * n.C_sigma + n.B_LA * n.B_LA * b_d * n.B_W * n.L_sigma * b_h,
        )
        # By H: the statement has B_H^2 for B_H B_W, the proof B_LA^2 B_D^2 for B_LA B_D. By W: its
        # H_D is B_D.
        l_w = max(
            n.B_LA * b_h * n.C_sigma,
            n.B_LA * b_d * n.C_sigma + n.B_LA * n.B_LA * b_h * b_d * n.B_W * n.L_sigma,
            n.B_LA * n.B_LA * b_h * b_h * b_d * n.L_sigma,
        )
        u_c = power(max(1.0, c_h), n.depth) * c_w
        u_l = l_w * power(max(1.0, l_h), n.depth) * max(1.0, n.L_loss)
        # Of norms, as the proof ends; the statement has squares of the two U.
        l_f = n.depth * (n.depth * u_l * u_c + u_l)
        return Constants(b_h, b_d, c_h, c_w, l_h, l_w, l_f)


@dataclass(frozen=True)
class Distances:
    """Mean squares of what a sampler does, layer 1 first; M and P are N x N, rows kept are R_l."""

    noise: tuple[float, ...]  # E|M - Pbar|^2 over the rows kept
    bias: tuple[float, ...]  # E|Pbar - P|^2 over the rows kept
    bias_all: tuple[float, ...]  # |Pbar - P|^2 over all rows
    absent: tuple[float, ...]  # E|P|^2 over the rows not kept: there M is zero
    batch: float  # E of sum_i (w_i - 1/n)^2: the loss weights of a batch against those of the mean

    def kept(self, level: int) -> float:
        """Root of E|M - P|^2 over the rows kept."""
        return math.sqrt(self.noise[level] + self.bias[level])

    def all_rows(self, level: int) -> float:
        """Root of E|M - P|^2 over all rows."""
        return math.sqrt(self.noise[level] + self.bias[level] + self.absent[level])


def delta_n(n: Norms, s: Distances) -> float:
    """E|G~ - Gbar|^2, and so the variance of SGCN's gradient (lemma:upper-bound-sgcn-vars).

    The lemma leaves out that a batch weighs its nodes by 1 / B and no others: ``of_loss``.
    """
    c = Constants.of(n)
    layers = range(n.depth)
    forward = [n.B_W * c.B_H * math.sqrt(m) for m in s.noise]
    by_h = [c.B_D * n.C_sigma * n.B_W * s.kept(level) for level in layers]
    by_w = [c.B_D * n.C_sigma * c.B_H * s.kept(level) for level in layers]
    return _squared_error(n, c, forward, by_h, by_w, of_loss=n.C_loss * math.sqrt(s.batch))


def delta_b(n: Norms, s: Distances) -> float:
    """|Gbar - G|^2 (lemma:upper-bound-sgcn-bias). The paper takes Gbar for E G~; it is not."""
    c = Constants.of(n)
    return _squared_error(n, c, [n.B_W * c.B_H * math.sqrt(b) for b in s.bias_all])


def delta_plus(n: Norms, s: Distances, gap: int, alpha: float) -> float:
    """Delta_b+': |G^ - G|^2 <= eta^2 Delta_b+', G^ the exact gradient through SGCN+'s tables.

    lemma:upper-bound-sgcn-plus-bias, with M for the paper's P^(l) (its own would make it 0 for an
    unbiased sampler), and K^2 for K: the lemma needs every row refreshed at every step.
    """
    c = Constants.of(n, alpha)
    forward = [s.all_rows(level) * a for level, a in enumerate(_changes(n, c))]
    gradient = n.B_LA * c.B_H * c.B_D * n.C_sigma
    return gap * gap * n.depth * gradient * gradient * _squared_error(n, c, forward)


def delta_plus_plus(n: Norms, s: Distances, gap: int, alpha: float, beta: float) -> float:
    """Delta++': E|G~_t - G_t|^2 <= eta^2 Delta++' max|G~|^2 for SGCN++ with its table of D.

    lemma:upper-bound-sgcn-plus-plus-mse; the theorem drops its factor |G~|^2. K^2 as above.
    """
    c = Constants.of(n, alpha, beta)
    changes = _changes(n, c)
    by_h, by_w = [0.0] * n.depth, [0.0] * n.depth
    d = n.L_loss * n.C_sigma * n.B_LA * changes[-1]  # how much D^(L+1) changes for each |step|
    for level in reversed(range(n.depth)):
        last = level == n.depth - 1
        far = s.kept(level) + n.B_LA * math.sqrt(s.batch) if last else s.all_rows(level)
        h = n.C_sigma * n.B_LA * changes[level - 1] if level > 0 else 0.0
        q = n.C_sigma * d + c.B_D * n.L_sigma * n.B_LA * changes[level]
        passed = n.B_W * q + c.B_D * n.C_sigma
        by_h[level] = far * passed
        by_w[level] = far * (h * c.B_D * n.C_sigma + c.B_H * q)
        d = n.B_LA * passed
    forward = [s.all_rows(level) * a for level, a in enumerate(changes)]
    return gap * gap * _squared_error(n, c, forward, by_h, by_w)


def _changes(n: Norms, c: Constants) -> list[float]:
    """|H_t W_t - H_(t-1) W_(t-1)| of each layer for each |step|; features stay.

    The paper's induction (eq:upper-bound-sgcn-plus-bias-1-eq7) loses the factor of the layers.
    """
    changes = [n.B_X]
    for _ in range(n.depth - 1):
        changes.append(c.B_H + n.B_W * n.C_sigma * n.B_LA * changes[-1])
    return changes


def _squared_error(
    n: Norms, c: Constants, forward: list[float], by_h: Sequence[float] = (),
    by_w: Sequence[float] = (), of_loss: float = 0.0,
) -> float:  # fmt: skip
    """sum_l |G~^(l) - G^(l)|^2 from what each layer adds to the error of Z, D and G by itself.

    eq:decompose_bias_into_layers with L_H^(L - l) for L_H^(L - l - 1): layer l sees D^(L+1) through
    the L - l layers above it.
    """
    by_h, by_w = by_h or [0.0] * n.depth, by_w or [0.0] * n.depth
    z: list[float] = []
    for own in forward:
        z.append(own + (n.B_LA * n.B_W * n.C_sigma * z[-1] if z else 0.0))
    h = [0.0] + [n.C_sigma * far for far in z]
    d = n.L_loss * h[-1] + of_loss
    total = 0.0
    for level in reversed(range(n.depth)):
        bent = n.B_LA * c.B_D * n.L_sigma * z[level]
        g = c.L_W * d + c.B_H * bent + n.B_LA * c.B_D * n.C_sigma * h[level] + by_w[level]
        total += g * g
        d = c.L_H * d + n.B_W * bent + by_h[level]
    return total


# -- theorems -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Theorem:
    """The learning rate that a theorem asks for, and its bound on the mean |gradient|^2."""

    rate: float
    bound: float
    residual: float  # what is left of the bound after any number of steps


def theorems(
    c: Constants, steps: int, loss: float, n: float, b: float, plus: float, plus_plus: float
) -> list[Theorem]:
    """Theorems 1 to 3 after ``steps``, from a first ``loss`` above a least one of at least 0."""
    rate = min(1.0 / c.L_F, 1.0 / math.sqrt(steps))
    # 2 (..) / sqrt(T) of the theorems is 2 (..) / (rate T) where 1 / L_F is the smaller one.
    common = 2.0 * loss / (rate * steps) + rate * c.L_F * n
    slow = c.L_F + math.hypot(c.L_F, 2.0 * math.sqrt(plus_plus))
    return [
        Theorem(rate, common + b, b),
        Theorem(rate, common + rate * rate * plus, 0.0),
        Theorem(2.0 / slow, slow * loss / steps, 0.0),
    ]


def power(base: float, exponent: int) -> float:
    """base ** exponent, infinite where that is beyond floating point."""
    try:
        return base**exponent
    except OverflowError:
        return math.inf
