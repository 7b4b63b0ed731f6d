"""The builders: small source files with every awkward case, and what the graphs must be."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sgcn import Graph, SgcnError
from sgcn.data.source import read_npz
from tools.build import main
from tools.builders import apt, build
from tools.builders.built import frequent, split_of
from tools.builders.sources import Source
from tools.builders.words import STOP_WORDS

HOME = Path(__file__).parents[2]

SMALL = {"words": 50, "word_least": 2, "section_least": 3, "tag_least": 2, "providers": 2}

PACKAGES = """\
Package: alpha
Version: 1.0
Section: net
Depends: beta (>= 1.0), gamma:any | delta (<< 2) [amd64], mail-agent
Recommends: no-such-package
Suggests: alpha, ${misc:Suggests}
Conflicts: lonely
Tag: role::program, use::checking,
 suite::TODO
Description: short text
Description-md5: a1

Package: beta
Section: net
Depends: alpha
Pre-Depends: libone
Tag: role::program
Description-md5: b-other

Package: gamma
Section: non-free/net
Provides: mail-agent, editor (= 1), popular
Enhances: delta
Tag: role::shared-lib, suite::TODO
Description: long text in the list
 server

Package: delta
Section: libs
Provides: mail-agent, popular
Recommends: popular
Description-md5: d1

Package: libone
Section: libs
Provides: popular
Depends:
 beta,
 editor
Description-md5: l1
\t
Package: libtwo
Section: libs
Recommends: mail-agent
Tag: role::shared-lib
Description-md5: l2

Package: alpha
Version: 2.0
Section: games
Depends: lonely
Description: a second alpha

Package: lonely
description-md5: x1

Package: oddity
Section: rare
Breaks: libone
Replaces: libtwo"""

TRANSLATION = """\
Package: alpha
Description-md5: a0
Description-en: an old text of alpha, server server

Package: alpha
Description-md5: a1
Description-en: Network Server
 A server for the network.
 .
 It is THE fastest; x11 and C.

Package: beta
Description-md5: b1
Description-en: network client, fast

Package: delta
Description-md5: d1
Description-en: shared library with x11

Package: libone
Description-md5: l1
Description-en: shared library

