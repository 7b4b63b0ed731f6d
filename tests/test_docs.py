"""The documents: links that lead somewhere, and pictures that can be drawn again."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
PAGES = sorted([*HOME.glob("*.md"), *HOME.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, place = link.partition("#")
        if "://" in link:
            continue
        target = (page.parent / file) if file else page
        assert target.exists(), link
        if place:
            assert place in {
                _anchor(line) for line in re.findall(r"^#+ (.+)", target.read_text(), re.M)
            }


def _anchor(heading: str) -> str:
    """The name that a heading has as a place to link to."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_pictures_are_drawn(tmp_path):
    command = [sys.executable, "-m", "tools.pictures", str(tmp_path)]
    done = subprocess.run(
        command, cwd=HOME, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    kept = {path.stem for path in (HOME / "docs" / "pictures").glob("sampler-*.svg")}
    assert drawn == kept
