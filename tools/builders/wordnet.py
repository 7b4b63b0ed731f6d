"""WordNet: synsets are nodes, relations edges, gloss words features, lexicographer files labels.

The sources are the files `data.noun`, `data.verb`, `data.adj` and `data.adv`; their format is the
manual page wndb(5WN).
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.errors import SgcnError
from sgcn.graph import Array
from sgcn.options import Options, between, integer, option
from tools.builders.built import (
    Built,
    counts_of,
    digest,
    progress,
    sizes_of,
    split_of,
    topology,
)
from tools.builders.sources import Source, read_source
from tools.builders.words import bag_of_words

#: The letter of a part of speech in pointers, and its file. Adjective satellites (s) are in adj.
FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "r": "data.adv"}
#: The lexicographer files by number, as lexnames(5WN) lists them.
LEXICOGRAPHER_FILES = (
    "adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact",
    "noun.attribute", "noun.body", "noun.cognition", "noun.communication", "noun.event",
    "noun.feeling", "noun.food", "noun.group", "noun.location", "noun.motive", "noun.object",
    "noun.person", "noun.phenomenon", "noun.plant", "noun.possession", "noun.process",
    "noun.quantity", "noun.relation", "noun.shape", "noun.state", "noun.substance", "noun.time",
    "verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition",
    "verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion",
    "verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather", "adj.ppl",
)  # fmt: skip
_HOME = Path("usr/share/wordnet")
_SYNSET = "a synset: offset, file number, type, words, pointers, '|' and a gloss"
_LICENCE = (
    "WordNet licence: free to use, copy, modify and distribute, if the notice goes with every copy"
)


@dataclass(frozen=True)
class WordNet(Options):
    """Where the builder draws its lines."""

    words: int = option(500, integer(), "features: the words in most glosses")
    word_least: int = option(20, integer(), "glosses that a word must be in")
    word_most: float = option(0.5, between(0, 1), "share of glosses that it may be in")


@dataclass(frozen=True)
class _Synset:
    """A line of a data file: where it is, its label, its gloss, and the keys of related ones."""

    source: Source
    line: int
    label: int
    gloss: str
    related: list[str]


def build(source: Path | None = None, **options: Any) -> Built:
    """Lexicographer files as ``y``; nodes in the order of nouns, verbs, adjectives, adverbs."""
    chosen = WordNet(**options)
    folder = _folder(source)
    sources = {kind: read_source(folder, name) for kind, name in FILES.items()}
    synsets: dict[str, _Synset] = {}
    for kind, file in sources.items():
        _read(file, kind, synsets)
    place = {key: node for node, key in enumerate(synsets)}
    ends = []
    for node, synset in enumerate(synsets.values()):
        for other in synset.related:
            if other not in place:
                raise SgcnError(
                    f"{synset.source.path}, line {synset.line}, points to {other!r}, expected a "
                    "synset of the other files: take all four from one release"
                )
            ends.append((node, place[other]))
    glosses = [synset.gloss for synset in synsets.values()]
    x, words = bag_of_words(glosses, chosen.words, chosen.word_least, chosen.word_most)
    numbers = np.array([synset.label for synset in synsets.values()], np.int64)
    present, y = np.unique(numbers, return_inverse=True)
    arrays: dict[str, Array] = {
        **topology(len(synsets), ends),
        **x,
        "y": y.astype(np.int64),
        "split": split_of(np.ones(len(y), np.bool_)),
    }
    notice = _notice(sources["n"])
    header = {
        "name": "wordnet",
        "origin": "WordNet, Princeton University: data files of the Debian package wordnet-base",
        "release": _version(notice),
        "sources": {FILES[kind]: file.sha256 for kind, file in sources.items()},
        "options": vars(chosen),
        "licence": _LICENCE,
        "notice": notice,
        "built": "python -m tools.build wordnet",
        "sha256": digest(arrays),
        "words": words,
        "classes": [LEXICOGRAPHER_FILES[number] for number in present],
        "counts": sizes_of(arrays) | counts_of(arrays),
    }
    return Built(arrays, header)


def _folder(source: Path | None) -> Path:
    if source is not None:
        return source / _HOME if (source / _HOME).is_dir() else source
    if (Path("/") / _HOME).is_dir():
        return Path("/") / _HOME
    raise SgcnError(
        "there is no /usr/share/wordnet here, expected the data files of WordNet: install the "
        "Debian package wordnet-base, or give a folder that holds them with --from"
    )


def _read(source: Source, kind: str, synsets: dict[str, _Synset]) -> None:
    """Add the synsets of one file, under the letter of its part of speech and their offset."""
    before = len(synsets)
    for number, line in progress(source.lines(), f"reading {source.path.name}"):
        if line.startswith("  ") or not line:  # the licence
            continue
        synset = _parse(source, number, line)
        key = kind + line.partition(" ")[0]
        if key in synsets:
            raise source.error(number, line, "every offset once")
        synsets[key] = synset
    if len(synsets) == before:
        raise SgcnError(f"{source.path} holds no synsets, expected a data file of WordNet")


def _parse(source: Source, number: int, line: str) -> _Synset:
    head, bar, gloss = line.partition(" | ")
    parts = head.split(" ")
    try:
        label, words = int(parts[1]), int(parts[3], 16)
        start = 5 + 2 * words
        pointers = parts[start : start + 4 * int(parts[start - 1])]
        whole = len(pointers) == 4 * int(parts[start - 1]) and parts[0].isdigit()
    except (IndexError, ValueError):
        whole = False
    if not (whole and bar):
        raise source.error(number, line, _SYNSET)
    if not 0 <= label < len(LEXICOGRAPHER_FILES):
        raise source.error(number, line, f"a file number from 0 to {len(LEXICOGRAPHER_FILES) - 1}")
    related = [
        ("a" if kind == "s" else kind) + offset
        for offset, kind in zip(pointers[1::4], pointers[2::4], strict=True)
    ]
    return _Synset(source, number, label, gloss, related)


def _notice(source: Source) -> str:
    """The licence at the top of a data file, without its line numbers."""
    top = itertools.takewhile(lambda pair: pair[1].startswith("  "), source.lines())
    return "\n".join(re.sub(r"^ *\d+ ", "", line).rstrip() for _, line in top)


def _version(notice: str) -> str:
    found = re.search(r"WordNet (\d[\d.]*) Copyright", notice)
    return f"WordNet {found[1]}" if found else "not stated"
