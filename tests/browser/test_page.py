"""The page works in a real browser: silent, self-contained, clickable, readable by everybody."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from harness.analysis.evidence import Channel, Evidence, Recordings, Timeline
from reports.page.page import render
from tests import needs
from tests.browser.axe import faults
from tests.browser.pages import PAGES
from tests.browser.pictures import compare
from tests.reports import samples

pytestmark = pytest.mark.browser

APPROVED = Path(__file__).parent / "approved"
FOLDS = "(open) => document.querySelectorAll('details').forEach((d) => { d.open = open })"
KEEP_PLOTS = """
window.plots = [];
window.uPlot = new Proxy(uPlot, { construct: (made, told) => {
  plots.push(new made(...told));
  return plots.at(-1);
} });
0;
"""
SHOWN = """
(() => {
  const plot = plots.at(-1);
  const { min, max } = plot.scales.x;
  return plot.data[0].map((t, i) => [t, plot.data[1][i]]).filter(([t]) => t > min && t < max);
})()
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_and_asks_no_network(visit, name):
    opened = visit(PAGES[name]())
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    opened.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    opened.page.wait_for_load_state("networkidle")
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_page_is_wider_than_its_window(visit, name, width):
    opened = visit(PAGES[name](), width=width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1000, 1300])
def test_what_really_ran_is_read_without_scrolling_sideways(visit, width):
    opened = visit(PAGES["everything"](), width=width)
    section = opened.page.locator("#what-ran")
    assert section.get_by_text("ATEN_CPU_CAPABILITY=avx512").first.is_visible()
    hidden = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert section.locator("*:visible").evaluate_all(hidden) == 0


def test_the_page_reads_without_javascript(visit):
    opened = visit(PAGES["everything"](), scripts=False)
    assert opened.page.locator(".ranking .rate").first.is_visible()
    assert opened.page.locator("#scaling svg[role=img]:visible").count() == 1
    assert not opened.page.locator("#theme").is_visible()
    assert not opened.page.get_by_role("button").first.is_visible()


def test_columns_sort_both_ways_with_the_unknown_last(visit):
    page = visit(PAGES["failures"]()).page
    head = page.locator("#cells th[data-key=rate]")

    def rates() -> list[str]:
        at = head.evaluate("(h) => h.cellIndex")
        return page.locator("#cells tbody tr").evaluate_all(
            f"(r) => r.map((x) => x.cells[{at}].textContent)"
        )

    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    up = rates()
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert rates()[:-1] == list(reversed(up[:-1]))
    assert up[-1] == rates()[-1] == "–"


def test_sorting_works_from_the_keyboard(visit):
    page = visit(PAGES["demo"]()).page
    page.locator("#cells th[data-key=framework] button").focus()
    page.keyboard.press("Enter")
    assert page.locator("#cells tbody tr").first.locator("td").nth(2).inner_text() == "jax"


def test_the_theme_goes_round_and_is_kept_and_open_pages_follow(visit):
    opened = visit(PAGES["demo"]())
    page = opened.page
    beside = page.context.new_page()
    beside.goto(page.url)
    seen = []
    for _ in range(2):
        page.locator("#theme").click()
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert seen == ["rgb(255, 255, 255)", "rgb(21, 23, 26)"]
    expect(beside.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()  # once it is written, which the other page has seen
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.locator("#theme").click()
    expect(beside.locator("html")).not_to_have_attribute("data-theme", re.compile(""))


def downloaded(page, button) -> tuple[str, str]:
    with page.expect_download() as waiting:
        button.click()
    download = waiting.value
    return download.suggested_filename, Path(download.path()).read_text(encoding="utf-8")


def test_every_table_downloads_as_csv_that_opens(visit):
    page = visit(PAGES["demo"]()).page
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    buttons = page.locator("[data-csv]")
    for index in range(buttons.count()):
        name, text = downloaded(page, buttons.nth(index))
        rows = list(csv.reader(io.StringIO(text)))
        assert name.endswith(".csv")
        assert len(rows) > 1
        assert len({len(row) for row in rows}) == 1, name


def test_the_csv_of_a_filtered_table_holds_what_is_shown(visit):
    page = visit(PAGES["demo"]()).page
    choose(page, "framework", "jax")
    _, text = downloaded(page, page.locator("#cells [data-csv]"))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["framework"] for row in rows} == {"jax"}


def test_timelines_are_drawn_when_scrolled_into_view_and_zoom_on_a_click(visit):
    page = visit(PAGES["everything"]()).page
    place = page.locator("[data-packed]")
    assert place.get_attribute("data-drawn") is None
    page.locator("#timelines").scroll_into_view_if_needed()
    place.locator("canvas").wait_for()
    assert place.get_attribute("data-drawn") == "node0 gpu0"
    box = page.locator("image.heat").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.99)
    assert place.get_attribute("data-drawn") == "node1 gpu3"
    least, most = map(float, place.get_attribute("data-range").split())
    assert least == pytest.approx(45 - 7.5, abs=0.2)
    assert most == pytest.approx(45 + 7.5, abs=0.2)
    told = place.locator("output").inner_text()
    assert told == "37.5 to 52.5 s: every reading, one each 0.1 s"
    framed = page.locator("rect.frame").first.bounding_box()
    assert framed["width"] == pytest.approx(box["width"] / 4, abs=2)
    assert framed["height"] == pytest.approx(box["height"] / 8, abs=3)


