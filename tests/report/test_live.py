"""Following a training: only from this machine, only what is new, and through cuts and restarts."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from made_runs import Parts, lines, make_run, step

from sgcn import SgcnError
from sgcn.report.live import make_server


@contextmanager
def serving(*folders) -> Iterator[int]:
    """The port of a server in a thread."""
    with make_server(folders) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def ask(port: int, path: str = "/", host: str | None = None, method: str = "GET"):
    """(status, headers, text) of an answer to a request that names ``host``."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def news(port: int, seen: str | int = ""):
    status, _, text = ask(port, f"/data.json?seen={seen}")
    return json.loads(text) if status == 200 else status


@pytest.fixture
def growing(tmp_path):
    return make_run(tmp_path / "run", [step(0), step(1)])


def test_the_page_and_its_data(growing):
    with serving(growing) as port:
        status, headers, text = ask(port)
        assert status == 200
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert "connect-src 'self'" in text
        embedded, fetched = Parts(text).data, news(port)
        assert embedded == fetched
        assert fetched["runs"][0]["curves"]["loss"]["step"] == [0, 1]
        assert ask(port, "/metrics.jsonl")[0] == 404
        assert ask(port, "/../../etc/passwd")[0] == 404
        assert ask(port, method="POST")[0] == 501


def test_it_listens_on_loopback_only(growing):
    with make_server([growing]) as server:
        assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("path", ["/", "/data.json"])
def test_only_loopback_names_are_answered(growing, path):
    with serving(growing) as port:
        for host in ("127.0.0.1", f"127.0.0.1:{port}", f"localhost:{port}", "LOCALHOST"):
            assert ask(port, path, host)[0] == 200
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "0.0.0.0",
                     "localhost.evil.example", "evil.example#localhost", " ", ""):  # fmt: skip
            status, _, text = ask(port, path, host)
            assert status == 403, host
            assert "loss" not in text


def test_new_lines_are_told_once_and_half_lines_not_at_all(growing):
    whole = lines([step(2)])
    with serving(growing) as port, (growing / "metrics.jsonl").open("a") as file:
        data = news(port)
        assert news(port, data["live"]) == 204
        file.write(whole[:20])
        file.flush()
        assert news(port, data["live"]) == 204
        file.write(whole[20:])
        file.flush()
        data = news(port, data["live"])
        assert data["runs"][0]["curves"]["loss"]["step"] == [0, 1, 2]
        (growing / "summary.json").write_text('{"steps": 3}')
        data = news(port, data["live"])
        assert data["runs"][0]["finished"]


def test_a_run_that_was_cut_and_resumed(growing):
    """Resuming cuts lines off; the ones that take their place may be as many and as long."""
    with serving(growing) as port:
        before = news(port)
        (growing / "metrics.jsonl").write_text(lines([step(0), step(1, loss=0.7), step(2)]))
        run = news(port, before["live"])["runs"][0]
        assert run["curves"]["loss"]["value"] == [1.0, 0.7, 0.333333]
        assert run["summary"]["steps"] == 3
        (growing / "metrics.jsonl").unlink()
        assert news(port)["runs"][0]["curves"] == {}


def test_a_run_that_has_not_begun_is_waited_for(tmp_path):
    folder = make_run(tmp_path / "run", [])
    (folder / "metrics.jsonl").unlink()
    with serving(folder) as port:
        data = news(port)
        assert data["runs"][0]["curves"] == {}
        (folder / "metrics.jsonl").write_text(lines([step(0)]))
        assert news(port, data["live"])["runs"][0]["summary"]["steps"] == 1


def test_a_file_that_breaks_under_way_is_one_sentence(growing):
    with serving(growing) as port:
        with (growing / "metrics.jsonl").open("a") as file:
            file.write("nonsense\n")
        status, _, text = ask(port, "/data.json")
        assert status == 503
        assert "line 3 that is no JSON object" in text


def test_a_port_that_is_taken(growing):
    with (
        make_server([growing]) as server,
        pytest.raises(SgcnError, match=r"--port is \d+, which cannot be used"),
    ):
        make_server([growing], server.server_port)


def test_the_command_says_where_and_ends_with_ctrl_c(growing):
    process = subprocess.Popen(
        [sys.executable, "-m", "sgcn", "report", "--live", str(growing)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said.startswith("http://127.0.0.1:")
    assert ask(int(said.split(":")[2].split("/")[0]))[0] == 200
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "")
