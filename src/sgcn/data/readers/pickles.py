"""Pickles of plain arrays, read without running them.

A pickle is a program. This one is not handed to `pickle`: its instructions are listed by
`pickletools`, and a small machine follows the few that build numbers, text, lists of node ids,
dicts, numpy arrays and scipy's CSR matrices. A name of a function is only a name here: nothing is
imported and nothing is called, so a name that stands for none of these ends the reading. An array
is a view of the bytes in the mapped file, so it cannot be larger than the file; lists go to another
file at four bytes an id.
"""

from __future__ import annotations

import codecs
import io
import mmap
import pickletools
import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from sgcn.chunks import progress
from sgcn.data.readers.files import checked, unreadable
from sgcn.errors import SgcnError

_INSTRUCTIONS = {instruction.code: instruction for instruction in pickletools.opcodes}
_VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}

#: What a name means here, whatever version of Python, numpy or scipy wrote it.
_MEANINGS = {
    f"{module} {name}": meaning
    for meaning, modules, names in (
        ("array", ("numpy.core.multiarray", "numpy._core.multiarray"), ("_reconstruct",)),
        ("scalar", ("numpy.core.multiarray", "numpy._core.multiarray"), ("scalar",)),
        ("buffer", ("numpy.core.numeric", "numpy._core.numeric"), ("_frombuffer",)),
        ("ndarray", ("numpy",), ("ndarray",)),
        ("dtype", ("numpy",), ("dtype",)),
        ("csr", ("scipy.sparse.csr", "scipy.sparse._csr"), ("csr_matrix", "csr_array")),
        ("dict", ("collections",), ("defaultdict",)),
        ("class", ("__builtin__", "builtins"), ("list", "dict", "int", "object")),
        ("bytes", ("__builtin__", "builtins"), ("bytes",)),
        ("reconstruct", ("copy_reg", "copyreg"), ("_reconstructor",)),
        ("encode", ("_codecs",), ("encode",)),
    )
    for module in modules
    for name in names
}
#: Bytes from which a text is left in the file: keys and names are shorter, arrays mostly longer.
_LONG = 1 << 12
#: Instructions between two looks at the bar.
_STEPS = 1 << 14
_TYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")


@dataclass(frozen=True)
class _Name:
    """A name in the file, by what it means."""

    meaning: str


@dataclass(eq=False)
class _Made:
    """An array, a type or a matrix whose state comes later (``BUILD``)."""

    meaning: str
    value: Any = None


@dataclass(eq=False)
class Csr:
    """The attributes of a CSR matrix, as they were in the file: not checked."""

    state: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lists:
    """The list of each of ``nodes``: ``lengths`` of ``values``, from ``starts`` on."""

    nodes: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32]


class _List(int):
    """A list of ids, by its number; the ids are in a file."""

    __slots__ = ()


class _RefusedError(ValueError):
    """The pickle wants something that arrays do not need."""


def read_pickle(path: Path, what: str) -> Any:
    """What a pickle of plain data holds: arrays, `Csr`, dicts, tuples, numbers, text."""
    return _run(path, what, io.BytesIO())[0]


def read_lists(path: Path, what: str, spool: Path) -> Lists:
    """The lists of whole numbers, 32 bits each, that a dict in a pickle has for whole numbers.

    They pass through the file ``spool``, which is mapped: one list may be that of many nodes, so
    ``lengths`` may add up to more than there is.
    """
    with spool.open("wb") as file:
        lists, ends = _run(path, what, file)
    values = np.empty(0, np.int32)
    if ends[-1]:
        values = np.memmap(spool, np.int32, "r")
    spool.unlink()
    if not isinstance(lists, dict) or not set(map(type, lists.values())) <= {_List}:
        raise SgcnError(f"{path} holds something else, expected {what}")
    numbers = np.fromiter(lists.values(), np.int64, len(lists))
    try:
        nodes = np.fromiter(lists, np.int64, len(lists))
    except (ValueError, TypeError, OverflowError):
        raise SgcnError(f"{path} holds something else, expected {what}") from None
    starts = np.frombuffer(ends, np.int64)
    return Lists(nodes, starts[numbers], np.diff(starts)[numbers], values)


def _run(path: Path, what: str, spool: IO[bytes]) -> tuple[Any, array[int]]:
    """What the pickle holds, and where its lists begin and end in ``spool``."""
    with unreadable(checked(path, what), what), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about odd escapes in texts of protocol 0
        try:
            with path.open("rb") as file:
                # Not closed here: arrays are views of it, and the last one closes it.
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            machine = _Machine(data, spool)
            return machine.run(f"reading {path.name}"), machine.ends
        except _RefusedError as error:
            raise SgcnError(
                f"{path} is a pickle that {error}, expected {what}: pickles can run programs and "
                "this one was not run"
            ) from None


