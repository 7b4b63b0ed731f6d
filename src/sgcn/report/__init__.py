"""Run directories -> one self-contained page.

`recording.py` reads a run, `thinning.py` makes its curves short, `page.py` joins them with the
files of `web/` into one HTML text, `live.py` serves that page while the training goes on.
"""

from __future__ import annotations

from sgcn.report.page import find_runs, write_page

__all__ = ["find_runs", "write_page"]
