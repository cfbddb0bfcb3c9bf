"""Cells in a real browser: one set of filters, folds, a panel for each, what two have apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.page.page import render
from tests.browser.axe import faults
from tests.browser.pages import LARGE, PAGES
from tests.browser.test_page import choose
from tests.reports import samples

pytestmark = pytest.mark.browser

MOST_PIXELS = 6000
KEYS = ("ArrowRight", "+", "-", "0")


def visible(page, rows: str) -> int:
    return page.locator(f"{rows}:visible").count()


def test_one_set_of_filters_is_for_ranking_charts_and_tables(visit):
    page = visit(PAGES["demo"]()).page
    choose(page, "framework", "jax")
    assert page.locator("#filters output").inner_text() == "3 of 7 cells"
    assert visible(page, "#cells tbody tr") == 3
    assert visible(page, ".ranking tbody tr") == 3
    assert visible(page, "#trials .strips tbody tr") == 3
    page.get_by_role("button", name="All cells").click()
    assert visible(page, "#cells tbody tr") == 7


@pytest.mark.parametrize("name", LARGE)
def test_a_large_page_is_short_until_its_folds_are_opened(visit, name):
    page = visit(LARGE[name]().replace('<body class="large">', "<body>"), width=1440).page
    assert page.evaluate("document.documentElement.scrollHeight") <= MOST_PIXELS
    for shown in (".answer", "#factors svg", "#ranking tbody tr", "#cells thead"):
        assert page.locator(shown).first.is_visible()


def test_a_folded_ranking_unfolds(visit):
    page = visit(PAGES["large"]()).page
    assert visible(page, "#ranking tbody tr") == 11
    page.locator("#ranking .more summary").click()
    assert visible(page, "#ranking tbody tr") == 180


def test_a_filter_on_a_folded_ranking_shows_the_first_of_what_is_left(visit):
    page = visit(PAGES["large"]()).page
    choose(page, "precision", "fp32")
    choose(page, "framework", "fw1")
    assert visible(page, "#ranking tbody tr") == 10
    assert page.locator("#ranking .more").inner_text() == "20 more cells"
    names = page.locator("#ranking tbody tr:visible th").all_inner_texts()
    assert all("fw1" in name and "fp32" in name for name in names)


def drawn(page, section: str) -> list[str]:
    """Name the bars that a section's chart shows, from the top."""
    bars = page.locator(f"#{section} .wide [data-bar]:visible")
    return bars.locator("text:first-child").all_text_contents()


def test_a_filter_draws_the_first_bars_of_what_it_leaves(visit):
    page = visit(LARGE["divided"]()).page
    for section in ("limits", "step-time", "anatomy", "energy"):
        page.locator(f"#{section} > details > summary").click()
    before = {name: drawn(page, name) for name in ("limits", "step-time", "anatomy", "energy")}
    assert {name: len(bars) for name, bars in before.items()} == {
        "limits": 10,
        "step-time": 12,
        "anatomy": 10,
        "energy": 10,
    }
    assert not any("fp32" in bar for bars in before.values() for bar in bars)
    choose(page, "precision", "fp32")
    for section, bars in before.items():
        now = drawn(page, section)
        assert len(now) == len(bars)
        assert all("fp32" in name for name in now)
        assert page.locator(f"#{section} .faint").count() == 0
    rows = page.locator("#anatomy [data-name=anatomy] tbody tr:not([hidden]) td:first-child")
    assert all("fp32" in name for name in rows.all_text_contents())
    page.locator("#filters").get_by_role("button", name="All cells").click()
    assert {name: drawn(page, name) for name in before} == before


def test_a_bar_drawn_for_a_filter_says_what_the_table_says(visit):
    page = visit(LARGE["divided"]()).page
    page.locator("#anatomy > details > summary").click()
    choose(page, "framework", "fw2")
    bar = page.locator("#anatomy .wide [data-bar]").first
    parts = [float(one.get_attribute("width")) for one in bar.locator("rect").all()]
    name = bar.get_attribute("data-bar")
    rows = page.locator("#anatomy [data-name=anatomy] tbody tr").filter(has_text=name).all()
    shares = [float(one.locator("td").nth(2).get_attribute("data-v")) for one in rows]
    assert [part / sum(parts) for part in parts] == pytest.approx(shares, abs=0.01)
    narrow = page.locator("#anatomy .narrow [data-bar]").first
    assert narrow.get_attribute("data-bar") == name


def test_fewer_cells_than_bars_leave_the_rest_away_also_where_they_are_saved(visit):
    page = visit(LARGE["divided"]()).page
    page.locator("#energy > details > summary").click()
    for factor, value in (("precision", "fp32"), ("framework", "fw1"), ("batch", "batch 8")):
        choose(page, factor, value)
    assert len(drawn(page, "energy")) == 6
    with page.expect_download() as waiting:
        page.locator("#energy [data-svg]").click()
    saved = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert saved.count("data-bar=") == 6


def test_bars_of_one_of_several_workloads_are_those_that_a_filter_leaves(visit):
    page = visit(LARGE["workloads"]()).page
    page.locator("#step-time > details > summary").click()
    choose(page, "workload", "alexnet")
    bars = page.locator("#step-time figure").nth(1).locator(".wide [data-bar]:visible")
    assert bars.count() == 12
    assert bars.first.locator("text").first.text_content() == "fw0 · bf16 · batch 16 · 2 threads"
    assert page.locator("#step-time figure").first.locator("[data-bar]:visible").count() == 0


