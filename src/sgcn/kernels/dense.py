"""Dense products, A B and A^T B, of float32.

torch leaves them to MKL, which keeps the widest registers of a processor that is not Intel's idle:
these take 0.4 to 0.7 of its time there (`python -m benchmarks product`).

Every thread has its rows of the result. For some hundred terms of its sums at a time it copies what
it needs of A and B side by side, and sums tiles of 6 rows and `TILE` columns, which stay in
registers for all of these terms. A number of the result is summed in the same order whatever the
threads, the number of rows and the place of its row.

A may be some rows of a table, in any order, and may have 16 bits a number (see `lanes`): they are
gathered and made float32 where they are copied anyway.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from sgcn.kernels.lanes import LANES, load, number, store
from sgcn.kernels.threads import parallel

# numba compiles for the processor that it runs on, unless a variable of the environment names one.
_TOLD = any(getattr(numba.config, name, None) for name in ("CPU_NAME", "CPU_FEATURES"))
#: Whether these are faster than torch's: on AMD's processors.
PREFERRED = not _TOLD and llvmlite.binding.get_host_cpu_name().startswith("znver")
_WIDE = not _TOLD and bool(llvmlite.binding.get_host_cpu_features().get("avx512f", False))
#: Columns of a tile. 6 x 64 are 24 of the 32 registers of AVX-512, 6 x 16 are 12 of the 16 of AVX2.
TILE = 64 if _WIDE else 16
_ROWS = 6
#: Terms of a sum, and rows and columns of the result, whose parts of A and B are copied at a time:
#: the copies have to fit into the second cache. A^T has its terms far apart, and fewer of them.
_DEPTH, _ROWS_AT_ONCE = 640, 96
_DEPTH_TURNED, _ROWS_AT_ONCE_TURNED = 256, 512
_COLUMNS = 256
_DIRECT = 128  # for at most so many rows B is read where it is

_FLOAT, _INT, _INDEX = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, TILE)


def _tile_of(rows: int) -> Any:
    """``tile(a, at, row, col, b, b_at, b_row, depth, c, c_at, c_row, more)`` for so many rows:

    C[i, :] = sum over p < depth of A[at + i row + p col] B[b_at + p b_row + :], or ``more``: added
    to what is there. All arrays are flat, and nothing is checked.
    """

    def typed(typing: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            a, b, c = (
                context.make_array(signature.args[k])(context, builder, args[k]).data
                for k in (0, 4, 8)
            )
            _, at, row, col, _, b_at, b_row, depth, _, c_at, c_row, more = args
            made: Any = cgutils.get_or_insert_function  # numba leaves it untyped
            multiply_add = made(
                builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{TILE}f32"
            )

            def place(array: Any, start: Any, step: Any, count: Any) -> Any:
                return builder.gep(array, [builder.add(start, builder.mul(step, count))])

            def line(array: Any, start: Any, step: Any, count: Any) -> Any:
                return builder.bitcast(place(array, start, step, count), _VECTOR.as_pointer())

            targets = [line(c, c_at, c_row, _INDEX(i)) for i in range(rows)]
            nothing = ir.Constant(_VECTOR, ir.Undefined)
            everywhere = ir.Constant(ir.VectorType(_INT, TILE), [0] * TILE)

            before, function = builder.block, builder.function
            test, term, last, add, put, end = (
                function.append_basic_block(name)
                for name in ("test", "term", "last", "add", "put", "end")
            )
            builder.branch(test)
            builder.position_at_end(test)
            p = builder.phi(_INDEX)
            p.add_incoming(_INDEX(0), before)
            sums = [builder.phi(_VECTOR) for _ in range(rows)]
            for total in sums:
                total.add_incoming(ir.Constant(_VECTOR, [0.0] * TILE), before)
            builder.cbranch(builder.icmp_signed("<", p, depth), term, last)

            builder.position_at_end(term)
            lanes = builder.load(line(b, b_at, b_row, p), align=4)
            start = builder.add(at, builder.mul(p, col))
            for i, total in enumerate(sums):
                factor = builder.load(place(a, start, row, _INDEX(i)), align=4)
                first = builder.insert_element(nothing, factor, _INT(0))
                factor = builder.shuffle_vector(first, nothing, everywhere)
                total.add_incoming(builder.call(multiply_add, [factor, lanes, total]), term)
            p.add_incoming(builder.add(p, _INDEX(1)), term)
            builder.branch(test)

            builder.position_at_end(last)
            builder.cbranch(more, add, put)
            builder.position_at_end(add)
            for target, total in zip(targets, sums, strict=True):
                known = builder.load(target, align=4)
                builder.store(builder.fadd(known, total), target, align=4)
            builder.branch(end)
            builder.position_at_end(put)
            for target, total in zip(targets, sums, strict=True):
                builder.store(total, target, align=4)
            builder.branch(end)
            builder.position_at_end(end)
            return context.get_dummy_value()

        a, b, c, whole = kinds[0], kinds[4], kinds[8], types.intp
        signature = types.void(
            a, whole, whole, whole, b, whole, whole, whole, c, whole, whole, types.boolean
        )
        return signature, generate

    def tile(
        typing: Any, a: Any, at: Any, row: Any, col: Any, b: Any, b_at: Any, b_row: Any,
        depth: Any, c: Any, c_at: Any, c_row: Any, more: Any,
    ) -> Any:  # fmt: skip
        return typed(typing, a, at, row, col, b, b_at, b_row, depth, c, c_at, c_row, more)

    return intrinsic(tile)


_whole_tile: Any = _tile_of(_ROWS)
_one_row: Any = _tile_of(1)


@njit(nogil=True, cache=True)
def _copy(source: Any, at: int, target: Any, to: int, count: int) -> None:
    if count < LANES:
        for f in range(count):
            target[to + f] = number(source, at + f)
        return
    for part in range(0, count, LANES):
        f = min(part, count - LANES)
        store(target, to + f, load(source, at + f))


@njit(nogil=True, cache=True)
def _take_b(
    b: Any, turned: bool, k0: int, k1: int, left: int, right: int, packed: Any, depth: int
) -> None:
    """B[k0:k1, left:right], the columns of a tile side by side, zeros in those that are missing."""
    stored, width = b.reshape(-1), b.shape[1]
    for first in range(left, right, TILE):
        columns = min(TILE, right - first)
        for p in range(k0, k1):
            to = (first - left) * depth + (p - k0) * TILE
            if turned:
                for f in range(columns):
                    packed[to + f] = stored[(first + f) * width + p]
            else:
                _copy(stored, p * width + first, packed, to, columns)
            packed[to + columns : to + TILE] = 0.0


@njit(nogil=True, cache=True)
def _take_a(
    a: Any, ids: Any, top: int, bottom: int, left: int, right: int, kept: Any, width: int
) -> None:
    """A[top:bottom, left:right] (rows ``ids`` of the table), ``width`` numbers a row."""
    stored = a.reshape(-1)
    for x in range(top, bottom):
        row = np.int64(x) if ids is None else np.int64(ids[x])
        _copy(stored, row * a.shape[1] + left, kept, (x - top) * width, right - left)


@njit(nogil=True, cache=True)
def _tiles(
    kept: Any, at: int, row: int, col: int, b: Any, b_at: int, b_row: int, depth: int,
    c: Any, c_at: int, c_row: int, height: int, more: bool,
) -> None:  # fmt: skip
    if height == _ROWS:
        _whole_tile(kept, at, row, col, b, b_at, b_row, depth, c, c_at, c_row, more)
        return
    for i in range(height):
        _one_row(kept, at + i * row, row, col, b, b_at, b_row, depth,
                 c, c_at + i * c_row, c_row, more)  # fmt: skip


@njit(nogil=True, cache=True)
def _some(
    a: Any, ids: Any, a_turned: bool, b: Any, b_turned: bool, out: Any,
    lo: int, hi: int, left: int, right: int,
) -> None:  # fmt: skip
    """The rows lo..hi and columns left..right of the result."""
    n = out.shape[1]
    k = b.shape[1] if b_turned else b.shape[0]
    target, stored = out.reshape(-1), b.reshape(-1)
    depth, high = _DEPTH, _ROWS_AT_ONCE
    row, col = depth, 1
    if a_turned:
        depth, high = _DEPTH_TURNED, _ROWS_AT_ONCE_TURNED
        row, col = 1, high
    direct = left  # where the columns of B end that are read in place
    if not b_turned and hi - lo <= _DIRECT:
        direct += (right - left) // TILE * TILE
    kept = np.empty(depth * high, np.float32)
    packed = np.empty(depth * (right - direct + TILE), np.float32)
    edge = np.empty(_ROWS * TILE, np.float32)
    for k0 in range(0, k, depth):
        k1, more = min(k0 + depth, k), k0 > 0
        _take_b(b, b_turned, k0, k1, direct, right, packed, depth)
        for top in range(lo, hi, high):
            bottom = min(top + high, hi)
            if a_turned:
                _take_a(a, ids, k0, k1, top, bottom, kept, high)
            else:
                _take_a(a, ids, top, bottom, k0, k1, kept, depth)
            for first in range(left, right, TILE):
                source, b_at, b_row = packed, (first - direct) * depth, TILE
                if first < direct:
                    source, b_at, b_row = stored, k0 * n + first, n
                for i in range(top, bottom, _ROWS):
                    at, height = (i - top) * row, min(_ROWS, bottom - i)
                    to = i * n + first
                    if first + TILE <= right:
                        _tiles(kept, at, row, col, source, b_at, b_row, k1 - k0,
                               target, to, n, height, more)  # fmt: skip
                        continue
                    _tiles(kept, at, row, col, source, b_at, b_row, k1 - k0,
                           edge, 0, TILE, height, False)  # fmt: skip
                    for x in range(height):
                        for f in range(right - first):
                            value, place = edge[x * TILE + f], to + x * n + f
                            target[place] = target[place] + value if more else value


@parallel
def product(
    a: Any, ids: Any, a_turned: bool, b: Any, b_turned: bool, out: Any, threads: int
) -> None:
    """out = A B, with A = a, a[ids] (unless ``ids`` is None) or the transposed of these, and B = b
    or its transposed. Arrays are contiguous, and a sum has a term at least."""
    tiles, columns = (len(out) + _ROWS - 1) // _ROWS, out.shape[1]
    for piece in prange(threads):
        lo = tiles * piece // threads * _ROWS
        hi = min(tiles * (piece + 1) // threads * _ROWS, len(out))
        if lo < hi:
            for left in range(0, columns, _COLUMNS):
                right = min(left + _COLUMNS, columns)
                _some(a, ids, a_turned, b, b_turned, out, lo, hi, left, right)
