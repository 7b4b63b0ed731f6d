"""Packages of a Debian release: relations are edges, description words features, sections labels.

The sources are the lists `Packages` and `Translation-en` of one release and architecture. Tags and
sections are labels and never features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sgcn.errors import SgcnError
from sgcn.graph import Array
from sgcn.options import Options, between, integer, option
from tools.builders import apt
from tools.builders.built import (
    Built,
    counts_of,
    digest,
    frequent,
    progress,
    sizes_of,
    split_of,
    topology,
)
from tools.builders.sources import Source, read_source
from tools.builders.words import bag_of_words

#: Fields whose packages belong with the one that names them. Conflicts, Breaks and Replaces do not.
RELATIONS = ("depends", "pre-depends", "recommends", "suggests", "enhances")
_FIELD = re.compile(r"([!-9;-~]+):[ \t]*(.*)")
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9+.-]*)")
_LICENCE = (
    "Derived from Debian's package metadata. Debian states no single licence for it: names, "
    "relations, sections and tags are facts about packages; descriptions are under the licences of "
    "their packages, and of them only the presence of common words is kept."
)


@dataclass(frozen=True)
class Debian(Options):
    """Where the builder draws its lines."""

    words: int = option(500, integer(), "features: the words in most descriptions")
    word_least: int = option(20, integer(), "descriptions that a word must be in")
    word_most: float = option(0.5, between(0, 1), "share of descriptions that it may be in")
    section_least: int = option(20, integer(), "packages that make a section a class")
    tag_least: int = option(200, integer(), "packages that make a tag a label")
    providers: int = option(5, integer(0), "virtual packages of more providers make no edges")


@dataclass
class Package:
    """What is kept of a stanza."""

    text: str
    text_md5: str
    section: str
    tags: list[str]
    related: list[str]
    provides: list[str]


def build(source: Path | None = None, **options: Any) -> Built:
    """Sections as ``y`` and ``split``, tags as ``y_tags`` and ``split_tags``."""
    parts = _Parts.read(source, Debian(**options))
    arrays = parts.shared | parts.sections | {f"{k}_tags": v for k, v in parts.tags.items()}
    header = parts.header("debian", arrays) | {
        "classes": parts.section_names,
        "tags": parts.tag_names,
        "counts": sizes_of(arrays) | counts_of(arrays),
        "counts_tags": sizes_of(arrays) | counts_of(arrays, "_tags"),
    }
    return Built(arrays, header)


def build_tags(source: Path | None = None, **options: Any) -> Built:
    """The same graph and features with tags as ``y``: a file that stands alone."""
    parts = _Parts.read(source, Debian(**options))
    arrays = parts.shared | parts.tags
    header = parts.header("debian-tags", arrays) | {
        "classes": parts.tag_names,
        "counts": sizes_of(arrays) | counts_of(arrays),
    }
    return Built(arrays, header)


@dataclass(frozen=True)
class _Parts:
    """The graph in pieces, before a target is chosen."""

    shared: dict[str, Array]
    words: list[str]
    sections: dict[str, Array]
    section_names: list[str]
    tags: dict[str, Array]
    tag_names: list[str]
    origin: dict[str, Any]

    @staticmethod
    def read(folder: Path | None, options: Debian) -> _Parts:
        lists, translation, release = _sources(folder)
        packages = read_packages(lists)
        texts = read_descriptions(translation)
        names = sorted(packages)
        # A translation that was made for another text of the package is better than none.
        described = [
            texts.get((name, packages[name].text_md5), texts.get((name, ""), packages[name].text))
            for name in names
        ]
        shared = topology(len(names), list(_edges(packages, names, options.providers)))
        x, words = bag_of_words(described, options.words, options.word_least, options.word_most)
        ordered = [packages[name] for name in names]
        sections, section_names = _section_labels(ordered, options.section_least, lists)
        tags, tag_names = _tag_labels(ordered, options.tag_least)
        origin = {
            "release": release,
            "sources": {"Packages": lists.sha256, "Translation-en": translation.sha256},
            "options": vars(options),
        }
        return _Parts(shared | x, words, sections, section_names, tags, tag_names, origin)

    def header(self, name: str, arrays: dict[str, Array]) -> dict[str, Any]:
        return {
            "name": name,
            "origin": "Debian package metadata: the lists Packages and Translation-en",
            **self.origin,
            "licence": _LICENCE,
            "built": f"python -m tools.build {name}",
            "sha256": digest(arrays),
            "words": self.words,
        }


# -- reading ------------------------------------------------------------------------------------


def _sources(folder: Path | None) -> tuple[Source, Source, str]:
    if folder is None:
        return apt.read_lists()
    lists, translation = read_source(folder, "Packages"), read_source(folder, "Translation-en")
    return lists, translation, _release(folder)


def _release(folder: Path) -> str:
    """Codename and version, if the release's own file is there too."""
    for name in ("InRelease", "Release"):
        if (folder / name).is_file():
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
            said = dict(re.findall(r"^(Codename|Version): *(\S+)", text, re.M))
            return " ".join(said[key] for key in ("Codename", "Version") if key in said)
    return "not stated"


