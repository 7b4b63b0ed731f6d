"""`LANES` neighbouring numbers of a row as one value of a kernel.

A sum over edges held in an array is loaded and stored again at every edge, because numba cannot
show that it shares no memory with what is added. Held in lanes it stays in the processor's
registers. Every operation rounds by itself, as NumPy's do: a kernel and its twin agree to the bit.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

#: Numbers in one value: two cache lines, four registers of AVX2.
LANES = 32

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
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


def _address(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())


def _load(typing: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args)
        return builder.load(address, align=_FLOAT_BYTES)

    return _lanes(array, types.intp), generate


def _store(typing: Any, array: Any, at: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], *args[:2])
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
zeros: Any = intrinsic(_zeros)
load: Any = intrinsic(_load)
store: Any = intrinsic(_store)
add: Any = intrinsic(_add)
scale: Any = intrinsic(_scale)