class _Machine:
    """The stack of a pickle, without the power to call."""

    def __init__(self, data: mmap.mmap, spool: IO[bytes]) -> None:
        self.data, self.spool = data, spool
        self.stack: list[Any] = []
        self.marks: list[int] = []  # how high the stack was at each mark
        self.memo: list[Any] = []
        self.ends = array("q", [0])  # of the lists, in ids

    def run(self, what: str) -> Any:
        seen = 0
        with progress(what, "B", len(self.data)) as step:
            for count, (name, argument) in enumerate(_instructions(self.data)):
                if name == "STOP":
                    return _done(self.stack.pop())
                self._step(name, argument)
                if count % _STEPS == 0:
                    step(self.data.tell() - seen)
                    seen = self.data.tell()
        raise EOFError("it has no end")

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            stack.append(tuple(self._pop(_TUPLES[name])))
        elif name in ("PROTO", "FRAME"):
            pass
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._remember(argument)
        elif name == "MEMOIZE":
            self.memo.append(stack[-1])
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name == "GLOBAL":
            stack.append(_name(argument))
        elif name == "STACK_GLOBAL":
            stack.append(_name(" ".join(map(str, self._pop(2)))))
        elif name == "REDUCE":
            function, arguments = self._pop(2)
            stack.append(_called(function, arguments))
        elif name == "NEWOBJ":
            kind, arguments = self._pop(2)
            stack.append(_new(kind, arguments))
        elif name == "BUILD":
            made, state = self._pop(2)
            _build(made, state)
            stack.append(made)
        elif name == "POP":
            stack.pop()
        elif name == "DUP":
            stack.append(stack[-1])
        else:
            self._gather(name)

    def _gather(self, name: str) -> None:
        """Instructions about lists, dicts and the marks before their items."""
        stack = self.stack
        if name == "MARK":
            self.marks.append(len(stack))
        elif name == "POP_MARK":
            self._items()
        elif name == "EMPTY_LIST":
            stack.append(self._list(()))
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "LIST":
            stack.append(self._list(self._items()))
        elif name == "TUPLE":
            stack.append(tuple(self._items()))
        elif name == "DICT":
            stack.append(_paired(self._items()))
        elif name in ("APPEND", "APPENDS"):
            items = self._pop(1) if name == "APPEND" else self._items()
            self._extend(_expect(stack[-1], _List), items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._pop(2) if name == "SETITEM" else self._items()
            _expect(stack[-1], dict).update(_paired(items))
        else:
            raise _RefusedError(f"uses {name}")

    def _remember(self, number: int) -> None:
        """Numbers count from 0 or 1 on, with few gaps: a list is a fourth of a dict."""
        if not 0 <= number <= len(self.data):
            raise IndexError(f"its memo has the number {number}")
        self.memo += [None] * (number + 1 - len(self.memo))
        self.memo[number] = self.stack[-1]

    def _list(self, items: Iterable[Any]) -> _List:
        made = _List(len(self.ends) - 1)
        self.ends.append(self.ends[-1])
        self._extend(made, items)
        return made

    def _extend(self, made: _List, items: Iterable[Any]) -> None:
        ids = _ids(items)
        if made != len(self.ends) - 2:
            raise _RefusedError("adds to a list behind which another begins")
        self.spool.write(ids)
        self.ends[-1] += len(ids)

    def _pop(self, count: int) -> list[Any]:
        if count > len(self.stack):
            raise IndexError("its stack is empty")
        items = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return items

    def _items(self) -> list[Any]:
        """What is above the last mark."""
        return self._pop(max(0, len(self.stack) - self.marks.pop()))


def _instructions(file: mmap.mmap) -> Iterator[tuple[str, Any]]:
    """Name and argument of each instruction."""
    while code := file.read(1):
        instruction = _INSTRUCTIONS.get(code.decode("latin-1"))
        if instruction is None:
            raise ValueError(f"byte {file.tell() - 1} is no instruction")
        read: Any = _READERS.get(instruction.name) or (instruction.arg and instruction.arg.reader)
        yield instruction.name, read(file) if read else None


def _unquoted(file: Any) -> bytes:
    text = file.readline().rstrip(b"\n")
    if len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise ValueError("a text has no quotes")
    return codecs.escape_decode(text[1:-1])[0]


def _content(width: int) -> Callable[[mmap.mmap], bytes | memoryview]:
    """Reads as many bytes as the number of ``width`` bytes before them says."""

    def read(file: mmap.mmap) -> bytes | memoryview:
        size = int.from_bytes(file.read(width), "little")
        start = file.tell()
        if size > len(file) - start:
            raise EOFError(f"it ends in a text of {size} bytes")
        if size < _LONG:
            return file.read(size)
        file.seek(start + size)
        return memoryview(file)[start : start + size]

    return read


#: Where pickletools makes a copy, or takes only ASCII: Python 2 wrote any byte into its texts.
_READERS = {
    "STRING": _unquoted,
    "SHORT_BINSTRING": _content(1),
    "BINSTRING": _content(4),
    "BINBYTES": _content(4),
    "BINBYTES8": _content(8),
    "BYTEARRAY8": _content(8),
}


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _RefusedError(f"treats a {type(value).__name__} as a {kind.__name__}")
    return value


def _ids(items: Iterable[Any]) -> array[int]:
    """The items of a list, which are whole numbers of 32 bits."""
    if not all(type(item) is int or isinstance(item, np.integer) for item in items):
        raise ValueError("a list holds other things than whole numbers")
    return array("i", items)


def _paired(items: list[Any]) -> dict[Any, Any]:
    keys = items[::2]
    if not set(map(type, keys)) <= {int, str, bytes}:
        keys = [_key(key) for key in keys]
    return dict(zip(keys, items[1::2], strict=True))


def _key(key: Any) -> Any:
    key = _done(key)
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, _List) or not isinstance(key, int | str | bytes):
        raise _RefusedError(f"has a key of type {type(key).__name__}")
    return key


