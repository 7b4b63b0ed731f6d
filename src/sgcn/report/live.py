"""The page of a training that still runs, for browsers on this machine only."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sgcn.errors import SgcnError
from sgcn.report.page import find_runs, page, page_data
from sgcn.training.events import to_json

_LOOPBACK = "127.0.0.1"
#: What a browser on this machine calls us. Any other name is a foreign page's, pointed at us.
_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?", re.IGNORECASE)


class Live:
    """The runs, the lock around reading them, and a number that grows with every change."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.runs = find_runs(paths)
        self._lock, self._version = threading.Lock(), 0
        self.data()  # what cannot be read shows before the server starts

    def data(self, seen: str = "") -> dict[str, Any] | None:
        """The data of now, or None if ``seen`` is its number already."""
        with self._lock:
            news = [run.refresh() for run in self.runs]
            self._version += any(news)
            if seen == str(self._version):
                return None
            return page_data(self.runs) | {"live": self._version}


class Server(ThreadingHTTPServer):
    """One thread for each question; a browser that leaves in the middle is no error."""

    def __init__(self, live: Live, port: int) -> None:
        super().__init__((_LOOPBACK, port), _Handler)
        self.live = live

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make_server(paths: Sequence[Path], port: int = 0) -> Server:
    """A server bound to loopback; port 0 takes a free one."""
    if not 0 <= port <= 65535:
        raise SgcnError(f"--port is {port}, expected a whole number from 0 to 65535")
    live = Live(paths)
    try:
        return Server(live, port)
    except OSError as error:
        raise SgcnError(
            f"--port is {port}, which cannot be used ({error.strerror}), expected a free port or 0"
        ) from None


class _Handler(BaseHTTPRequestHandler):
    """Two addresses: the page, and its data. No file of the disk can be named."""

    server: Server
    server_version, sys_version = "sgcn", ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if not _HOST.fullmatch(self.headers.get("Host", "")):
            return self._answer(HTTPStatus.FORBIDDEN, "ask for this page by its loopback address")
        try:
            if address.path == "/":
                return self._answer(HTTPStatus.OK, page(self.server.live.data() or {}), "text/html")
            if address.path != "/data.json":
                return self._answer(HTTPStatus.NOT_FOUND, "there is nothing here")
            data = self.server.live.data(parse_qs(address.query).get("seen", [""])[0])
            if data is None:
                return self._answer(HTTPStatus.NO_CONTENT)
            self._answer(HTTPStatus.OK, to_json(data), "application/json")
        except SgcnError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    def _answer(self, status: HTTPStatus, text: str = "", kind: str = "text/plain") -> None:
        content = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the address, not every poll."""
