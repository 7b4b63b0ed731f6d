"""`sgcn data download`, against a server of its own on the loopback: never the network."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import stat
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.sparse as sp

from sgcn import Graph, SgcnError, cli
from sgcn.data import download as module
from sgcn.data.download import download
from sgcn.data.importers import IMPORTERS
from sgcn.data.published import PUBLISHED, Published, Source

WHOLE = bytes(range(256)) * 40_000  # about ten blocks
SUM = hashlib.sha256(WHOLE).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Paths say how the server behaves: /cut/a.bin breaks off, /page/a.bin is a page, and so on."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        how, name = self.path.strip("/").split("/", 1)
        seen = self.server.seen
        seen.append((how, self.headers.get("Range"), self.headers.get("If-Range")))
        content = self.server.files[name]
        if how in ("404", "503"):
            return self.send_error(int(how))
        kind = "text/html" if how == "page" else "application/octet-stream"
        if how in ("page", "quiet-page"):
            content = b"\n<!DOCTYPE html><html>Quota exceeded</html>"
        start = 0
        given = self.headers.get("Range")
        if given and how != "no-range":
            start = int(given.removeprefix("bytes=").rstrip("-"))
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            if how == "odd-range":
                start += 1
            if self.headers.get("If-Range") not in (None, f'"{self.server.version}"'):
                start = 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Type", kind)
        self.send_header("ETag", f'"{self.server.version}"')
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        times = sum(entry[0] == how for entry in seen)
        broken = how in ("cut", "no-range", "odd-range") and times < 4
        rest = content[start : start + 2_500_000] if broken else content[start:]
        if how == "stuck":
            rest = b""
        self.wfile.write(rest)
        if len(rest) < len(content) - start:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        made.seen, made.files, made.version = [], {"a.bin": WHOLE}, "1"
        made.daemon_threads = True
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def publish(server, monkeypatch):
    """Publish one file under the name "test", at the addresses that behave as said."""

    def made(*ways, name="a.bin", sha256=None, inside="", importer="graphsaint"):
        urls = tuple(f"http://127.0.0.1:{server.server_port}/{way}/{name}" for way in ways)
        entry = Published(importer, "", "http://here", (Source(name, urls, sha256),), inside)
        monkeypatch.setitem(PUBLISHED, "test", entry)

    return made


def run(capsys, *argv):
    code = cli.main(["data", "download", *map(str, argv)])
    return (code, *capsys.readouterr())


# -- fetching -----------------------------------------------------------------------------------


def test_a_file_comes_whole_with_its_sum(server, publish, tmp_path, capsys):
    publish("good")
    code, out, err = run(capsys, "test", "--out", tmp_path / "f")
    assert (code, err) == (0, "")
    assert f"sgcn data import graphsaint {tmp_path / 'f'} --out test" in out
    assert (tmp_path / "f" / "a.bin").read_bytes() == WHOLE
    assert (tmp_path / "f" / "SHA256SUMS").read_text() == f"{SUM}  a.bin\n"
    assert sorted(os.listdir(tmp_path / "f")) == ["SHA256SUMS", "a.bin"]
    assert run(capsys, "test", "--out", tmp_path / "f")[0] == 0
    assert len(server.seen) == 1  # what is there is not fetched again


def test_a_cut_connection_goes_on_where_it_broke(server, publish, tmp_path):
    publish("cut", sha256=SUM)
    download("test", tmp_path)
    assert [entry[1] for entry in server.seen] == [
        None, "bytes=2500000-", "bytes=5000000-", "bytes=7500000-",
    ]  # fmt: skip
    assert (tmp_path / "a.bin").read_bytes() == WHOLE


def test_the_next_run_goes_on_too(server, publish, tmp_path):
    publish("stuck")
    with pytest.raises(SgcnError, match=r"a\.bin could not be fetched .*the connection broke"):
        download("test", tmp_path)
    assert len(server.seen) == module.ATTEMPTS
    url = PUBLISHED["test"].files[0].urls[0].replace("stuck", "good")
    (tmp_path / "a.bin.part").write_bytes(WHOLE[:1000])
    (tmp_path / "a.bin.part.json").write_text(json.dumps({"url": url, "mark": '"1"'}))
    publish("good", sha256=SUM)
    download("test", tmp_path)
    assert server.seen[-1] == ("good", "bytes=1000-", '"1"')
    assert sorted(os.listdir(tmp_path)) == ["SHA256SUMS", "a.bin"]


def test_a_file_that_changed_begins_anew(server, publish, tmp_path):
    publish("good", sha256=SUM)
    url = PUBLISHED["test"].files[0].urls[0]
    (tmp_path / "a.bin.part").write_bytes(b"older" * 100)
    (tmp_path / "a.bin.part.json").write_text(json.dumps({"url": url, "mark": '"0"'}))
    download("test", tmp_path)
    assert server.seen == [("good", "bytes=500-", '"0"')]
    assert (tmp_path / "a.bin").read_bytes() == WHOLE


@pytest.mark.parametrize("extra", [0, 7])
def test_a_part_that_is_whole_or_too_long(server, publish, tmp_path, extra):
    publish("good", sha256=SUM)
    url = PUBLISHED["test"].files[0].urls[0]
    (tmp_path / "a.bin.part").write_bytes(WHOLE + b"x" * extra)
    (tmp_path / "a.bin.part.json").write_text(json.dumps({"url": url, "mark": None}))
    download("test", tmp_path)
    assert len(server.seen) == (2 if extra else 1)
    assert (tmp_path / "a.bin").read_bytes() == WHOLE


@pytest.mark.parametrize("way", ["no-range", "odd-range"])
def test_a_server_without_parts_sends_all_again(server, publish, tmp_path, way):
    publish(way, sha256=SUM)
    download("test", tmp_path)
    assert len(server.seen) == {"no-range": 4, "odd-range": 5}[way]
    assert (tmp_path / "a.bin").read_bytes() == WHOLE


def test_no_file_is_put_together_from_two_addresses(server, publish, tmp_path):
    publish("503", "good", sha256=SUM)
    url = PUBLISHED["test"].files[0].urls[0]
    (tmp_path / "a.bin.part").write_bytes(b"of the first address")
    (tmp_path / "a.bin.part.json").write_text(json.dumps({"url": url, "mark": None}))
    download("test", tmp_path)
    assert [entry[:2] for entry in server.seen] == [
        *[("503", "bytes=20-")] * module.ATTEMPTS, ("good", None),
    ]  # fmt: skip
    assert (tmp_path / "a.bin").read_bytes() == WHOLE


@pytest.mark.parametrize("bad", ["404", "503", "page", "quiet-page", "stuck"])
def test_a_mirror_helps(server, publish, tmp_path, bad):
    publish(bad, "good", sha256=SUM)
    download("test", tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == WHOLE


REASONS = {
    "404": "HTTP 404",
    "503": "HTTP 503",
    "page": "an HTML page instead of the file",
    "quiet-page": "an HTML page instead of the file",
    "good": f"it has the sum {SUM}, expected 00",
}


@pytest.mark.parametrize("way", REASONS)
def test_what_cannot_be_had_is_said(server, publish, tmp_path, capsys, way):
    publish(way, sha256="00" if way == "good" else None)
    code, out, err = run(capsys, "test", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"/{way}/a.bin: " in err
    assert REASONS[way] in err
    assert "`sgcn data import graphsaint FOLDER --out test`" in err
    assert os.listdir(tmp_path) == []


def test_offline_ends_at_once(monkeypatch, tmp_path, capsys):
    """Also where looking up a name hangs, which has no timeout of its own."""

    def hang(address, timeout):
        released.wait()
        raise OSError("nobody is there")  # a left thread must end without a word

    released = threading.Event()
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(socket, "create_connection", hang)
    code, out, err = run(capsys, "flickr", "--out", tmp_path / "f")
    assert not released.is_set()  # it did not wait for an answer
    released.set()
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "cannot be reached" in err
    assert "`sgcn data import graphsaint FOLDER --out flickr`" in err
    assert not (tmp_path / "f").exists()


def test_nobody_listens(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    source = Source("a.bin", (f"http://127.0.0.1:{port}/a.bin",))
    monkeypatch.setitem(PUBLISHED, "test", Published("ogb", "", "http://here", (source,)))
    code, _, err = run(capsys, "test", "--out", tmp_path)
    assert code == 2
    assert "cannot be reached" in err
    assert "data import ogb" in err


def test_a_proxy_is_what_must_be_reached(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert module._server("https://a.example/x") == ("proxy.example", 3128)
    monkeypatch.setenv("no_proxy", "a.example")
    assert module._server("https://a.example/x") == ("a.example", 443)


def test_where_nothing_can_be_written_is_said(publish, tmp_path, capsys):
    publish("good")
    (tmp_path / "f").write_text("in the way")
    code, _, err = run(capsys, "test", "--out", tmp_path / "f" / "below")
    assert code == 2
    assert "cannot be written" in err


# -- names --------------------------------------------------------------------------------------


def test_the_list_and_wrong_names(capsys, tmp_path):
    code, out, _ = run(capsys, "--list")
    assert code == 0
    assert all(name in out for name in PUBLISHED)
    assert "did you mean 'flickr'" in run(capsys, "flikr")[2]
    assert "name is missing" in run(capsys)[2]
    (tmp_path / "g").mkdir()
    assert "exists already" in run(capsys, "flickr", "--import", tmp_path / "g")[2]


def test_every_graph_has_its_importer():
    missing = {name for name, graph in PUBLISHED.items() if graph.importer not in IMPORTERS}
    assert not missing
    for graph in PUBLISHED.values():
        IMPORTERS[graph.importer](**graph.options)
        for file in graph.files:
            assert file.urls
            assert all(url.startswith("https://") for url in file.urls)


# -- archives and importing ---------------------------------------------------------------------


def zipped(**members):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return memory.getvalue()


def saint_files():
    ring = sp.csr_array(np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1))
    matrix, rows = io.BytesIO(), io.BytesIO()
    sp.save_npz(matrix, ring)
    np.save(rows, np.arange(12.0).reshape(6, 2))
    return {
        "adj_full.npz": matrix.getvalue(),
        "feats.npy": rows.getvalue(),
        "class_map.json": json.dumps({str(k): k % 2 for k in range(6)}),
        "role.json": json.dumps({"tr": [0, 1, 2], "va": [3], "te": [4, 5]}),
    }


def test_a_zip_is_unpacked_and_imported(server, publish, tmp_path, capsys):
    files = {f"deep__{name}": content for name, content in saint_files().items()}
    server.files["a.zip"] = zipped(**files)
    publish("good", name="a.zip", inside="deep")
    target = tmp_path / "graph"
    code, out, err = run(capsys, "test", "--out", tmp_path / "f", "--import", target)
    assert (code, err) == (0, "")
    assert f"{target}: Graph(6 nodes, 12 stored edges" in out
    assert len(Graph.open(target)) == 6
    assert sorted(os.listdir(tmp_path / "f")) == ["SHA256SUMS", "a.zip", "unpacked"]


def with_link():
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    return memory.getvalue()


BAD_ZIPS = {
    "climbs": (zipped(**{"ok": "1", "..__..__evil": "x"}), "'../../evil'"),
    "absolute": (zipped(**{"__evil": "x"}), "'/evil'"),
    "windows": (zipped(**{"..\\evil": "x"}), "inside the folder"),
    "drive": (zipped(**{"C:evil": "x"}), "inside the folder"),
    "link": (with_link(), "'link', a link"),
    "bomb": (zipped(zeros=b"\0" * 3_000_000), "unpacks to"),
    "no zip": (b"PK not really", "cannot be read, expected a whole zip file"),
    "truncated": (zipped(data=os.urandom(5000))[:3000], "expected a whole zip file"),
}


@pytest.mark.parametrize("case", BAD_ZIPS)
def test_a_bad_zip_leaves_nothing_behind(server, publish, tmp_path, case):
    content, words = BAD_ZIPS[case]
    server.files["a.zip"] = content
    publish("good", name="a.zip")
    inner = tmp_path / "in" / "side"
    with pytest.raises(SgcnError, match=r"a\.zip") as error:
        download("test", inner, limit=2_000_000)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(os.listdir(inner)) == ["SHA256SUMS", "a.zip"]
    assert os.listdir(tmp_path / "in") == ["side"]
    assert not (tmp_path / "evil").exists()