def _name(name: str) -> _Name:
    if name not in _MEANINGS:
        raise _RefusedError(f"names {name.replace(' ', '.')[:60]}")
    return _Name(_MEANINGS[name])


def _called(function: Any, arguments: Any) -> Any:
    """What calling the name would give, for the few calls that arrays are made of."""
    meaning = function.meaning if isinstance(function, _Name) else "a value"
    arguments = _expect(arguments, tuple)
    match meaning, arguments:
        case "array", (_Name("ndarray"), _, _):
            return _Made("array")
        case "scalar", (_Made("dtype", kind), content):
            return _array(kind, (), False, content)[()]
        case "buffer", (content, _Made("dtype", kind), shape, order):
            return _array(kind, shape, order == "F", content)
        case "dtype", (str() | bytes() as code, *_):
            return _Made("dtype", _dtype(code))
        case "dict", _:
            return {}
        case "reconstruct", (_Name("csr"), *_):
            return Csr()
        case "encode", (str() as content, "latin1" | "latin-1"):
            return content.encode("latin-1")
        case "bytes", ():
            return b""
        case "csr", ():
            return Csr()
    raise _RefusedError(f"calls {meaning}")


def _new(kind: Any, arguments: Any) -> Csr:
    if kind != _Name("csr") or arguments != ():
        raise _RefusedError("makes an object")
    return Csr()


def _build(made: Any, state: Any) -> None:
    """Give ``made`` the state that the file has for it."""
    match made, state:
        case Csr(), dict():
            made.state.update({str(_text(key)): value for key, value in state.items()})
        case _Made("dtype", np.dtype()), (_, str() | bytes() as order, None, None, None, *_):
            sign = _text(order)
            if sign not in ("<", ">", "|", "="):
                raise _RefusedError(f"has the byte order {sign[:8]!r}")
            made.value = made.value.newbyteorder(sign)
        case _Made("array", None), (*_, shape, _Made("dtype", kind), bool() | int() as order, data):
            made.value = _array(kind, shape, bool(order), data)
        case _:
            raise _RefusedError("sets what cannot be set")


def _dtype(code: str | bytes) -> np.dtype[Any]:
    text = _text(code)
    if not _TYPE.fullmatch(text):
        raise _RefusedError(f"has an array of type {text[:20]!r}")
    return np.dtype(text)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _array(kind: np.dtype[Any], shape: Any, columns_first: bool, content: Any) -> Any:
    """An array over the bytes of the file."""
    if isinstance(content, str):  # Python 2 had one type for text and bytes
        content = content.encode("latin-1")
    sizes = _expect(shape, tuple)
    if not isinstance(content, bytes | memoryview) or not all(type(s) is int for s in sizes):
        raise _RefusedError("has an array that is not made of bytes")
    flat = np.frombuffer(content, kind) if content else np.empty(0, kind)
    if min(sizes, default=0) < 0:
        raise _RefusedError(f"has an array of shape {sizes}")
    return flat.reshape(sizes, order="F" if columns_first else "C")


def _done(value: Any) -> Any:
    """The array of a `_Made`; anything else as it is."""
    if isinstance(value, _Made):
        if value.meaning != "array" or value.value is None:
            raise _RefusedError(f"holds a bare {value.meaning}")
        return value.value
    if isinstance(value, _Name):
        raise _RefusedError("holds a bare name")
    return value


def array_of(value: Any) -> Any:
    """``value`` if it is an array, made or half made; else None."""
    value = value.value if isinstance(value, _Made) else value
    return value if isinstance(value, np.ndarray) else None