Package: libtwo
Description-md5: l2
Description-en: shared library of caf\u00e9 things
"""

NAMES = ["alpha", "beta", "delta", "gamma", "libone", "libtwo", "lonely", "oddity"]
EDGES = {
    ("alpha", "beta"), ("alpha", "gamma"), ("alpha", "delta"),  # Depends, both alternatives
    ("beta", "libone"), ("delta", "gamma"),  # Pre-Depends, Enhances
    ("gamma", "libone"), ("delta", "libtwo"), ("gamma", "libtwo"),  # through Provides
}  # fmt: skip


def lists(folder, filler=0):
    """Both lists; with ``filler``, two more sections of so many packages each, all tagged."""
    folder.mkdir()
    more = words = ""
    for k in range(filler):
        for kind in ("tool", "doc"):
            name = f"{kind}-{k}"
            more += f"\n\nPackage: {name}\nSection: {kind}s\nTag: made-of::{kind}\nDepends: alpha"
            words += f"\nPackage: {name}\nDescription-en: some {kind} number{k % 4}\n"
    (folder / "Packages").write_text(PACKAGES + more)
    (folder / "Translation-en").write_text(TRANSLATION + words, encoding="utf-8")
    return folder


NOTICE = "  1 A notice of theirs.  \n  2   \n  3 WordNet 9.1 Copyright 2006 by them.  \n"
DATA = {
    "data.noun": "00000100 03 n 01 entity 0 001 ~ 00000200 n 0000 | that which is living  \n"
    "00000200 05 n 02 animal 0 beast 0 003 @ 00000100 n 0000 + 00000100 v 0101 + 00000200 n 0000 "
    "| a living organism | of sorts  \n",
    "data.verb": f"00000100 29 v 0a {'breathe 0 ' * 10}000 01 + 02 00 | draw air, living air  \n",
    "data.adj": "00000100 00 a 01 alive 0 001 & 00000200 a 0000 | living  \n"
    "00000200 00 s 01 living(a) 0 002 & 00000100 a 0000 ! 00000100 s 0101 | with life and air  \n",
    "data.adv": "00000300 02 r 01 alively 0 001 \\ 00000200 a 0101 | in an organism manner  \n",
}
# Nodes: 0 entity, 1 animal, 2 breathe, 3 alive, 4 living, 5 alively.
DATA_EDGES = {(0, 1), (1, 2), (3, 4), (4, 5)}


def dictionary(folder, **changed):
    folder.mkdir(parents=True)
    for name, text in DATA.items():
        (folder / name).write_text(NOTICE + changed.get(name.partition(".")[2], text))
    return folder


def pairs(arrays):
    """The undirected edges; both directions must be there."""
    rows = np.repeat(np.arange(len(arrays["indptr"]) - 1), np.diff(arrays["indptr"])).tolist()
    both = set(zip(rows, arrays["indices"].tolist(), strict=True))
    assert len(both) == len(rows)
    assert both == {(b, a) for a, b in both}
    return {(a, b) for a, b in both if a <= b}


def named_pairs(arrays):
    return {tuple(sorted((NAMES[a], NAMES[b]))) for a, b in pairs(arrays)}


def words_of(built, node):
    start, end = built.arrays["x_indptr"][node : node + 2]
    return [built.header["words"][column] for column in built.arrays["x_indices"][start:end]]


# -- Debian -------------------------------------------------------------------------------------


def test_relations_are_edges(tmp_path):
    arrays = build("debian", lists(tmp_path / "lists"), **SMALL).arrays
    assert named_pairs(arrays) == EDGES
    assert len(arrays["indptr"]) == len(NAMES) + 1  # lonely and oddity have no edges


def test_a_virtual_package_of_many_stands_for_none(tmp_path):
    folder = lists(tmp_path / "lists")
    three = build("debian", folder, **SMALL | {"providers": 3}).arrays
    assert named_pairs(three) == EDGES | {("delta", "libone")}  # `popular`: gamma, delta, libone
    one = build("debian", folder, **SMALL | {"providers": 1}).arrays
    assert named_pairs(one) == EDGES - {("delta", "libtwo"), ("gamma", "libtwo")}
    none = build("debian", folder, **SMALL | {"providers": 0}).arrays
    assert named_pairs(none) == {pair for pair in named_pairs(one) if pair != ("gamma", "libone")}


def test_description_words_are_features(tmp_path):
    built = build("debian", lists(tmp_path / "lists"), **SMALL)
    assert built.header["words"] == ["library", "network", "server", "shared", "x11"]
    found = {name: words_of(built, node) for node, name in enumerate(NAMES)}
    assert found == {
        "alpha": ["network", "server", "x11"],
        "beta": ["network"],  # the text of another checksum is better than none
        "delta": ["library", "shared", "x11"],
        "gamma": ["server"],  # without a translation, what the list itself says
        "libone": ["library", "shared"],
        "libtwo": ["library", "shared"],
        "lonely": [],
        "oddity": [],
    }
    assert built.arrays["x_shape"].tolist() == [8, 5]


def test_the_most_frequent_words_win_and_ties_go_by_the_alphabet(tmp_path):
    folder = lists(tmp_path / "lists")
    assert build("debian", folder, **SMALL | {"words": 3}).header["words"] == [
        "library", "network", "shared"
    ]  # fmt: skip
    assert build("debian", folder, **SMALL | {"word_most": 0.3}).header["words"] == [
        "network", "server", "x11"
    ]  # fmt: skip
    assert frequent({"b": 2, "c": 2, "a": 1, "d": 9}, 1, 5, 2) == ["b", "c"]
    assert "the" in STOP_WORDS


def test_sections_are_classes(tmp_path):
    built = build("debian", lists(tmp_path / "lists"), **SMALL)
    assert built.header["classes"] == ["libs", "net"]  # games: a second stanza; rare: too few
    y = dict(zip(NAMES, built.arrays["y"].tolist(), strict=True))
    assert y == {
        "alpha": 1, "beta": 1, "gamma": 1, "delta": 0, "libone": 0, "libtwo": 0,
        "lonely": -1, "oddity": -1,
    }  # fmt: skip
    split = built.arrays["split"]
    assert split[NAMES.index("lonely")] == split[NAMES.index("oddity")] == -1
    assert np.bincount(split[:6]).tolist() == [3, 1, 2]


def test_tags_are_labels(tmp_path):
    folder = lists(tmp_path / "lists")
    both, tags = build("debian", folder, **SMALL), build("debian-tags", folder, **SMALL)
    assert both.header["tags"] == tags.header["classes"] == ["role::program", "role::shared-lib"]
    rows = dict(zip(NAMES, tags.arrays["y"].tolist(), strict=True))
    assert {name: row for name, row in rows.items() if any(row)} == {
        "alpha": [1, 0], "beta": [1, 0], "gamma": [0, 1], "libtwo": [0, 1]
    }  # fmt: skip
    np.testing.assert_array_equal(tags.arrays["split"] >= 0, tags.arrays["y"].any(axis=1))
    for name in ("y", "split"):
        np.testing.assert_array_equal(both.arrays[f"{name}_tags"], tags.arrays[name])
    for name in ("indptr", "indices", "x_indptr", "x_indices", "x_shape"):
        np.testing.assert_array_equal(both.arrays[name], tags.arrays[name])


def test_labels_never_reach_the_features(tmp_path):
    """Sections and tags change, and nothing but y, split and names of labels with them."""
    first = build("debian", lists(tmp_path / "a"), **SMALL)
    folder = lists(tmp_path / "b")
    text = PACKAGES.replace("Section: net", "Section: server").replace("role::program", "x::text")
    (folder / "Packages").write_text(text)
    second = build("debian", folder, **SMALL)
    assert second.header["classes"] != first.header["classes"]
    assert second.header["tags"] != first.header["tags"]
    assert second.header["words"] == first.header["words"]
    for name in ("indptr", "indices", "x_indptr", "x_indices"):
        np.testing.assert_array_equal(first.arrays[name], second.arrays[name])


def test_the_order_of_the_list_does_not_matter(tmp_path):
    first = build("debian", lists(tmp_path / "a"), **SMALL)
    folder = lists(tmp_path / "b")
    turned = [s for s in PACKAGES.replace("\t\n", "\n").split("\n\n") if "second" not in s][::-1]
    (folder / "Packages").write_text("\n\n\n".join(turned))
    second = build("debian", folder, **SMALL)
    assert second.header["sha256"] == first.header["sha256"]
    assert second.header["sources"] != first.header["sources"]


def test_the_header_says_where_it_is_from(tmp_path):
    folder = lists(tmp_path / "lists")
    assert build("debian", folder, **SMALL).header["release"] == "not stated"
    (folder / "Release").write_text("Origin: Debian\nVersion: 99.1\nCodename: woody\n")
    header = build("debian", folder, **SMALL).header
    assert header["release"] == "woody 99.1"
    assert header["sources"]["Packages"] == hashlib.sha256(PACKAGES.encode()).hexdigest()
    assert header["options"] == SMALL | {"word_most": 0.5}
    assert header["counts"] == {
        "nodes": 8, "edges": 8, "features": 5, "feature_entries": 12,
        "classes": 2, "labelled": 6, "train": 3, "validation": 1, "test": 2,
    }  # fmt: skip
    assert header["counts_tags"] | {"classes": 2, "labelled": 4} == header["counts_tags"]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_compressed_lists_give_the_same(tmp_path, suffix, compress):
    plain, packed = lists(tmp_path / "plain"), lists(tmp_path / "packed")
    for name in ("Packages", "Translation-en"):
        (packed / f"{name}{suffix}").write_bytes(compress((packed / name).read_bytes()))
        (packed / name).unlink()
    assert build("debian", packed, **SMALL).header == build("debian", plain, **SMALL).header


# -- apt ----------------------------------------------------------------------------------------


@pytest.fixture
def apt_lists(tmp_path, monkeypatch):
    """An apt that has updates, a release without translation, and a whole release."""
    folder = lists(tmp_path / "apt")

    def output(command):
        if command[0] != "apt-get":
            return (folder / os.path.basename(command[-1])).read_bytes()
        name = "Translation-en" if "Created-By: Translations" in command else "Packages"
        rows = [("woody-updates", name), ("potato", "Packages"), ("sarge", "missing")]
        rows += [("woody", name)]
        return "".join(
            f"{release}\t{release}\t$(VERSION)\t{folder / file}\n"
            for release, file in rows
            if release != "potato" or name == "Packages"
        ).encode()

    monkeypatch.setattr(apt.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(apt, "_HELPER", str(folder))
    monkeypatch.setattr(apt, "_output", output)
    return folder


def test_without_a_folder_apt_is_asked(apt_lists):
    built = build("debian", **SMALL)
    assert built.header["release"] == "woody"
    assert built.header["sha256"] == build("debian", apt_lists, **SMALL).header["sha256"]


def test_apt_without_lists_is_told_what_to_fetch(apt_lists):
    (apt_lists / "Translation-en").unlink()
    with pytest.raises(SgcnError, match=r"apt has no lists.*apt-get -o Acquire::Languages=en upd"):
        build("debian")


def test_no_apt_at_all(monkeypatch):
    monkeypatch.setattr(apt.shutil, "which", lambda name: None)
    with pytest.raises(SgcnError, match=r"there is no apt here, expected Packages.*--from"):
        build("debian")


def test_a_failing_apt_says_why():
    with pytest.raises(SgcnError, match=r"failed, expected the lists of a release: one; two"):
        apt._output([sys.executable, "-c", "import sys; sys.exit('one\\ntwo')"])


# -- WordNet ------------------------------------------------------------------------------------


def test_wordnet(tmp_path):
    built = build("wordnet", dictionary(tmp_path / "dict"), word_least=2, word_most=0.9)
    assert pairs(built.arrays) == DATA_EDGES
    assert built.header["classes"] == [
        "adj.all", "adv.all", "noun.Tops", "noun.animal", "verb.body"
    ]  # fmt: skip
    assert built.arrays["y"].tolist() == [2, 3, 4, 0, 0, 1]
    assert built.header["words"] == ["air", "living", "organism"]
    assert [words_of(built, node) for node in range(6)] == [
        ["living"], ["living", "organism"], ["air", "living"], ["living"], ["air"], ["organism"]
    ]  # fmt: skip
    assert np.bincount(built.arrays["split"]).tolist() == [3, 1, 2]
    assert built.header["release"] == "WordNet 9.1"
    assert built.header["notice"].splitlines()[::2] == [
        "A notice of theirs.", "WordNet 9.1 Copyright 2006 by them."
    ]  # fmt: skip


def test_an_unpacked_debian_package_will_do(tmp_path):
    dictionary(tmp_path / "x" / "usr" / "share" / "wordnet")
    assert build("wordnet", tmp_path / "x", word_least=2).header["counts"]["nodes"] == 6


def test_wordnet_looks_in_its_usual_place(tmp_path, monkeypatch):
    home = dictionary(tmp_path / "dict")
    monkeypatch.setattr("tools.builders.wordnet._HOME", home)  # absolute: joins as itself
    assert build("wordnet", word_least=2).header["counts"]["nodes"] == 6
    monkeypatch.setattr("tools.builders.wordnet._HOME", tmp_path / "nowhere")
    with pytest.raises(SgcnError, match=r"install the Debian package wordnet-base, or give a fold"):
        build("wordnet")


# -- the file -----------------------------------------------------------------------------------

EVERYTHING = """
import sys
from pathlib import Path
from tools.builders import build
source, out = map(Path, sys.argv[1:])
for name in ("debian", "debian-tags"):
    built = build(name, source / "lists", word_least=2, section_least=3, tag_least=2)
    built.write(out / f"{name}.npz")
