"""What marks a directory as a saved graph."""

from __future__ import annotations

from pathlib import Path

FORMAT = "sgcn-graph"
VERSION = 1
HEADER = "header.json"
IDS = "ids.json"  # what the nodes were called, in their order
ORIGIN = "origin.json"  # what the graph was built from
BESIDE = (IDS, ORIGIN)


def is_graph(path: Path) -> bool:
    """Whether ``path`` is a directory that holds a saved graph."""
    return (path / HEADER).is_file()
