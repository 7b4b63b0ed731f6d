"""Kernels that read text: the fields of a table, numbers in them, and where JSON can be cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_BLANK, _TAB, _RETURN, _LINE, _QUOTE = 32, 9, 13, 10, 34
_PLUS, _MINUS, _DOT, _ZERO = 43, 45, 46, 48
_COMMA, _ESCAPE, _OPEN, _CLOSE = 44, 92, 123, 125
_NAN, _INF, _INFINITY = (np.frombuffer(word, np.uint8) for word in (b"nan", b"inf", b"infinity"))
#: The powers of ten that float64 holds exactly.
_TENS = np.array([float(f"1e{k}") for k in range(23)])


@njit(nogil=True, cache=True)
def split_fields(
    data: Any, delimiter: int, comments: Any, starts: Any, ends: Any, lines: Any
) -> Any:
    """Where the fields of every complete line are; as many columns as ``starts`` and ``ends`` have.

    ``delimiter`` 0 is any run of blanks. Blanks and quotes around a field are no part of it; empty
    lines and those that start with a byte of ``comments`` are skipped. Gives the number of rows,
    the bytes used, the lines seen, and -1; or at the first line with another number of fields that
    number, which the last line seen then has. ``lines`` gets the number of every row's line.
    """
    columns = starts.shape[1]
    rows = used = seen = 0
    while used < len(data) and rows < len(starts):
        first = used  # byte of the line that is not blank
        while first < len(data) and _is_blank(data[first]):
            first += 1
        passed = first < len(data) and data[first] == _LINE
        for c in range(len(comments)):
            passed |= first < len(data) and data[first] == comments[c]
        at = used if delimiter != 0 and not passed else first
        fields = 0
        for k in range(at, len(data)):
            byte = data[k]
            ended = byte == _LINE
            if passed and not ended:
                continue
            if not (ended or byte == delimiter or (delimiter == 0 and _is_blank(byte))):
                continue
            if passed or (delimiter == 0 and k == at):  # no field, or a further blank of a run
                at = k + 1
            else:
                if fields < columns:
                    starts[rows, fields], ends[rows, fields] = _trimmed(data, at, k)
                fields += 1
                at = k + 1
            if ended:
                break
        else:
            break  # the last line is not complete
        used = at
        if not passed and fields != columns:
            return rows, used, seen + 1, fields
        if not passed:
            lines[rows] = seen
            rows += 1
        seen += 1
    return rows, used, seen, -1


@njit(nogil=True, cache=True)
def _trimmed(data: Any, start: int, end: int) -> Any:
    """A field without the blanks and quotes around it."""
    while start < end and _is_blank(data[start]):
        start += 1
    while end > start and _is_blank(data[end - 1]):
        end -= 1
    if end - start >= 2 and data[start] == _QUOTE and data[end - 1] == _QUOTE:
        return start + 1, end - 1
    return start, end


@njit(nogil=True, cache=True)
def _is_blank(byte: int) -> Any:
    return byte in (_BLANK, _TAB, _RETURN)


@njit(nogil=True, cache=True)
def whole_numbers(data: Any, starts: Any, ends: Any, out: Any) -> Any:
    """Read fields as int64; the index of the first that is none, or -1."""
    for f in range(len(starts)):
        at, end = starts[f], ends[f]
        negative = at < end and data[at] == _MINUS
        if at < end and (negative or data[at] == _PLUS):
            at += 1
        if at == end:
            return f
        value = np.uint64(0)
        for k in range(at, end):
            digit = np.int64(data[k]) - _ZERO
            if digit < 0 or digit > 9 or value > np.uint64(922337203685477580):
                return f
            value = value * np.uint64(10) + np.uint64(digit)
        if value > np.uint64(9223372036854775807):
            return f
        out[f] = -np.int64(value) if negative else np.int64(value)
    return -1


@njit(nogil=True, cache=True)
def real_numbers(data: Any, starts: Any, ends: Any, out: Any) -> Any:
    """Read fields as float64, nothing as nan; the index of the first that is none, or -1.

    Up to 15 digits are rounded as they should be; more of them to a few units in the last place.
    """
    for f in range(len(starts)):
        at, end = starts[f], ends[f]
        if at == end:
            out[f] = np.nan
            continue
        negative = data[at] == _MINUS
        if negative or data[at] == _PLUS:
            at += 1
        mantissa = np.uint64(0)
        exponent = np.int64(0)
        digits = 0
        dot = False
        while at < end:
            digit = np.int64(data[at]) - _ZERO
            if 0 <= digit <= 9:
                digits += 1
                if mantissa < np.uint64(1000000000000000000):
                    mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                    exponent -= dot
                else:
                    exponent += not dot
            elif data[at] == _DOT and not dot:
                dot = True
            else:
                break
            at += 1
        if digits == 0:
            infinite = _says(data, at, end, _INF) or _says(data, at, end, _INFINITY)
            if dot or not (infinite or _says(data, at, end, _NAN)):
                return f
            value = np.inf if infinite else np.nan
        else:
            power, at = _power(data, at, end)
            if at != end:
                return f
            value = _scaled(np.float64(mantissa), exponent + power)
        out[f] = -value if negative else value
    return -1


@njit(nogil=True, cache=True)
def _power(data: Any, at: int, end: int) -> Any:
    """The number behind an ``e`` and where it ends; where it should end if there is none."""
    if at == end or (data[at] | 32) != 101:
        return 0, at
    at += 1
    negative = at < end and data[at] == _MINUS
    if at < end and (negative or data[at] == _PLUS):
        at += 1
    if at == end:
        return 0, -1
    power = 0
    while at < end and _ZERO <= data[at] <= _ZERO + 9:
        power = min(power * 10 + int(data[at]) - _ZERO, 100000)
        at += 1
    return (-power if negative else power), at


@njit(nogil=True, cache=True)
def _scaled(mantissa: float, exponent: int) -> Any:
    """mantissa * 10**exponent, in steps that neither overflow nor vanish too early."""
    if mantissa == 0.0:
        return 0.0
    value = mantissa
    while exponent > 0 and value < np.inf:
        step = min(exponent, 22)
        value *= _TENS[step]
        exponent -= step
    while exponent < 0 and value > 0.0:
        step = min(-exponent, 22)
        value /= _TENS[step]
        exponent += step
    return value


@njit(nogil=True, cache=True)
def _says(data: Any, at: int, end: int, word: Any) -> Any:
    """Whether the text is ``word``, in any case."""
    if end - at != len(word):
        return False
    k = 0
    while k < len(word) and (data[at + k] | 32) == word[k]:
        k += 1
    return k == len(word)


@njit(nogil=True, cache=True)
def json_items(data: Any, at: int) -> Any:
    """Inside of a JSON list or object from ``at`` on: its last comma, and where it closes, or -1.

    Brackets and commas in strings do not count, nor do those of inner lists and objects.
    """
    comma = -1
    depth = 0
    text = escaped = False
    for k in range(at, len(data)):
        byte = data[k]
        if text:
            if escaped:
                escaped = False
            elif byte == _ESCAPE:
                escaped = True
            elif byte == _QUOTE:
                text = False
        elif byte == _QUOTE:
            text = True
        elif (byte | 32) == _OPEN:  # [ or {
            depth += 1
        elif (byte | 32) == _CLOSE:  # ] or }
            if depth == 0:
                return comma, k
            depth -= 1
        elif byte == _COMMA and depth == 0:
            comma = k
    return comma, -1
