"""Twins of `kernels/text.py`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from twins.words import Array


def split_fields(
    data: Array, delimiter: int, comments: Array, columns: int
) -> tuple[list[tuple[int, list[bytes]]], int, int, int]:
    """Every row as (number of its line, fields), then the bytes used, the lines seen, and -1."""
    rows: list[tuple[int, list[bytes]]] = []
    used = 0
    whole = data.tobytes().split(b"\n")[:-1]
    for number, line in enumerate(whole):
        used += len(line) + 1
        text = line.strip(b" \t\r")
        if not text or text[0] in comments:
            continue
        fields = line.split(bytes([delimiter])) if delimiter else text.split()
        fields = [field.strip(b" \t\r") for field in fields]
        if len(fields) != columns:
            return rows, used, number + 1, len(fields)
        quoted = (len(f) >= 2 and f.startswith(b'"') and f.endswith(b'"') for f in fields)
        rows.append((number, [f[1:-1] if q else f for f, q in zip(fields, quoted, strict=True)]))
    return rows, used, len(whole), -1


def whole_numbers(fields: Sequence[bytes]) -> tuple[list[int], int]:
    """The numbers before the first field that is none, and its place or -1."""
    numbers: list[int] = []
    for place, field in enumerate(fields):
        digits = field[1:] if field[:1] in (b"+", b"-") else field
        if not digits.isdigit() or abs(int(field)) > 2**63 - 1:
            return numbers, place
        numbers.append(int(field))
    return numbers, -1


def real_numbers(fields: Sequence[bytes]) -> tuple[list[float], int]:
    """The numbers before the first field that is none, and its place or -1."""
    numbers: list[float] = []
    for place, field in enumerate(fields):
        try:
            if set(field) & set(b"_ \t\r\n\x0b\x0c"):
                return numbers, place
            numbers.append(float(field) if field else float("nan"))
        except ValueError:
            return numbers, place
    return numbers, -1


def json_items(data: Array, at: int) -> tuple[int, int]:
    """Strings are struck out, then whole inner lists and objects, innermost first."""
    text = data.tobytes()[at:].decode("latin-1")
    text = re.sub(r'"(?:[^"\\]|\\.)*("|\\?\Z)', lambda found: "x" * len(found[0]), text, flags=re.S)
    inner = 1
    while inner:
        text, inner = re.subn(r"[\[{][^\[\]{}]*[\]}]", lambda found: "x" * len(found[0]), text)
    ends = [k for k, letter in enumerate(text) if letter in "[]{}"]
    close = ends[0] if ends and text[ends[0]] in "]}" else -1
    comma = text.rfind(",", 0, ends[0] if ends else len(text))
    return (at + comma if comma >= 0 else -1), (at + close if close >= 0 else -1)