def test_a_filter_unfolds_the_ranking_that_it_leaves(visit):
    page = visit(LARGE["workloads"]()).page
    assert visible(page, ".ranking.folded .bars") == 0
    choose(page, "workload", "tinycnn")
    assert visible(page, ".ranking.folded .bars tbody tr") == 10
    assert visible(page, ".ranking") == 1


def test_a_link_to_a_folded_section_unfolds_it_every_time(visit):
    page = visit(PAGES["many"]()).page
    dots = page.locator("#trials .strips")
    link = page.get_by_role("navigation").get_by_role("link", name="Every trial")
    assert (
        page.locator("#trials summary").first.inner_text() == "Every trial 192 of 192 trials count"
    )
    for _ in range(2):
        assert not dots.is_visible()
        link.click()
        assert dots.is_visible()
        page.locator("#trials > details > summary").click()
    page.goto(page.url.replace("#trials", "#step-time"))
    assert page.locator("#step-time svg").first.is_visible()


def test_the_address_of_a_folded_section_shows_it_without_javascript(visit):
    page = visit(PAGES["many"](), scripts=False).page
    assert not page.locator("#trials .strips").is_visible()
    page.goto(f"{page.url}#trials")
    assert page.locator("#trials .strips").is_visible()


def test_a_name_leads_to_all_that_the_page_says_of_its_cell(visit, axe):
    page = visit(PAGES["demo"]()).page
    page.get_by_role("link", name="jax fp32").first.click()
    panel = page.get_by_role("dialog", name="alexnet · jax fp32")
    assert "another process used 0.9 cores for 3 s" in panel.inner_text()
    assert "joint, 6 blocks" in panel.locator("dt:text-is('why') + dd").inner_text()
    assert (
        "bakeoff run quickstart --only workload=alexnet --only framework=jax --only precision=fp32"
    ) in panel.inner_text()
    page.evaluate(axe)
    assert faults(page) == []
    page.keyboard.press("Escape")
    assert not panel.is_visible()
    assert "#" not in page.url


def test_two_cells_have_a_link_that_says_how_they_compare_and_differ(visit):
    page = visit(PAGES["demo"]()).page
    page.evaluate("location.hash = 'cell-alejafp3216~cell-aletofp3216'")
    told = page.get_by_role("dialog").inner_text()
    assert "jax fp32 is 0.800 × as fast as alexnet · torch fp32 [0.785, 0.815]: slower." in told
    assert "framework\tjax\ttorch" in told
    assert "bakeoff explain runs/quickstart-2026-11-21" in told


def test_long_words_of_one_cell_do_not_run_into_those_of_the_other(visit):
    page = visit(PAGES["demo"]()).page
    told = page.locator("#cell-alejafp3216 td").nth(4)
    told.evaluate("(one) => { one.textContent = 'words '.repeat(20); }")
    page.evaluate("location.hash = 'cell-alejafp3216~cell-aletofp3216'")
    over = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.locator(".panel td.long").count() == 1
    assert page.locator(".panel td").evaluate_all(over) == 0


def test_columns_can_be_hidden(visit):
    page = visit(PAGES["demo"]()).page
    page.locator("#cells .columns summary").click()
    page.locator("#cells .columns").get_by_label("step p95").uncheck()
    assert not page.locator("#cells th[data-key=p95_s]").is_visible()
    assert page.locator("#cells .columns summary").inner_text().startswith("Columns: ")


def test_a_chart_zooms_by_keyboard(visit):
    page = visit(render(samples.demo(), samples.evidence())).page
    page.locator("#timelines").scroll_into_view_if_needed()
    page.locator("[data-packed] canvas").wait_for()
    place, ranges = page.locator("[data-packed]"), []
    page.locator(".plot").focus()
    for key in KEYS:
        page.keyboard.press(key)
        low, high = place.get_attribute("data-range").split()
        ranges.append((float(low), float(high)))
    moved, nearer, farther, whole = ranges
    assert nearer[1] - nearer[0] < moved[1] - moved[0]
    assert farther[1] - farther[0] > nearer[1] - nearer[0]
    assert whole == (0.0, 60.0)


def test_the_answer_stays_at_the_top_with_the_sections(visit):
    page = visit(PAGES["everything"]()).page
    assert not page.locator("nav .brief").is_visible()
    page.locator("#trials").scroll_into_view_if_needed()
    page.locator("nav.stuck .brief").wait_for()
    assert page.locator("nav").bounding_box()["y"] == pytest.approx(0, abs=1)


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_nothing_moves_below_a_hand_as_the_answer_comes_to_the_top(visit, width):
    page = visit(PAGES["everything"](), width=width).page
    place = "(one) => one.getBoundingClientRect().top + scrollY"
    trials = page.locator("#trials")
    before = trials.evaluate(place)
    trials.scroll_into_view_if_needed()
    page.locator("nav.stuck .brief").wait_for()
    assert trials.evaluate(place) == pytest.approx(before, abs=0.5)


@pytest.mark.parametrize("width", [768, 1000])
def test_no_drawing_is_cut_off_by_its_window(visit, width):
    page = visit(PAGES["large"](), width=width).page
    hidden = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert page.locator("#factors .scroll.wide").evaluate_all(hidden) == 0
