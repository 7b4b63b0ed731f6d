"""Make one page of runs: curves, scores, time, memory and what differs between them.

examples:
  sgcn report runs/a                                  runs/a/report.html, to be opened from disk
  sgcn report runs/a runs/b --out ab.html
  sgcn report runs/compare                            every run in a folder
  sgcn report --live runs/a                           follow a training that still runs
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sgcn.errors import SgcnError


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="what sgcn train wrote, or a folder of it"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE.html",
        help="where to write; default: report.html in RUN, of several RUNs here",
    )  # fmt: skip
    parser.add_argument(
        "--live", action="store_true", help="serve the page on this machine and keep it up to date"
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="of --live; default: one that is free"
    )


def run(args: argparse.Namespace) -> None:
    if not args.live:
        if args.port is not None:
            raise SgcnError("--port is for a page that is served, expected --live beside it")
        from sgcn.report import write_page

        beside = args.runs[0] if len(args.runs) == 1 else Path()  # so pages of others stay
        out = args.out or beside / "report.html"
        count = write_page(args.runs, out)
        print(f"{out}: {count} run{'s' if count > 1 else ''}")
        return
    if args.out is not None:
        raise SgcnError("--live writes no file, expected no --out beside it")
    from sgcn.report.live import make_server

    with make_server(args.runs, args.port or 0) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)", flush=True)
        server.serve_forever()
