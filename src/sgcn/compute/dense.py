"""Dense products of float32 by torch, from the one of its libraries that uses the whole processor.

torch leaves them to MKL, which keeps half of every register of a Zen 5 idle; oneDNN takes half the
time there (`python -m benchmarks product`). torch asks it only while a setting allows rounding to
16 bits, which oneDNN does on processors with AMX. That it does not here is tried, not believed.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

import llvmlite.binding
import torch
from torch import Tensor

_backend: Any = torch.backends.mkldnn
_setting = _backend.matmul
#: Rows come in multiples of it: oneDNN compiles for every new shape, in a third of a millisecond.
_STEP = 64
_LEAST = 1 << 20  # multiplications: fewer are not worth the two calls


class _OneDnn:
    """The setting holds while any thread is inside; then it is what it was before."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ""

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._before, _setting.fp32_precision = _setting.fp32_precision, "bf16"

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _setting.fp32_precision = self._before


_onednn = _OneDnn()


@cache
def exact() -> bool:
    """Whether oneDNN keeps all bits of float32 although it need not."""
    a = torch.full((256, 256), 1 + 2**-23)
    with _onednn:
        return torch.equal(torch.mm(a, torch.eye(256)), a)


@cache
def preferred() -> bool:
    """Whether oneDNN is asked: on a Zen 5."""
    return llvmlite.binding.get_host_cpu_name() == "znver5" and exact()


def multiply(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """out = A B of float32 matrices on the CPU, of which no gradient is asked."""
    if a.numel() * b.shape[1] < _LEAST or not preferred():
        return torch.mm(a, b, out=out)
    # The number that differs from batch to batch is of A's rows, or in A^T G of what is summed.
    if a.stride(0) == 1:
        cut = a.shape[1] // _STEP * _STEP
        with _onednn:
            torch.mm(a[:, :cut], b[:cut], out=out)
        return out.addmm_(a[:, cut:], b[cut:])
    cut = a.shape[0] // _STEP * _STEP
    with _onednn:
        torch.mm(a[:cut], b, out=out[:cut])
    torch.mm(a[cut:], b, out=out[cut:])
    return out
