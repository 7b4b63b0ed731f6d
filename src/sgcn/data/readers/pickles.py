"""Pickles of plain arrays, read without running them.

A pickle is a program that calls what it names. `pickle`'s own reader follows it here, but every
name stands for a function of this file, or for nothing: they build arrays over the bytes of the
mapped file, the parts of scipy's CSR matrices and plain values. Any other name, call or state is
refused. It is the reader written in Python, since the one in C makes Python lists: lists of node
ids go to another file at four bytes an id.
"""

from __future__ import annotations

import io
import mmap
import pickle
import re
import warnings
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from sgcn.chunks import progress
from sgcn.data.readers.files import checked, unreadable
from sgcn.errors import SgcnError

#: Bytes from which a text is left in the file: keys and names are shorter, arrays mostly longer.
_LONG = 1 << 12
_TYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")


class Lists(NamedTuple):
    """The list of each of ``nodes``: ``lengths`` of ``values``, from ``starts`` on."""

    nodes: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32]


def read_pickle(path: Path, what: str) -> Any:
    """What a pickle of plain data holds: arrays, `Csr`, dicts, tuples, numbers, text."""
    return _read(path, what, io.BytesIO())[0]


def read_lists(path: Path, what: str, spool: Path) -> Lists:
    """The lists of whole numbers, 32 bits each, that a dict in a pickle has for whole numbers.

    They pass through the file ``spool``, which is mapped: one list may be that of many nodes, so
    ``lengths`` may add up to more than there is.
    """
    with spool.open("wb") as file:
        lists, ends = _read(path, what, file)
    values = np.memmap(spool, np.int32, "r") if ends[-1] else np.empty(0, np.int32)
    spool.unlink()
    plain = isinstance(lists, dict) and set(map(type, lists.values())) <= {_List}
    if not plain or not all(map(_is_whole, lists)):
        raise SgcnError(f"{path} holds something else, expected {what}")
    with unreadable(path, what):
        nodes = np.fromiter(lists, np.int64, len(lists))
    numbers = np.fromiter(lists.values(), np.int64, len(lists))
    starts = np.frombuffer(ends, np.int64)
    return Lists(nodes, starts[numbers], np.diff(starts)[numbers], values)


