"""The package lists that apt keeps on a Debian machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sgcn.errors import SgcnError
from tools.builders.sources import Source

_HELPER = "/usr/lib/apt/apt-helper"  # reads what apt compressed, whatever that is
_FORMAT = "$(RELEASE)\t$(CODENAME)\t$(VERSION)\t$(FILENAME)"
_ADVICE = (
    "run `apt-get -o Acquire::Languages=en update` on a Debian machine, or give a folder that "
    "holds both with --from"
)


def read_lists() -> tuple[Source, Source, str]:
    """Packages, Translation-en and the release, of the first Debian release that apt knows."""
    if shutil.which("apt-get") is None or not Path(_HELPER).exists():
        raise SgcnError(f"there is no apt here, expected Packages and Translation-en: {_ADVICE}")
    translations = {release: path for release, _, _, path in _targets("Translations")}
    for release, codename, version, path in _targets("Packages"):
        if release in translations:
            # Unstable has no version; apt then leaves the placeholder in its place.
            number = "" if version.startswith("$") else version
            return _read(path), _read(translations[release]), f"{codename} {number}".strip()
    raise SgcnError(
        f"apt has no lists of a Debian release, expected Packages and Translation-en: {_ADVICE}"
    )


def _targets(kind: str) -> list[list[str]]:
    """Release, codename, version and path of the lists of ``kind`` that apt has fetched."""
    said = _output(
        ["apt-get", "-o", "Acquire::Languages=en", "indextargets", "--format", _FORMAT,
         f"Created-By: {kind}", "Origin: Debian", "Label: Debian", "Component: main"]
    )  # fmt: skip
    targets = [line.split("\t") for line in said.decode().splitlines()]
    # Updates and backports are parts of a release, named after it: bookworm-updates.
    return [t for t in targets if len(t) == 4 and "-" not in t[0] and Path(t[3]).is_file()]


def _read(path: str) -> Source:
    return Source(Path(path), _output([_HELPER, "cat-file", path]))


def _output(command: list[str]) -> bytes:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().replace("\n", "; ")
        raise SgcnError(f"{command[0]} failed, expected the lists of a release: {reason}")
    return done.stdout
