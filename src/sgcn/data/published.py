"""Where graphs are published: addresses, mirrors, and the importer that reads the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Source:
    """A file: its name, where it is (mirrors behind), and its sum where its authors state one."""

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Published:
    """The files of a graph. ``inside`` is where in them the importer begins to read."""

    importer: str
    about: str
    page: str
    files: tuple[Source, ...]
    inside: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


_SAINT_PAGE = "https://github.com/GraphSAINT/GraphSAINT"
_SAINT_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
_DRIVE = "https://drive.usercontent.google.com/download?id={}&confirm=t"
_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_MIRROR = "https://cloud.tsinghua.edu.cn/d/{}/files/?p=%2F{}&dl=1"


def _saint(about: str, mirror: str, *drive: str) -> Published:
    """A GraphSAINT folder: Google Drive's ids of the four files, and CogDL's mirror of them."""
    files = [
        Source(
            name, (*(_DRIVE.format(id_) for id_ in drive[k : k + 1]), _MIRROR.format(mirror, name))
        )
        for k, name in enumerate(_SAINT_FILES)
    ]
    return Published("graphsaint", about, _SAINT_PAGE, tuple(files))


def _planetoid(name: str, about: str) -> Published:
    page = "https://github.com/kimiyoung/planetoid"
    mirror = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data"
    names = [f"ind.{name}.{part}" for part in _PLANETOID_PARTS]
    files = [Source(part, (f"{page}/raw/master/data/{part}", f"{mirror}/{part}")) for part in names]
    return Published("planetoid", about, page, tuple(files))


def _zip(
    importer: str, about: str, page: str, address: str, inside: str, **options: Any
) -> Published:
    file = Source(address.rpartition("/")[2], (address,))
    return Published(importer, about, page, (file,), inside, options)


_OGB = "https://ogb.stanford.edu/docs/nodeprop"
_SNAP = "https://snap.stanford.edu"

#: No author of these states a sum; `SHA256SUMS` beside the files then has what came.
PUBLISHED: dict[str, Published] = {
    "flickr": _saint(
        "89,250 images, 7 classes", "7ee4296bf71e4059972d",
        "1crmsTbd1-2sEXsGwa2IKnIB7Zd3TmUsy", "1join-XdvX3anJU_MLVtick7MgeAQiWIZ",
        "1uxIkbtg5drHTsKt-PAsZZ4_yJmgFmle9", "1htXCtuktuCW8TR8KiKfrFDAxUgekQoV7",
    ),
    "reddit": _saint(
        "232,965 posts, 41 communities", "4de907d0006e4c61ba22",
        "1sncK996BM5lpuDf75lDFqCiDZyErc1c2", "1ZsHaJ0ussP1W722krmEIp_8pwKAoi5b3",
        "1JF3Pjv9OboMNYs2aXRQGbJbc4t_nDd5u", "1nJIKd77lcAGU4j-kVNx_AIGEkveIKz3A",
    ),
    "yelp": _saint(
        "716,847 users, 100 labels", "03d65f79f231445b9f42",
        "1Juwx8HtDwSzmVIJ31ooVa1WljI4U5JnA", "1Zy6BZH_zLEjKlEFSduKE5tV9qqA_8VtM",
        "1VUcBGr0T0-klqerjAjxRmAqFuld_SMWU", "1NI5pa5Chpd-52eSmLW60OnB3WS5ikxq_",
    ),
    "ppi": _saint("14,755 proteins, 121 labels", "1c8bd1d5a481402aa938"),
    "ppi-large": _zip(
        "graphsage", "56,944 proteins, 121 labels", f"{_SNAP}/graphsage",
        f"{_SNAP}/graphsage/ppi.zip", "ppi", prefix="ppi",
    ),
    "ogbn-arxiv": _zip(
        "ogb", "169,343 papers, 40 subjects", _OGB,
        f"{_SNAP}/ogb/data/nodeproppred/arxiv.zip", "arxiv",
    ),
    "ogbn-products": _zip(
        "ogb", "2,449,029 products, 47 categories", _OGB,
        f"{_SNAP}/ogb/data/nodeproppred/products.zip", "products",
    ),
    "cora": _planetoid("cora", "2,708 papers, 7 topics"),
    "citeseer": _planetoid("citeseer", "3,327 papers, 6 topics"),
    "pubmed": _planetoid("pubmed", "19,717 papers, 3 kinds of diabetes"),
}  # fmt: skip
