"""Large buffers that are used again, and the dense operations of a layer that write to them.

New memory is paid for page by page, which costs more than to fill it: a step that takes the buffers
of the step before runs without that.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sgcn.compute import dense
from sgcn.kernels import activations, dropout


class Pool:
    """Buffers that are used again when nobody holds them any more.

    They are NumPy's, which asks for huge pages: reading them at random misses fewer translations.
    The buffers of a snapshot outlive the small ones of regular steps, for the next snapshot; all
    together stay near the most that was ever in use at one time.
    """

    slack = 1.25  # what is kept, over the most that was in use at one time
    least = 1 << 18  # numbers: smaller ones are not worth it

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[npt.NDArray[np.float32], weakref.ref[Any]]] = []
        self.made = 0  # buffers that had to be new
        self.most = 0  # numbers in use at one time

    def take(self, rows: int, columns: int) -> Tensor:
        """A float32 tensor to be filled; its memory is free again when the tensor is gone."""
        need = rows * columns
        if need <= self.least:
            return torch.from_numpy(np.empty((rows, columns), np.float32))
        with self._lock:
            idle = [k for k, (_, user) in enumerate(self._kept) if user() is None]
            fits = [k for k in idle if need <= len(self._kept[k][0]) <= 4 * need]
            if fits:
                buffer = self._kept.pop(min(fits, key=lambda k: len(self._kept[k][0])))[0]
                self._note_use(len(buffer))
            else:
                size = need + need // 4  # the next batch may be larger
                self._drop_idle(idle, self._note_use(size))
                buffer = np.empty(size, np.float32)
                self.made += 1
            # torch keeps this very object for as long as anything refers to the memory.
            view = buffer[:need].reshape(rows, columns)
            self._kept.append((buffer, weakref.ref(view)))
        return torch.from_numpy(view)

    def _note_use(self, size: int) -> int:
        """Numbers in use together with a buffer of ``size``."""
        used = size + sum(len(buffer) for buffer, user in self._kept if user() is not None)
        self.most = max(self.most, used)
        return used

    def _drop_idle(self, idle: list[int], used: int) -> None:
        """Let go of idle buffers, the oldest first, until what is left is not too much."""
        room = self.slack * self.most - used
        waiting = sum(len(self._kept[k][0]) for k in idle)
        dropped = []
        for k in idle:
            if waiting <= room:
                break
            waiting -= len(self._kept[k][0])
            dropped.append(k)
        for k in reversed(dropped):
            del self._kept[k]


pool = Pool()
empty = pool.take


def applied(function: Any, *inputs: Any) -> Tensor:
    """function.apply(inputs) of a `torch.autograd.Function`, which torch leaves untyped."""
    made: Tensor = function.apply(*inputs)
    return made


def _pooled(*tensors: Tensor | None) -> bool:
    """Whether the pool can hold what these make: matrices of float32 on the CPU."""
    return all(
        t is None or (t.device.type == "cpu" and t.dtype == torch.float32) for t in tensors
    ) and (tensors[0] is not None and tensors[0].ndim == 2)


def rows_of(table: Tensor, ids: Tensor) -> Tensor:
    """``table[ids]`` of a float32 matrix that needs no gradient."""
    if not _pooled(table):
        return table.index_select(0, ids)
    return torch.index_select(table, 0, ids, out=empty(len(ids), table.shape[1]))


def product(a: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A W, or A W + b."""
    if not _pooled(a, weight, bias):
        return a @ weight if bias is None else torch.addmm(bias, a, weight)
    return applied(_Product, a, weight, bias)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(a, weight)
        out = multiply(a, weight)
        return out if bias is None else out.add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        a, weight = ctx.saved_tensors
        by_a, by_weight, by_bias = ctx.needs_input_grad
        return (
            multiply(g, weight.T) if by_a else None,
            multiply(a.T, g) if by_weight else None,
            g.sum(0) if by_bias else None,
        )


