"""Plain NumPy twins of the kernels: slow, obvious, and what the tests hold the kernels against.

A twin has the name and the arguments of its kernel, but for three things: scratch arrays and
tables derived from the graph are left out, and what a kernel changes in place is returned. It reads
the same random streams, so integers agree to the bit; it computes weights in float64 and rounds
once, so those agree to a few units in the last place of float32.
"""

from twins import (
    activations,
    blocks,
    csr,
    describe,
    dropout,
    features,
    names,
    random,
    spmm,
    subgraphs,
    synthetic,
    text,
    words,
)

__all__ = [
    "activations",
    "blocks",
    "csr",
    "describe",
    "dropout",
    "features",
    "names",
    "random",
    "spmm",
    "subgraphs",
    "synthetic",
    "text",
    "words",
]
