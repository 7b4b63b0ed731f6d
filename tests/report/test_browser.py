"""The page in a real browser: headless Chromium, if it and playwright are there."""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from made_runs import lines, make_run, step

from sgcn.report import write_page
from sgcn.report.live import make_server

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), "")
if not CHROMIUM:
    pytest.skip("there is no chromium", allow_module_level=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as tool:
        chromium = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open an address; afterwards nothing may have been said on the console or asked elsewhere."""
    contexts, said, asked = [], [], []

    def go(address: str, **options: Any) -> Any:
        desk = {"viewport": {"width": 1280, "height": 900}}
        contexts.append(browser.new_context(**(desk | options)))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "http://127.0.0.1:"))] == []


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_page([folder], out)
    return out.as_uri()


def shown(page, selector: str) -> list[tuple[str, str]]:
    """(exact, for people) of every number that ``selector`` finds."""
    cells = page.locator(selector).evaluate_all(
        "cells => cells.map(cell => [cell.dataset.value ?? '', cell.firstChild.textContent])"
    )
    return [tuple(cell) for cell in cells]


def rounds_to(text: str, value: float) -> bool:
    """Whether ``text`` is ``value`` with the decimals that ``text`` has."""
    decimals = len(text.partition(".")[2])
    return abs(float(text.replace(",", "")) - value) <= 0.5000001 * 10**-decimals


def paths(page, chart: str = "loss") -> list[str]:
    """The lines that are drawn, by their colours and shapes."""
    return page.locator(f"#chart-{chart} path.curve:not(.faint)").evaluate_all(
        "lines => lines.map(line => line.getAttribute('class') + line.getAttribute('d'))"
    )


def names(page) -> list[str]:
    return page.locator("#runs-table tbody tr").evaluate_all("rows => rows.map(r => r.dataset.run)")


def test_the_numbers_on_the_page_are_those_of_the_summaries(visit, address, folder):
    page = visit(address)
    assert sorted(names(page)) == ["anchored", "sgcn", "sgcn++"]
    for name in names(page):
        summary = json.loads((folder / name / "summary.json").read_text())
        seconds = summary["seconds"]
        wanted = {
            "runs": {
                "test_f1_micro": summary["test"]["f1_micro"],
                "validation_f1_micro": summary["validation"]["f1_micro"],
                "test_loss": summary["test"]["loss"], "best_step": summary["best_step"],
                "steps": summary["steps"], "snapshots": summary["snapshots"],
                "restarts": summary["restarts"], "seconds": seconds["total"],
                "memory": summary["peak_rss_mb"],
            },
            "time": seconds | {"rest": 2 * seconds["total"] - sum(seconds.values())},
            "memory": {"memory": summary["peak_rss_mb"]},
        }  # fmt: skip
        for table, cells in wanted.items():
            row = f'#{table}-table tr[data-run="{name}"]'
            assert page.locator(f"{row} td[data-value]").count() == len(cells)
            for key, value in cells.items():
                ((exact, text),) = shown(page, f'{row} td[data-key="{key}"]')
                assert float(exact) == pytest.approx(value, rel=1e-9 if key == "rest" else 0)
                assert rounds_to(text, value), (table, key)
    assert page.locator("#subtitle").inner_text() == "sampler neighbor · seed 3"
    best = max(json.loads(p.read_text())["test"]["f1_micro"] for p in folder.glob("*/summary.json"))
    ((exact, text),) = shown(page, '#figures [data-key="test_f1_micro"]')
    assert float(exact) == best
    assert rounds_to(text, best)


def test_the_axis_switch(visit, address):
    page = visit(address)
    plot = page.get_by_role("group", name="Loss against steps", exact=True)
    assert plot.count() == 1
    before = paths(page)
    toolbar = page.get_by_role("toolbar")
    button, other = (toolbar.get_by_role("button", name=name) for name in ("Seconds", "Steps"))
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert other.get_attribute("aria-pressed") == "false"
    assert page.get_by_role("group", name="Loss against seconds", exact=True).count() == 1
    assert len(paths(page)) == len(before) == 3
    assert paths(page) != before
    other.click()
    assert paths(page) == before


@pytest.mark.parametrize(("name", "pressed"), [("Smooth", False), ("Log scale", True)])
def test_the_other_switches_draw_other_lines(visit, tmp_path, name, pressed):
    run = make_run(tmp_path / "run", [step(k, loss=2.0 + k % 3) for k in range(80)])
    write_page([run], tmp_path / "report.html")
    page = visit((tmp_path / "report.html").as_uri())
    before = paths(page)
    button = page.get_by_role("button", name=name)
    button.click()
    assert button.get_attribute("aria-pressed") == str(pressed).lower()
    assert paths(page) != before


def test_short_runs_have_no_smooth_lines(visit, address):
    assert visit(address).get_by_role("button", name="Smooth").count() == 0


def test_runs_are_toggled_in_the_legend(visit, address):
    page = visit(address)
    button = page.locator("#legend").get_by_role("button", name="sgcn++")
    assert button.get_attribute("aria-pressed") == "true"
    assert len(paths(page)) == 3
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert len(paths(page)) == 2
    assert "sgcn++" not in page.locator("#summary-loss").text_content()
    page.get_by_role("button", name="Show all").click()
    assert len(paths(page)) == 3
    page.get_by_role("button", name="Hide all").click()
    assert paths(page) == []
    assert page.get_by_text("no run is shown").count() > 1


def test_snapshots_are_marked(visit, address, folder):
    page = visit(address)

    def marks() -> list[str]:
        found = page.locator("#chart-loss .snapshot")
        return found.evaluate_all("marks => marks.map(mark => mark.getAttribute('d'))")

    text = "".join(marks())
    summaries = [json.loads(p.read_text()) for p in folder.glob("*/summary.json")]
    assert text.count("M") == sum(summary["snapshots"] for summary in summaries) > 0
    page.get_by_role("toolbar").get_by_role("button", name="Snapshots").click()
    assert marks() == []


def test_the_table_sorts(visit, address, folder):
    page = visit(address)
    values = {
        path.parent.name: json.loads(path.read_text()) for path in folder.glob("*/summary.json")
    }
    for title, key, of in (
        ("Test loss", "test_loss", lambda summary: summary["test"]["loss"]),
        ("Seconds", "seconds", lambda summary: summary["seconds"]["total"]),
    ):
        head = page.locator(f'#runs-table th[data-key="{key}"]')
        assert head.get_attribute("aria-sort") == "none"
        by_value = sorted(values, key=lambda name: of(values[name]))
        head.get_by_role("button", name=title).click()
        assert (names(page), head.get_attribute("aria-sort")) == (by_value[::-1], "descending")
        page.keyboard.press("Space")
        assert (names(page), head.get_attribute("aria-sort")) == (by_value, "ascending")
    page.get_by_role("button", name="Run", exact=True).click()
    assert names(page) == sorted(values)
    assert page.locator('#runs-table th[aria-sort="none"]').count() > 5


def test_what_was_varied_has_a_column(visit, tmp_path):
    for name, gap in (("a", 7), ("b", 8), ("c", 7)):
        run = make_run(tmp_path / "runs" / name, [step(0)])
        text = (run / "config.toml").read_text().replace("seed = 7", f"seed = {gap}")
        other = "vrgcn" if name == "c" else "sgcn"  # whose options need not be those of others
        text = text.replace("'sgcn'", f"'{other}'\ngap = {gap}\nrestart = '{other}'")
        (run / "config.toml").write_text(text)
    write_page([tmp_path / "runs"], tmp_path / "page.html")
    table = visit((tmp_path / "page.html").as_uri()).locator("#runs-table")
    assert table.locator('td[data-key="estimator.gap"]').all_inner_texts() == ["7", "8", "7"]
    assert table.locator('th[data-key="estimator.restart"]').count() == 0
    assert table.locator('th[data-key="training.seed"]').count() == 0


def test_zoom_by_mouse_and_keyboard(visit, address):
    page = visit(address)
    before, reset = paths(page), page.get_by_role("button", name="Reset")
    assert reset.is_disabled()
    box = page.locator("#chart-loss .plot").bounding_box()
    middle = box["y"] + 100
    page.mouse.move(box["x"] + 120, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, middle, steps=4)
    page.mouse.up()
    zoomed = paths(page)
    assert zoomed != before
    assert reset.is_enabled()
    page.mouse.dblclick(box["x"] + 200, middle)
    assert paths(page) == before
    page.locator("#chart-loss .plot").focus()
    page.keyboard.press("+")
    assert paths(page) != before
    page.keyboard.press("0")
    assert paths(page) == before


def test_hovering_and_arrows_tell_the_numbers(visit, address):
    page = visit(address)
    tip = page.locator("#tip")
    assert tip.is_hidden()
    page.locator("#chart-validation_f1_micro .plot").hover()
    assert tip.is_visible()
    assert re.match(r"step \d+", tip.inner_text())
    assert all(name in tip.inner_text() for name in ("sgcn", "sgcn++", "anchored"))
    page.mouse.move(5, 5)
    assert tip.is_hidden()
    page.locator("#chart-validation_f1_micro .plot").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert re.match(r"step \d+: .*anchored \d", page.locator("#spoken").text_content())


def test_differences_of_the_configuration(visit, address):
    page = visit(address)
    keys = "rows => rows.map(row => row.dataset.key)"
    rows = page.locator("#config-table tbody tr")
    different = rows.evaluate_all(keys)
    assert "estimator.name" in different
    assert "training.seed" not in different
    page.get_by_role("button", name="Only differences").click()
    assert "training.seed" in rows.evaluate_all(keys)
    assert page.locator("#config-table tr.differs").evaluate_all(keys) == different


def test_dark_and_light(visit, address):
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = (visit(address, color_scheme=scheme) for scheme in ("light", "dark"))
    pale, deep = light.evaluate(ground), dark.evaluate(ground)
    assert pale != deep
    for page, changed, pressed in ((light, deep, "true"), (dark, pale, "false")):
        button = page.get_by_role("button", name="Dark")
        button.click()
        assert page.evaluate(ground) == changed
        assert button.get_attribute("aria-pressed") == pressed


def test_a_phone_does_not_scroll_sideways(visit, address):
    page = visit(address, viewport={"width": 375, "height": 700}, has_touch=True)
    wide = "() => document.documentElement.scrollWidth"
    assert page.evaluate(wide) == 375
    page.get_by_role("button", name="Only differences").click()
    assert page.evaluate(wide) == 375
    page.touchscreen.tap(200, 680)
    for box in page.locator("button:visible").evaluate_all(
        "all => all.map(b => [b.getBoundingClientRect().right, b.textContent, b.closest('table')])"
    ):
        assert box[2] is not None or box[0] <= 375, box


def test_everything_has_a_name_for_a_screen_reader(visit, address):
    page = visit(address)
    for button in page.get_by_role("button").all():
        assert (button.get_attribute("aria-label") or button.inner_text()).strip()
    for chart in page.locator(".plot").all():
        assert chart.get_attribute("aria-label")
        summary = page.locator(f"#{chart.get_attribute('aria-describedby')}").text_content()
        assert re.search(r"anchored: from [\d.e-]+ to [\d.e-]+, between", summary)
    assert page.locator("th:not([scope])").count() == 0
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_one_run_alone_and_hostile_names(visit, tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    write_page([make_run(tmp_path / bad, [step(k) for k in range(5)], bad)], tmp_path / "p.html")
    page = visit((tmp_path / "p.html").as_uri())
    assert page.locator("h1").inner_text() == bad
    assert page.locator("img").count() == 0
    assert page.locator("#config-list [data-key=data] dd").inner_text() == bad
    assert page.get_by_role("button", name="Only differences").count() == 0
    assert page.get_by_text("not finished").is_visible()


def test_a_live_page_follows_and_keeps_what_was_chosen(visit, tmp_path):
    folder = make_run(tmp_path / "run", [])
    with make_server([folder]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            page = visit(f"http://127.0.0.1:{server.server_port}/")
            page.get_by_text("waiting for the first step").wait_for()
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(lines([step(k) for k in range(20)]))
            page.locator('#runs-table td[data-key=steps][data-value="20"]').wait_for()
            assert page.locator("#status").text_content() == "live"
            page.get_by_role("toolbar").get_by_role("button", name="Seconds").click()
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(lines([step(k) for k in range(20, 30)]))
            (folder / "summary.json").write_text('{"steps": 30}')
            page.locator('#runs-table td[data-key=steps][data-value="30"]').wait_for()
            assert page.get_by_role("group", name="Loss against seconds", exact=True).count() == 1
            page.get_by_text("finished", exact=True).wait_for()
        finally:
            server.shutdown()
            thread.join()