def rows_product(table: Tensor, ids: Tensor, weight: Tensor) -> Tensor:
    """table[ids] W, of a table that needs no gradient; it may have 16 bits a number."""
    if table.dtype == torch.float32:
        return product(rows_of(table, ids), weight)
    return applied(_RowsProduct, weight, table, ids)


_ROWS_AT_ONCE = 1 << 13  # rows of 16-bit numbers that are float32 at one time


def _parts(rows: Tensor) -> tuple[Tensor, ...]:
    return torch.split(rows, _ROWS_AT_ONCE)


class _RowsProduct(torch.autograd.Function):
    """Some rows at a time become float32, forward and again backward: never all of them."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, table: Tensor, ids: Tensor) -> Tensor:
        ctx.save_for_backward(table, ids)
        out = empty(len(ids), weight.shape[1])
        for part, some in zip(_parts(out), _parts(ids), strict=True):
            dense.multiply(table.index_select(0, some).float(), weight, part)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        table, ids = ctx.saved_tensors
        by_weight = torch.zeros(table.shape[1], g.shape[1])
        for part, some in zip(_parts(g), _parts(ids), strict=True):
            by_weight += multiply(table.index_select(0, some).float().T, part)
        return by_weight, None, None


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """A B of float32 matrices on the CPU, of which no gradient is asked."""
    return dense.multiply(a, b, empty(a.shape[0], b.shape[1]))


def numbers(h: Tensor) -> npt.NDArray[Any]:
    """h for a kernel: float32, or the bits of its 16-bit numbers."""
    bits = {torch.bfloat16: torch.uint16, torch.float16: torch.int16}.get(h.dtype)
    h = h.detach().contiguous()
    table: npt.NDArray[Any] = (h if bits is None else h.view(bits)).numpy()
    return table


def elu(z: Tensor) -> Tensor:
    """z where it is positive, exp(z) - 1 elsewhere."""
    if not _pooled(z):
        return torch.nn.functional.elu(z)
    return applied(_Elu, z)


class _Elu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        h = empty(*z.shape)
        activations.elu(numbers(z), h.numpy())
        ctx.save_for_backward(h)
        return h

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (h,) = ctx.saved_tensors  # the slope is h + 1 where h is negative: z is not needed
        back = torch.ops.aten.elu_backward.grad_input
        made: Tensor = back(g, 1.0, 1.0, 1.0, True, h, grad_input=empty(*h.shape))
        return made


def dropped(h: Tensor, stream: np.uint64, share: float) -> Tensor:
    """Dropout on h: a function of ``stream``, the same for matrices of one shape."""
    if not _pooled(h):
        return h * dropped(torch.ones(h.shape, dtype=torch.float32), stream, share).to(h)
    return applied(_Dropped, h, stream, share)


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, stream: np.uint64, share: float) -> Tensor:
        ctx.stream, ctx.share = stream, share
        out = empty(*h.shape)
        dropout.drop(numbers(h), stream, share, out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        return _Dropped.forward(ctx, g, ctx.stream, ctx.share), None, None


def difference(a: Tensor, b: Tensor) -> Tensor:
    """A - B of matrices that need no gradient."""
    return torch.sub(a, b, out=empty(*a.shape)) if _pooled(a, b) else a - b


def distance(a: Tensor, b: Tensor) -> float:
    """|A - B|_F of matrices that need no gradient."""
    return float(difference(a, b).norm())


def shifted(out: Tensor, reference: Tensor | None, base: Tensor) -> Tensor:
    """base + (out - reference), in this order: where nothing has moved it is exactly ``base``."""
    if not _pooled(out, reference, base):
        return base + (out if reference is None else out - reference)
    return applied(_Shifted, out, reference, base)


class _Shifted(torch.autograd.Function):
    """The reference and the base are constants."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, reference: Tensor | None, base: Tensor) -> Tensor:
        if reference is None:
            return torch.add(out, base, out=empty(*out.shape))
        return torch.sub(out, reference, out=empty(*out.shape)).add_(base)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        return g, None, None