def stanzas(source: Source) -> Iterator[tuple[int, dict[str, str]]]:
    """The paragraphs of a control file: the number of the first line, and lower-case fields."""
    fields: dict[str, str] = {}
    start, last = 0, ""
    for number, line in source.lines():
        if not line.strip():
            if fields:
                yield start, fields
            fields = {}
            continue
        if line[0] in " \t" and fields:
            fields[last] += "\n" + line
            continue
        match = _FIELD.fullmatch(line)
        if match is None:
            raise source.error(number, line, "a field of a package list, as in 'Package: vim'")
        start = start if fields else number
        last = match[1].lower()
        fields[last] = match[2]
    if fields:
        yield start, fields


def _named(source: Source) -> Iterator[tuple[str, dict[str, str]]]:
    for start, fields in progress(stanzas(source), f"reading {source.path.name}"):
        if not fields.get("package"):
            raise source.error(start, next(iter(fields)) + ": ..", "a stanza with a Package field")
        yield fields["package"], fields


def read_packages(source: Source) -> dict[str, Package]:
    """The packages by name; of several stanzas of one package, the first counts."""
    packages: dict[str, Package] = {}
    for name, fields in _named(source):
        if name in packages:
            continue
        packages[name] = Package(
            text=fields.get("description", ""),
            text_md5=fields.get("description-md5", ""),
            section=fields.get("section", "").rpartition("/")[2],
            tags=[tag.strip() for tag in fields.get("tag", "").split(",") if "::" in tag],
            related=[n for key in RELATIONS for n in package_names(fields.get(key, ""))],
            provides=package_names(fields.get("provides", "")),
        )
    if not packages:
        raise SgcnError(f"{source.path} holds no packages, expected a list of a Debian release")
    return packages


def read_descriptions(source: Source) -> dict[tuple[str, str], str]:
    """English descriptions by package and checksum; under the checksum "", the package's first."""
    texts: dict[tuple[str, str], str] = {}
    for name, fields in _named(source):
        if "description-en" in fields:
            texts.setdefault((name, fields.get("description-md5", "")), fields["description-en"])
            texts.setdefault((name, ""), fields["description-en"])
    if not texts:
        raise SgcnError(
            f"{source.path} holds no English descriptions, expected Translation-en of a release"
        )
    return texts


def package_names(relation: str) -> list[str]:
    """Every package named in ``a (>= 1) | b:any, c``: alternatives count alike."""
    found = (_NAME.match(part) for part in re.split(r"[,|]", relation))
    return [match[1] for match in found if match]


# -- graph and labels ---------------------------------------------------------------------------


def _edges(
    packages: dict[str, Package], names: Sequence[str], most: int
) -> Iterator[tuple[int, int]]:
    """Between a package and those it names; a virtual one stands for its few providers."""
    place = {name: node for node, name in enumerate(names)}
    providers: dict[str, set[int]] = {}
    for name in names:
        for virtual in packages[name].provides:
            providers.setdefault(virtual, set()).add(place[name])
    for node, name in enumerate(names):
        for other in packages[name].related:
            if other in place:
                yield node, place[other]
            elif len(providers.get(other, ())) <= most:
                yield from ((node, provider) for provider in providers.get(other, ()))


def _section_labels(
    packages: Sequence[Package], least: int, source: Source
) -> tuple[dict[str, Array], list[str]]:
    counts = Counter(package.section for package in packages if package.section)
    names = frequent(counts, least)
    if not names:
        raise SgcnError(
            f"{source.path} has no section of {least} or more packages, expected a whole release"
        )
    number = {name: k for k, name in enumerate(names)}
    y = np.array([number.get(package.section, -1) for package in packages], np.int64)
    return {"y": y, "split": split_of(np.greater_equal(y, 0))}, names


def _tag_labels(packages: Sequence[Package], least: int) -> tuple[dict[str, Array], list[str]]:
    """A 0/1 row a package. Tags ``facet::TODO`` say that nobody has looked, and are no labels."""
    sets = [{tag for tag in package.tags if not tag.endswith("::TODO")} for package in packages]
    names = frequent(Counter(tag for tags in sets for tag in tags), least)
    place = {name: column for column, name in enumerate(names)}
    y = np.zeros((len(packages), len(names)), np.uint8)
    hits = [(row, place[tag]) for row, tags in enumerate(sets) for tag in tags if tag in place]
    rows, columns = np.array(hits, np.int64).reshape(-1, 2).T
    y[rows, columns] = 1
    return {"y": y, "split": split_of(y.max(axis=1, initial=0) > 0, layer=1)}, names
