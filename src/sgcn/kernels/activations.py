"""ELU. torch's takes four times as long."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.extending import intrinsic

from sgcn.kernels.memory import index
from sgcn.kernels.threads import parallel

_PIECE = 1 << 14  # numbers that a thread takes at a time
_LOWEST = np.float32(-87.0)  # exp of less is no normal float32
_LOG2E = np.float32(1.44269504)
_ROUND = np.float32(3 << 22)  # added to a small number it leaves no digit behind the point
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
#: (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2: the polynomial through its values at the six
#: Chebyshev nodes of a range 1 % larger.
_TERMS = tuple(
    np.float32(c)
    for c in (0.500000001, 0.166666667, 0.0416664568, 0.00833331002, 0.00139345419, 0.000198919813)
)


def _power_of_two(typing: Any, shifted: Any) -> Any:
    """2^n of n + `_ROUND`: the last bits of that number are n."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.bitcast(args[0], word)
        return builder.bitcast(builder.shl(builder.add(bits, word(127)), word(23)), ir.FloatType())

    return types.float32(types.float32), generate


_scale_of: Any = intrinsic(_power_of_two)


@njit(inline="always")
def _below_zero(z: Any) -> Any:
    """exp(z) - 1 for z <= 0, to one unit in the last place; NaN stays NaN."""
    z = _LOWEST if z < _LOWEST else z
    shifted = z * _LOG2E + _ROUND
    n = shifted - _ROUND
    r = (z - n * _LN2_HIGH) - n * _LN2_LOW
    a, b, c, d, e, f = _TERMS
    q = ((((f * r + e) * r + d) * r + c) * r + b) * r + a
    scale = _scale_of(shifted)
    # exp(z) = 2^n (1 + r + q r^2), and 2^n - 1 is exact where it matters.
    return scale * (q * r * r + r) + (scale - np.float32(1.0))


@parallel
def elu(z: Any, out: Any) -> None:
    """out = z where it is positive, exp(z) - 1 elsewhere."""
    source, target = z.reshape(-1), out.reshape(-1)
    for piece in prange((len(source) + _PIECE - 1) // _PIECE):
        for k in range(piece * _PIECE, min((piece + 1) * _PIECE, len(source))):
            value = source[index(k)]
            below = _below_zero(value)
            target[index(k)] = value if value > np.float32(0.0) else below
