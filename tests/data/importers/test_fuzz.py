"""Valid files with random damage: an importer succeeds or says one sentence, and nothing else."""

from __future__ import annotations

import gzip
import io
import shutil
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from writers import FORMATS, make_truth

from sgcn import Graph, SgcnError
from sgcn.data.importers import import_graph

SECONDS = 20.0  # a file of a few kB that takes as long hangs
INTERESTING = b'\x00\xff\x7f\x80"{}[],:-.e\n019.(c'


@st.composite
def damages(draw: Any) -> tuple[str, Any, Any, Any]:
    """A kind of damage, two places as fractions of the file, and bytes."""
    kind = draw(st.sampled_from(["flip", "set", "cut", "insert", "repeat", "remove", "swap"]))
    places = st.floats(0, 1, exclude_max=True)
    single = st.sampled_from(INTERESTING).map(lambda byte: bytes([byte]))
    noise = st.binary(min_size=1, max_size=8) | single
    return kind, draw(places), draw(places), draw(noise)


def damaged(data: bytes, damage: tuple[str, Any, Any, Any], other: bytes) -> bytes:
    kind, first, second, noise = damage
    a, b = int(first * len(data)), int(second * len(data))
    low, high = min(a, b), max(a, b)
    match kind:
        case "flip":
            return data[:a] + bytes([data[a] ^ (1 << (b % 8))]) + data[a + 1 :] if data else data
        case "set":
            return data[:a] + noise + data[a + len(noise) :]
        case "cut":
            return data[:a]
        case "insert":
            return data[:a] + noise + data[a:]
        case "repeat":
            return data[:high] + data[low:]
        case "remove":
            return data[:low] + data[high:]
        case _:
            return other


def damage_file(path: Path, damage: tuple[str, Any, Any, Any], other: bytes, inside: bool) -> None:
    """``inside``: the contents of an archive, whose checksums then fit them."""
    data = path.read_bytes()
    try:
        if inside and path.suffix == ".gz":
            content = damaged(gzip.decompress(data), damage, other)
            path.write_bytes(gzip.compress(content, 1))
            return
        if inside and path.suffix == ".npz":
            with zipfile.ZipFile(io.BytesIO(data)) as file:
                members = {name: file.read(name) for name in file.namelist()}
            chosen = sorted(members)[int(damage[1] * 1e6) % len(members)]
            members[chosen] = damaged(members[chosen], damage, other)
            with zipfile.ZipFile(path, "w") as file:
                for name, content in members.items():
                    file.writestr(name, content)
            return
    except (
        OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error,
        ZeroDivisionError,
    ):  # fmt: skip
        pass  # damaged before: treat it as any file
    path.write_bytes(damaged(data, damage, other))


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """A folder of each format, written once."""
    folders = {}
    for name, format in FORMATS.items():
        folders[name] = tmp_path_factory.mktemp(name)
        format.write(folders[name], make_truth(40))
    return folders


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40)
@given(data=st.data())
def test_damage_is_refused_or_harmless(valid, tmp_path, name, data):
    one_damage(valid, tmp_path, name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=1500)
@given(data=st.data())
def test_much_damage_is_refused_or_harmless(valid, tmp_path, name, data):
    one_damage(valid, tmp_path, name, data)


def one_damage(valid, tmp_path, name, data):
    format = FORMATS[name]
    shutil.rmtree(tmp_path / "in", ignore_errors=True)
    shutil.rmtree(tmp_path / "new", ignore_errors=True)
    shutil.copytree(valid[name], tmp_path / "in")
    (tmp_path / "new").mkdir()
    file = tmp_path / "in" / data.draw(st.sampled_from(format.files))
    for damage in data.draw(st.lists(damages(), min_size=1, max_size=3)):
        other = valid[name] / data.draw(st.sampled_from(format.files))
        damage_file(file, damage, other.read_bytes(), data.draw(st.booleans()))
    start = time.perf_counter()
    check(format, tmp_path)
    assert time.perf_counter() - start < SECONDS


def check(format: Any, place: Path) -> None:
    out = place / "new" / "out"
    refusal = ""
    try:
        folder = place / "in"
        import_graph(format.importer, folder / format.source, out, **format.given(folder))
    except SgcnError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        assert "expected" in refusal
        assert list(out.parent.iterdir()) == []
    else:
        Graph.open(out, verify=True)
        assert [path.name for path in out.parent.iterdir()] == ["out"]
