"""For kernels that wait for memory more than they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

#: How many rows or entries ahead of their use memory is asked for.
AHEAD = 8


@njit(inline="always")
def index(value: Any) -> Any:
    """``value`` as an index that is known not to be negative.

    numba looks at every signed index for Python's counting from the end; in a loop of six
    instructions that is a third of the time.
    """
    return np.uint64(value)


def _prefetch(typing: Any, array: Any, at: Any) -> Any:
    """numba's way to say ``llvm.prefetch(&array[at])``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [args[1]]), byte)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + 3 * [number])
        )
        read, keep, data_cache = number(0), number(3), number(1)
        builder.call(hint, [address, read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


#: ``prefetch(array, at)`` starts to load ``array[at]`` into the cache; it changes nothing, and
#: ``at`` may point anywhere. The rows of a sample are scattered over the graph, and the next one is
#: asked for only when the last is done: without the hint each waits for main memory in turn, with
#: it many are on their way.
prefetch: Any = intrinsic(_prefetch)