build("wordnet", source / "dict", word_least=1).write(out / "wordnet.npz")
"""


def test_two_builds_are_the_same_bytes(tmp_path):
    """In two processes that order their sets differently, at two times, in two folders."""
    lists(tmp_path / "lists", filler=20)
    dictionary(tmp_path / "dict")
    made = []
    for seed in ("1", "2"):
        out = tmp_path / f"out-{seed}"
        out.mkdir()
        command = [sys.executable, "-c", EVERYTHING, str(tmp_path), str(out)]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run(command, check=True, env=environment, cwd=HOME, timeout=120)
        made.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert set(made[0]) == {"debian.npz", "debian-tags.npz", "wordnet.npz"}
    assert made[0] == made[1]


def test_the_split_is_the_same_everywhere():
    split = split_of(np.arange(12) != 3)
    assert split.tolist() == [1, 2, 0, -1, 2, 1, 2, 0, 2, 0, 0, 0]
    assert split_of(np.arange(12) != 3, layer=1).tolist() != split.tolist()


def run(capsys, *argv):
    code = main([str(word) for word in argv])
    return (code, *capsys.readouterr())


def test_the_command_writes_a_file_that_trains(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = lists(tmp_path / "lists", filler=25)
    code, out, err = run(capsys, "debian", "--from", folder)
    assert (code, err) == (0, "")
    assert out == (
        "debian.npz: 58 nodes, 59 edges, 2 features, 2 classes, 50 labelled nodes; "
        "release: not stated\n"
    )
    assert sorted(os.listdir(tmp_path)) == ["debian.npz", "lists"]
    graph = read_npz(tmp_path / "debian.npz")
    assert graph.x.dtype == np.float32
    assert graph.x.data.tolist() == [1.0] * 50
    with np.load("debian.npz", allow_pickle=False) as file:
        assert json.loads(file["header"].tobytes())["counts"]["nodes"] == 58
        assert [file[name].dtype.str for name in ("indptr", "indices", "y", "split")] == [
            "<i8", "<i4", "<i8", "|i1"
        ]  # fmt: skip


def test_the_command_writes_a_graph_directory(tmp_path, capsys):
    folder = lists(tmp_path / "lists", filler=25)
    assert run(capsys, "debian", "--from", folder, "--out", tmp_path / "g")[0] == 0
    graph = Graph.open(tmp_path / "g", verify=True)
    assert len(graph) == 58
    assert graph.y.max() == 1
    assert json.loads((tmp_path / "g" / "origin.json").read_text())["name"] == "debian"
    assert sorted(os.listdir(tmp_path)) == ["g", "lists"]


# -- bad input ----------------------------------------------------------------------------------


def packed(compress):
    whole = compress(PACKAGES.encode() * 50)
    return whole[: len(whole) // 2]


def put(name, content):
    def change(folder):
        stem = name.removesuffix(".gz").removesuffix(".xz").removesuffix(".bz2")
        (folder / stem).unlink()
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


HTML = "<!DOCTYPE html>\n<html><body>404 not found: sorry</body></html>\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("Packages", None), "has no Packages, expected this file, plain or as .gz, .xz or"),
        (put("Translation-en", None), "has no Translation-en, expected"),
        (put("Packages.gz", packed(gzip.compress)), "Packages.gz cannot be read, expected a whole"),
        (put("Packages.xz", packed(lzma.compress)), "Packages.xz cannot be read, expected a whole"),
        (put("Packages.bz2", packed(bz2.compress)), "Packages.bz2 cannot be read, expected a who"),
        (put("Packages.gz", PACKAGES), "Packages.gz cannot be read"),
        (put("Packages.xz", PACKAGES), "Packages.xz cannot be read"),
        (put("Packages", HTML), "Packages, line 1, is '<!DOCTYPE html>', expected a field of"),
        (put("Translation-en", HTML), "Translation-en, line 1, is '<!DOCTYPE html>', expected a"),
        (put("Packages", b"\x1f\x8b\x00\xff" * 9), "Packages, line 1, is"),
        (put("Packages", " indented"), "Packages, line 1, is ' indented', expected a field"),
        (put("Packages", ""), "Packages holds no packages, expected a list of a Debian release"),
        (put("Packages", "\n \n"), "Packages holds no packages"),
        (put("Translation-en", ""), "Translation-en holds no English descriptions, expected"),
        (put("Translation-en", "Package: a\nDescription-de: Wort\n"), "no English descriptions"),
        (put("Packages", "Package: a\n\nVersion: 1\nSection: x\n"),
         "Packages, line 3, is 'version: ..', expected a stanza with a Package field"),
        (put("Packages", "Package:\n"), "line 1, is 'package: ..', expected a stanza with a Pac"),
        (put("Packages", PACKAGES), "no word is in 20 or more of the 8 texts, expected a larger"),
        (put("Packages", "\n\n".join(f"Package: p{k}\nDescription: {'word' * (k % 2)}"
                                    for k in range(50))),
         "Packages has no section of 20 or more packages, expected a whole release"),
    ],
)  # fmt: skip
def test_bad_lists(tmp_path, capsys, change, message):
    folder = lists(tmp_path / "lists", filler=25)
    change(folder)
    refused(capsys, tmp_path, message, "debian", "--from", folder)


NOUN, VERB = DATA["data.noun"], DATA["data.verb"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noun": ""}, "data.noun holds no synsets, expected a data file of WordNet"),
        ({"noun": HTML}, "data.noun, line 4, is '<!DOCTYPE html>', expected a synset"),
        ({"noun": NOUN + "00000300 05 n\n"}, "data.noun, line 6, is '00000300 05 n', expected a s"),
        ({"noun": NOUN.replace(" | ", " ", 1)}, "data.noun, line 4, is '00000100 03 n 01 entity"),
        ({"noun": NOUN.replace("003 @", "009 @")}, "data.noun, line 5, is"),
        ({"noun": NOUN.replace("0 001 ~", "0 -01 ~")}, "data.noun, line 4, is"),
        ({"noun": NOUN.replace("n 01 entity", "n xx entity")}, "data.noun, line 4, is"),
        ({"noun": NOUN + NOUN}, "data.noun, line 6, is '00000100 03 n 01 entity"),
        ({"verb": VERB.replace(" 29 ", " 45 ")}, "expected a file number from 0 to 44"),
        ({"noun": NOUN.replace("00000100 v", "00000999 v")},
         "data.noun, line 5, points to 'v00000999', expected a synset of the other files"),
        ({}, "no word is in 20 or more of the 6 texts"),
    ],
)  # fmt: skip
def test_bad_dictionaries(tmp_path, capsys, change, message):
    folder = dictionary(tmp_path / "dict", **change)
    refused(capsys, tmp_path, message, "wordnet", "--from", folder)


def test_a_dictionary_without_a_file(tmp_path, capsys):
    folder = dictionary(tmp_path / "dict")
    (folder / "data.adv").unlink()
    refused(capsys, tmp_path, "has no data.adv, expected", "wordnet", "--from", folder)
    refused(capsys, tmp_path, "is not a folder", "wordnet", "--from", tmp_path / "none")
    refused(capsys, tmp_path, "(did you mean 'wordnet'?)", "wordnets", "--from", folder)


@pytest.mark.parametrize("name", ["taken.npz", "taken"])
def test_a_bad_target_is_refused_before_any_work(tmp_path, capsys, monkeypatch, name):
    (tmp_path / "taken.npz").write_text("mine")
    (tmp_path / "taken").mkdir()
    monkeypatch.setattr(Source, "lines", lambda self: pytest.fail("the sources were read"))
    message = "exists already, expected a new name"
    folder = lists(tmp_path / "lists")
    refused(capsys, tmp_path, message, "debian", "--from", folder, out=tmp_path / name)
    assert (tmp_path / "taken.npz").read_text() == "mine"


def test_what_fails_while_writing_leaves_nothing(tmp_path, monkeypatch):
    built = build("wordnet", dictionary(tmp_path / "dict"), word_least=2)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    for name in ("w.npz", "w"):
        with pytest.raises(SgcnError, match=rf"{name} cannot be written .*no space left"):
            built.write(tmp_path / name)
    assert os.listdir(tmp_path) == ["dict"]


def refused(capsys, tmp_path, message, *argv, out=None):
    """One sentence, exit code 2, and no file more than before."""
    before = sorted(tmp_path.rglob("*"))
    code, said, err = run(capsys, *argv, "--out", out or tmp_path / "out.npz")
    assert (code, said) == (2, "")
    assert err.startswith("tools.build: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(tmp_path.rglob("*")) == before