def test_a_click_draws_the_very_readings_of_that_moment_and_gaps_as_gaps(visit):
    page = visit(PAGES["everything"]()).page
    page.evaluate(KEEP_PLOTS)
    page.locator("#timelines").scroll_into_view_if_needed()
    page.locator("[data-packed] canvas").wait_for()
    box = page.locator("image.heat").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.45, box["y"] + box["height"] * 2.5 / 8)
    drawn = page.evaluate(SHOWN)
    channel = samples.timeline().channels[2]
    ((begin, end),) = channel.gaps_s
    assert len(drawn) in range(148, 153)
    for time, value in drawn:
        at = round((time - 0.05) * 10)
        is_gap = begin < channel.times_s[at] < end
        assert value == (None if is_gap else channel.values[at])
    assert {value is None for _, value in drawn} == {True, False}


def test_an_hour_of_many_devices_opens(visit):
    timeline = samples.timeline(16, 600.0, 10.0)
    opened = visit(render(samples.demo(), Evidence(recordings=Recordings((timeline,)))))
    opened.page.locator("#timelines").scroll_into_view_if_needed()
    opened.page.locator("[data-packed] canvas").wait_for()
    assert opened.errors == []


def test_hostile_names_run_nothing(visit):
    opened = visit(PAGES["hostile"]())
    opened.page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    assert opened.page.title().startswith("<script>alert(1)</script>")
    assert "<script>alert(1)</script>" in opened.page.locator("h1").inner_text()
    for button in opened.page.locator("[data-bars]").all():
        ElementTree.fromstring(downloaded(opened.page, button)[1])


OF_COLOURS = ("color-contrast",)
OF_LAYOUT = (*OF_COLOURS, "scrollable-region-focusable", "target-size", "link-in-text-block")
"""Rules that another width may break where it shows nothing that no other shows."""


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("name", [name for name in PAGES if name not in ("hostile", "large")])
def test_accessibility_has_no_fault_folds_closed_and_open(visit, axe, name, is_open):
    page = visit(PAGES[name]()).page
    page.evaluate(axe)
    page.evaluate(FOLDS, is_open)
    for width, only in ((1440, ()), (768, OF_LAYOUT), (390, ())):
        page.set_viewport_size({"width": width, "height": 900})
        assert faults(page, only) == [], width


@pytest.mark.parametrize("name", [name for name in PAGES if name not in ("hostile", "large")])
def test_dark_colours_have_contrast(visit, axe, name):
    page = visit(PAGES[name](), theme="dark").page
    page.evaluate(axe)
    page.evaluate(FOLDS, True)
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert faults(page, OF_COLOURS) == [], width


def choose(page, factor: str, value: str) -> None:
    """Show only the cells that have one value of a factor."""
    page.locator("#filters label", has_text=factor).locator("select").select_option(value)


@pytest.mark.parametrize(
    ("name", "width", "theme"),
    [
        ("demo", 1280, "light"),
        ("demo", 768, "light"),
        ("demo", 390, "light"),
        ("demo", 1280, "dark"),
        ("two-runs", 1280, "light"),
        ("compared", 1280, "light"),
        ("compared", 390, "light"),
        ("failures", 390, "light"),
        ("everything", 1280, "light"),
    ],
)
def test_a_page_looks_as_approved(visit, browser, request, name, width, theme):
    page = visit(PAGES[name](), width=width, theme=theme).page
    taken = page.screenshot(full_page=True, type="jpeg", quality=20)
    place = APPROVED / f"{name}-{width}-{theme}.jpg"
    compare(browser, taken, place, rewrite=request.config.getoption("--rewrite-golden"))


@pytest.mark.parametrize("name", ["demo", "compared", "everything"])
def test_every_printed_page_looks_as_approved(visit, browser, request, tmp_path, name):
    rewrite = request.config.getoption("--rewrite-golden")
    page = visit(PAGES[name]()).page
    printed = tmp_path / "report.pdf"
    page.pdf(path=printed, prefer_css_page_size=True)
    drawn = needs.program("pdftoppm", package="poppler-utils")
    subprocess.run([str(drawn), "-r", "48", "-jpeg", printed, tmp_path / "page"], check=True)
    sheets = sorted(tmp_path.glob("page-*.jpg"))
    if rewrite:
        for old in APPROVED.glob(f"{name}-print-*.jpg"):
            old.unlink()
    for number, sheet in enumerate(sheets, 1):
        place = APPROVED / f"{name}-print-{number}.jpg"
        compare(browser, sheet.read_bytes(), place, rewrite=rewrite)
    assert len(list(APPROVED.glob(f"{name}-print-*.jpg"))) == len(sheets)


def test_a_spike_is_drawn_where_it_was_and_as_high(visit):
    values = [20.0 + index % 7 / 10 for index in range(200)]
    values[120] = 1e6
    channel = Channel("disk", [float(i) for i in range(200)], values)
    line = Timeline("read", "MB/s", 0.0, 100.0, (channel,), 1.0)
    page = visit(render(samples.demo(), Evidence(recordings=Recordings((line,))))).page
    page.locator("#timelines").scroll_into_view_if_needed()
    page.locator("[data-packed] canvas").wait_for()
    page.locator("[data-packed] .u-over").hover(position={"x": 5, "y": 5})
    shown = page.locator("[data-packed] .u-legend").inner_text()
    assert "20" in shown