def _read(path: Path, what: str, spool: IO[bytes]) -> tuple[Any, array[int]]:
    """What the pickle holds, and where its lists begin and end in ``spool``."""
    with unreadable(checked(path, what), what), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd escapes in texts of protocol 0
        with path.open("rb") as file:
            # Not closed here: arrays are views of it, and the last one closes it.
            data = _Mapped(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            with progress(f"reading {path.name}", "B", len(data)) as step:
                reader = _Reader(data, spool, step)
                return _complete(reader.load()), reader.ends
        except _RefusedError as error:
            raise SgcnError(
                f"{path} is a pickle that {error}, expected {what}: pickles can run programs and "
                "this one was not run"
            ) from None
        except pickle.UnpicklingError as error:
            raise ValueError(str(error)) from None


class _RefusedError(Exception):
    """The pickle wants something that arrays do not need."""


class _List(int):
    """A list of ids, by its number; the ids are in a file."""

    __slots__ = ()


class _Mapped(mmap.mmap):
    """A file whose long texts are views of it, not copies."""

    def read(self, size: int | None = -1, /) -> Any:
        if size is None or size < _LONG:
            return super().read(size)
        start, end = self.tell(), min(self.tell() + size, len(self))
        self.seek(end)
        return memoryview(self)[start:end]


# -- what a name stands for ---------------------------------------------------------------------


class Csr:
    """The attributes of a CSR matrix, as they were in the file: not checked."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def build(self, state: dict[Any, Any]) -> None:
        self.state.update({_text(key): value for key, value in state.items()})


class _Dtype:
    def __init__(self, code: str | bytes, *_: Any) -> None:
        name = _text(code)
        if not _TYPE.fullmatch(name):
            raise _RefusedError(f"has an array of type {name[:20]!r}")
        self.value: np.dtype[Any] = np.dtype(name)

    def build(self, state: tuple[Any, ...]) -> None:
        _, order, *fields = state
        if _text(order) not in ("<", ">", "|", "=") or fields[:3] != [None] * 3:
            raise _RefusedError("has a type that is no plain number")
        self.value = self.value.newbyteorder(_text(order))  # type: ignore[arg-type]  # one of these


class _Array:
    """An array whose state comes later."""

    value: npt.NDArray[Any] | None = None

    def __init__(self, *_: Any) -> None:
        pass

    def build(self, state: tuple[Any, ...]) -> None:
        *_, shape, dtype, columns_first, content = state
        self.value = _over(content, dtype, shape, "F" if columns_first else "C")


def _over(content: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """An array over the bytes of the file."""
    if isinstance(content, str):  # Python 2 had one type for text and bytes
        content = content.encode("latin-1")
    sizes = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
    if not (isinstance(content, bytes | memoryview) and isinstance(dtype, _Dtype) and sizes):
        raise _RefusedError("has an array that is not made of bytes")
    flat = np.frombuffer(content, dtype.value) if content else np.empty(0, dtype.value)
    return flat.reshape(shape, order=order)


def _reconstructor(made: Any, *_: Any) -> Csr:
    if made is not Csr:
        raise _RefusedError("makes an object")
    return Csr()


def _encode(content: Any, encoding: Any) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise _RefusedError("encodes text in another way than latin-1")
    return bytes(content.encode("latin-1"))


def _nothing(*_: Any) -> Any:
    raise _RefusedError("makes an object")


#: By module and name, whatever version of Python, numpy or scipy wrote it. Nothing else that a
#: pickle can make here may be called.
_NAMES: dict[str, Callable[..., Any]] = {
    f"{module} {name}": meaning
    for meaning, modules, names in (
        (_Array, ("numpy.core.multiarray", "numpy._core.multiarray"), ("_reconstruct",)),
        (lambda dtype, content: _over(content, dtype, (), "C")[()],
         ("numpy.core.multiarray", "numpy._core.multiarray"), ("scalar",)),
        (_over, ("numpy.core.numeric", "numpy._core.numeric"), ("_frombuffer",)),
        (_nothing, ("numpy",), ("ndarray",)),
        (_Dtype, ("numpy",), ("dtype",)),
        (Csr, ("scipy.sparse.csr", "scipy.sparse._csr"), ("csr_matrix", "csr_array")),
        (lambda *_: {}, ("collections",), ("defaultdict",)),
        (_nothing, ("__builtin__", "builtins"), ("list", "dict", "int", "object")),
        (lambda: b"", ("__builtin__", "builtins"), ("bytes",)),
        (_reconstructor, ("copy_reg", "copyreg"), ("_reconstructor",)),
        (_encode, ("_codecs",), ("encode",)),
    )
    for module in modules
    for name in names
}


def _is_whole(value: Any) -> bool:
    return type(value) is int or isinstance(value, np.integer)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _complete(value: Any) -> Any:
    """The array of an `_Array`; anything else as it is, if it is not half made."""
    if isinstance(value, _Array) and value.value is not None:
        return value.value
    if isinstance(value, _Array | _Dtype) or callable(value):
        raise _RefusedError("holds something half made")
    return value


def array_of(value: Any) -> Any:
    """``value`` if it is an array, made or half made; else None."""
    value = value.value if isinstance(value, _Array) else value
    return value if isinstance(value, np.ndarray) else None


# -- the reader ---------------------------------------------------------------------------------


class _Reader(pickle._Unpickler):
    """Calls nothing but what is in `_NAMES`, and sets no state but that of what these made."""

    dispatch: ClassVar = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, data: _Mapped, spool: IO[bytes], step: Callable[[int], object]) -> None:
        super().__init__(data, encoding="bytes")
        self.data, self.spool, self.step = data, spool, step
        self.seen = 0
        self.ends = array("q", [0])  # of the lists, in ids

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if f"{module} {name}" not in _NAMES:
            raise _RefusedError(f"names {module}.{name}"[:66])
        return _NAMES[f"{module} {name}"]

    def load_reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if not callable(function) or not isinstance(arguments, tuple):
            raise _RefusedError("calls a value")
        self.append(function(*arguments))

    def load_newobj(self) -> None:
        arguments, kind = self.stack.pop(), self.stack.pop()
        if kind is not Csr or arguments != ():
            raise _RefusedError("makes an object")
        self.append(Csr())

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if not isinstance(made, Csr | _Dtype | _Array):
            raise _RefusedError("sets what cannot be set")
        made.build(state)

    def load_refused(self) -> None:
        raise _RefusedError("uses instructions that arrays do not need")

    def load_empty_list(self) -> None:
        self.ends.append(self.ends[-1])
        self.append(_List(len(self.ends) - 2))

    def load_list(self) -> None:
        items = self.pop_mark()
        self.load_empty_list()
        self.extend(items)

    def load_append(self) -> None:
        self.extend([self.stack.pop()])

    def load_appends(self) -> None:
        self.extend(self.pop_mark())

    def extend(self, items: list[Any]) -> None:
        """Write the ids of the list on the stack to the file; it must be the last one begun."""
        if not all(map(_is_whole, items)):
            raise ValueError("a list holds other things than whole numbers")
        if not isinstance(self.stack[-1], _List) or self.stack[-1] != len(self.ends) - 2:
            raise _RefusedError("adds to a list behind which another begins")
        self.spool.write(array("i", items))
        self.ends[-1] += len(items)
        self.step(self.data.tell() - self.seen)
        self.seen = self.data.tell()


_INSTRUCTIONS: dict[bytes, Any] = {
    getattr(pickle, name.upper()): getattr(_Reader, f"load_{name}")
    for name in ("reduce", "newobj", "build", "empty_list", "list", "append", "appends")
}
# Its own makes room for any size.
_INSTRUCTIONS[pickle.BYTEARRAY8] = _Reader.dispatch[pickle.BINBYTES8[0]]
_REFUSED = (
    pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.PERSID, pickle.BINPERSID, pickle.INST, pickle.OBJ,
    pickle.NEWOBJ_EX, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER, pickle.EMPTY_SET, pickle.ADDITEMS,
    pickle.FROZENSET,
)  # fmt: skip
for _code, _method in (_INSTRUCTIONS | dict.fromkeys(_REFUSED, _Reader.load_refused)).items():
    _Reader.dispatch[_code[0]] = _method
