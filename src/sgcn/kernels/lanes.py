"""`LANES` neighbouring numbers of a row as one value of a kernel.

A sum over edges held in an array is loaded and stored again at every edge, because numba cannot
show that it shares no memory with what is added. Held in lanes it stays in the processor's
registers. Every operation rounds by itself, as NumPy's do: a kernel and its twin agree to the bit.

Tables may have 16 bits a number. numba has no types for them, so they come as whole numbers: uint16
for the bits of bfloat16, int16 for those of float16. What is loaded is float32, exactly.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

#: Numbers in one value: two cache lines, four registers of AVX2.
LANES = 32

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_FLOAT_BYTES = 4


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__(name=f"Lanes({LANES})")


_lanes = _Lanes()


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        # numba leaves it untyped.
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


def _address(value: Any, context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Of a ``value`` that begins at ``array[at]``."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), value.as_pointer())


def _alike(shape: Any, element: Any) -> Any:
    """As many of ``element`` as ``shape`` has: one, or a vector of them."""
    return ir.VectorType(element, LANES) if isinstance(shape, ir.VectorType) else element


def _read(shape: Any, context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """float32 numbers, from an array of them or of 16 bits each."""
    if kind.dtype == types.float32:
        address = _address(shape, context, builder, kind, array, at)
        return builder.load(address, align=_FLOAT_BYTES)
    element = ir.HalfType() if kind.dtype == types.int16 else ir.IntType(16)
    address = _address(_alike(shape, element), context, builder, kind, array, at)
    bits = builder.load(address, align=_FLOAT_BYTES // 2)
    if kind.dtype == types.int16:
        return builder.fpext(bits, shape)
    # bfloat16 is the upper half of float32.
    wide = _alike(shape, ir.IntType(32))
    upper = ir.Constant(wide, [16] * LANES if isinstance(wide, ir.VectorType) else 16)
    return builder.bitcast(builder.shl(builder.zext(bits, wide), upper), shape)


def _reader(shape: Any, result: Any) -> Any:
    def read(typing: Any, array: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _read(shape, context, builder, signature.args[0], *args)

        return result(array, types.intp), generate

    return intrinsic(read)


def _store(typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(_VECTOR, context, builder, signature.args[0], *args[:2])
        builder.store(args[2], address, align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


def _add(typing: Any, left: Any, right: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(*args)

    return _lanes(left, right), generate


def _scale(typing: Any, factor: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.IntType(32)
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, args[0], number(0))
        everywhere = ir.Constant(ir.VectorType(number, LANES), [0] * LANES)
        return builder.fmul(builder.shuffle_vector(first, nothing, everywhere), args[1])

    return _lanes(types.float32, lanes), generate


def _zeros(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return _lanes(), generate


#: ``zeros()``, ``load(array, at)``, ``store(array, at, lanes)``, ``add(left, right)`` and
#: ``scale(factor, lanes)``; arrays are flat, and ``array[at : at + LANES]`` must be inside.
#: ``number(array, at)`` is one of them.
zeros: Any = intrinsic(_zeros)
load: Any = _reader(_VECTOR, _lanes)
number: Any = _reader(_FLOAT, types.float32)
store: Any = intrinsic(_store)
add: Any = intrinsic(_add)
scale: Any = intrinsic(_scale)
