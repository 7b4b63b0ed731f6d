"""Published files, fetched: begun again where a connection broke, and complete or not there at all.

A file grows as ``NAME.part`` and gets its name when it is complete. What it came from is kept in
``NAME.part.json``, so that no file is ever put together from two. (`pooch` begins broken downloads
anew, which for gigabytes is no help, and has no mirrors.)
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import stat
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import Any

from sgcn.chunks import progress
from sgcn.data.published import PUBLISHED, Published, Source
from sgcn.data.readers.files import LIMIT, check_size, unreadable
from sgcn.errors import SgcnError
from sgcn.files import appearing, write_text
from sgcn.options import known_name

CONNECT_SECONDS = 5.0  # for all addresses together
READ_SECONDS = 60.0
ATTEMPTS = 5  # in a row without a new byte
PAUSE_SECONDS = 0.5  # between them
SUMS = "SHA256SUMS"
_BLOCK = 1 << 20
_PAGE = (b"<!doctype html", b"<html")
_IS_PAGE = "it answers with an HTML page instead of the file"


class _FetchError(Exception):
    """This address will not do; the words say why."""


def download(name: str, out: Path, *, limit: int = LIMIT) -> Path:
    """Fetch the files of the published graph ``name`` into ``out``: what its importer reads."""
    graph = PUBLISHED[known_name("graph", name, PUBLISHED)]
    if out.exists() and not out.is_dir():
        raise SgcnError(f"{out} is a file, expected a folder for what is fetched")
    wanted = [file for file in graph.files if not (out / file.name).exists()]
    if wanted:
        reachable = _reachable({_server(url) for file in wanted for url in file.urls})
        if not reachable:
            hosts = sorted({urllib.parse.urlsplit(u).netloc for f in wanted for u in f.urls})
            raise SgcnError(
                f"{', '.join(hosts)} cannot be reached, expected a network: {_by_hand(name, graph)}"
            )
        with _writing(out):
            out.mkdir(parents=True, exist_ok=True)
        for file in wanted:
            urls = [url for url in file.urls if _server(url) in reachable]
            _fetch(file, urls, out, _by_hand(name, graph))
    for file in graph.files:
        if file.name.endswith(".zip"):
            _unpack(out / file.name, out / "unpacked", limit)
            return out / "unpacked" / graph.inside
    return out / graph.inside


def _by_hand(name: str, graph: Published) -> str:
    names = ", ".join(file.name for file in graph.files)
    return (
        f"get {names} in another way (see {graph.page}), then run `sgcn data import "
        f"{graph.importer} FOLDER --out {name}`"
    )


# -- the network --------------------------------------------------------------------------------


def _server(url: str) -> tuple[str, int]:
    """Host and port that a request for ``url`` talks to first: a proxy, where there is one."""
    parts = urllib.parse.urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.hostname or ""):
        parts = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}", "http")
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _reachable(servers: set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those that take a connection. Looking up a name has no timeout: a thread can be left."""
    found = set()

    def knock(server: tuple[str, int]) -> None:
        with suppress(OSError):
            socket.create_connection(server, CONNECT_SECONDS).close()
            found.add(server)

    threads = [Thread(target=knock, args=(server,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    end = time.monotonic() + CONNECT_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return set(found)


def _fetch(file: Source, urls: list[str], out: Path, otherwise: str) -> None:
    """``file`` from the first address that gives it."""
    reasons = []
    for url in urls:
        part = _Part(url, out / f"{file.name}.part")
        try:
            part.fetch()
            with part.path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
            if file.sha256 not in (None, found):
                part.forget()
                raise _FetchError(f"it has the sum {found}, expected {file.sha256}")
            _record(out / SUMS, file.name, found)
            os.replace(part.path, out / file.name)
            part.forget()
            return
        except _FetchError as failure:
            reasons.append(f"{url}: {failure}")
    reason = "; ".join(reasons) or "no address of it can be reached"
    raise SgcnError(f"{file.name} could not be fetched ({reason}), expected the file: {otherwise}")


def _record(path: Path, name: str, found: str) -> None:
    """Keep the sum of a file, in the form that sha256sum checks."""
    lines = path.read_text().splitlines() if path.exists() else []
    lines = [line for line in lines if not line.endswith(f"  {name}")]
    write_text(path, "\n".join([*lines, f"{found}  {name}"]) + "\n")


class _Part:
    """What has come of the file at ``url``; beside it is kept where it came from."""

    def __init__(self, url: str, path: Path) -> None:
        self.url, self.path = url, path
        self.origin_file = path.with_name(f"{path.name}.json")

    def origin(self) -> dict[str, Any]:
        """Where the bytes came from, if that is known."""
        try:
            origin = json.loads(self.origin_file.read_text())
        except (OSError, ValueError):
            return {}
        return origin if isinstance(origin, dict) else {}

    def begun(self) -> int:
        """How many bytes of the address are there already."""
        ours = self.path.exists() and self.origin().get("url") == self.url
        return self.path.stat().st_size if ours else 0

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self.origin_file.unlink(missing_ok=True)

    def fetch(self) -> None:
        """All of it, from where it broke off before, as often as that helps."""
        left = ATTEMPTS
        while left:
            before = self.begun()
            reason = "the connection broke"
            try:
                if self.receive():
                    return
            except SgcnError:
                raise
            except urllib.error.HTTPError as error:
                error.close()
                reason = f"HTTP {error.code}"
                if error.code == 416 and before:
                    if (error.headers.get("Content-Range") or "").endswith(f"/{before}"):
                        return  # it was complete, only without its name
                    self.forget()
                elif error.code < 500:
                    raise _FetchError(reason) from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = str(getattr(error, "reason", "") or error) or type(error).__name__
            if self.begun() > before:
                left = ATTEMPTS
            else:
                left -= 1
                time.sleep(PAUSE_SECONDS)
        raise _FetchError(reason)

    def receive(self) -> bool:
        """One request: what is missing, or everything where the server has no ranges."""
        start = self.begun()
        headers = {"User-Agent": "sgcn", "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            if mark := self.origin().get("mark"):
                headers["If-Range"] = mark
        request = urllib.request.Request(self.url, headers=headers)
        with urllib.request.urlopen(request, timeout=READ_SECONDS) as response:
            given = response.headers
            if given.get_content_type() == "text/html":
                raise _FetchError(_IS_PAGE)
            span = (given.get("Content-Range") or "").split()
            if response.status != 206:
                start = 0
            elif len(span) != 2 or not span[1].startswith(f"{start}-"):
                self.forget()  # another part than we asked for
                return False
            if start == 0:
                self.forget()
                etag = given.get("ETag") or ""
                mark = etag if etag.startswith('"') else given.get("Last-Modified")
                with _writing(self.path):
                    self.origin_file.write_text(json.dumps({"url": self.url, "mark": mark}))
            size = given.get("Content-Length")
            return self.pour(response, start, start + int(size) if size else None)

    def pour(self, response: Any, start: int, total: int | None) -> bool:
        """Write what comes; whether it is all."""
        with progress(self.path.stem, "B", total) as step:
            step(start)
            while data := response.read(_BLOCK):
                if start == 0 and data.lstrip()[:20].lower().startswith(_PAGE):
                    self.forget()
                    raise _FetchError(_IS_PAGE)
                with _writing(self.path), self.path.open("ab" if start else "wb") as file:
                    file.write(data)
                start += len(data)
                step(len(data))
        return start == total if total is not None else start > 0


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """A full or forbidden disk becomes one sentence; what came so far stays for the next time."""
    try:
        yield
    except OSError as error:
        raise SgcnError(
            f"{path} cannot be written ({error.strerror}), expected room and the right to: mend "
            "that and run this again"
        ) from None


# -- archives -----------------------------------------------------------------------------------


def _unpack(path: Path, target: Path, limit: int) -> None:
    """The members of a zip file as files below ``target``, all of them or none."""
    if target.exists():
        return
    what = "a whole zip file: remove it and run this again"
    with appearing(target) as folder, unreadable(path, what), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_size(path, sum(member.file_size for member in members), limit)
        for member in members:
            found = f"{path} has the member {member.filename!r}"
            name = PurePosixPath(member.filename.replace("\\", "/"))
            drive = ":" in name.parts[0] if name.parts else True
            if name.is_absolute() or ".." in name.parts or drive:
                raise SgcnError(
                    f"{found}, expected names inside the folder: do not trust this file"
                )
            if stat.S_ISLNK(member.external_attr >> 16) or member.flag_bits & 1:
                raise SgcnError(f"{found}, a link or encrypted, expected plain files")
        archive.extractall(folder)
