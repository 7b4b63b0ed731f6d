"""Row stores: everything that has a row for each node, wherever the rows live.

Callers `read` and `write` rows by node and never ask where they are. A new kind of store is a file
here with the methods of `RowStore`.
"""

from sgcn.compute.inputs import LazyRows, RowStore, WritableStore
from sgcn.rows.dense import DenseRows, MappedRows
from sgcn.rows.history import History
from sgcn.rows.sources import allocate, store_of
from sgcn.rows.sparse import SparseRows

__all__ = [
    "DenseRows",
    "History",
    "LazyRows",
    "MappedRows",
    "RowStore",
    "SparseRows",
    "WritableStore",
    "allocate",
    "store_of",
]
