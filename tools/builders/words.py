"""Texts as bags of words: which words are features, and which texts hold them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from sgcn.errors import SgcnError
from sgcn.graph import Array
from tools.builders.built import frequent, progress

_WORD = re.compile(r"[a-z][a-z0-9]+")
#: Words that any English text holds.
STOP_WORDS = frozenset(
    """
    about above after again against all also although am among an and another any are as at
    be because been before being below between both but by can cannot could did do does doing don
    done down during each either etc even ever every few for from further get gets had has have
    having he her here hers him himself his how however if in into is it its itself just many may
    me might more most much must my neither no nor not now of off often on once one only or other
    others our out over own per rather same shall she should since so some something such than that
    the their theirs them themselves then there therefore these they this those through thus to too
    under until up upon us very via was we were what when where whether which while who whom whose
    why will with within without would yet you your yours
    """.split()  # noqa: SIM905
)


def bag_of_words(
    texts: Sequence[str], words: int, least: int, most: float
) -> tuple[dict[str, Array], list[str]]:
    """Binary features as CSR arrays without values, and the words that they stand for.

    A word is two or more ASCII letters and digits, a letter first, in lower case. Of those in at
    least ``least`` texts and at most the share ``most`` of them, the ``words`` in most texts count.
    No label has a say in it.
    """
    found = [
        set(_WORD.findall(text.lower())) - STOP_WORDS for text in progress(texts, "counting words")
    ]
    counts: Counter[str] = Counter()
    for some in found:
        counts.update(some)
    chosen = frequent(counts, least, most * len(texts), words)
    if not chosen:
        raise SgcnError(
            f"no word is in {least} or more of the {len(texts)} texts, expected a larger source"
        )
    place = {word: column for column, word in enumerate(chosen)}
    rows = [sorted(place[word] for word in some if word in place) for some in found]
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    indices = np.array([column for row in rows for column in row], np.int32)
    shape = np.array([len(texts), len(chosen)], np.int64)
    return {"x_indptr": indptr, "x_indices": indices, "x_shape": shape}, chosen
