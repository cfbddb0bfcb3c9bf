"""On a telephone a page hides no column that a reader needs, and every axis has its numbers."""

from __future__ import annotations

import dataclasses

import pytest

from reports.page.page import render
from tests.browser.pages import LARGE, PAGES
from tests.reports import samples

pytestmark = pytest.mark.browser

PHONE, TABLET = 390, 768
PUSHED = "(one) => one.scrollWidth > one.clientWidth + 1"


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("demo", "holes gate differences provenance"),
        ("failures", "failures"),
        ("everything", "findings"),
    ],
)
def test_a_table_of_few_columns_is_read_without_pushing(visit, name, sections):
    page = visit(PAGES[name](), width=PHONE).page
    for section in sections.split():
        tables = page.locator(f"#{section} .scroll:visible")
        assert tables.count(), section
        for at in range(tables.count()):
            assert not tables.nth(at).evaluate(PUSHED), section


def test_sentences_of_a_table_stand_below_each_other_under_their_headings(visit):
    demo = samples.demo()
    told = "a sentence that is much longer than one column of a telephone has room for"
    hole = dataclasses.replace(demo.holes[0], label=told, why=told)
    page = visit(render(dataclasses.replace(demo, holes=(hole,))), width=PHONE).page
    first, second = (page.locator("#holes td").nth(at).bounding_box() for at in (0, 1))
    assert second["y"] >= first["y"] + first["height"] - 1
    assert page.locator("#holes td").nth(1).get_attribute("data-head") == "why"


def test_folded_sentences_have_their_headings_too(visit):
    page = visit(LARGE["divided"](), width=PHONE).page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    last = page.locator("[data-name=anatomy-layers] tbody tr").last.locator("td").last
    assert last.is_visible()
    assert last.get_attribute("data-head") == "operations"


def test_beside_the_name_of_a_cell_stands_its_rate_and_other_columns_can_be_had(visit):
    page = visit(PAGES["demo"](), width=PHONE).page
    rate = page.locator("#cells tbody td.n").first
    box = rate.bounding_box()
    assert rate.inner_text() == "32.2"
    assert box["x"] + box["width"] < PHONE
    assert page.locator("#cells th[data-key=workload]").is_visible(), "a name does not say it"
    columns = page.locator("#cells .columns")
    columns.locator("summary").click()
    columns.get_by_label("precision").check()
    assert page.locator("#cells th[data-key=factor_precision]").is_visible()


def test_on_a_tablet_dots_have_their_axis_and_words_of_charts_are_large_enough(visit):
    page = visit(PAGES["demo"](), width=TABLET).page
    axis = page.locator("#trials thead .ends").first
    assert axis.inner_text().split() == ["16.9", "images/s", "32.9"]
    assert axis.bounding_box()["width"] > TABLET / 2
    word = page.locator("#step-time svg:visible text").first
    assert word.bounding_box()["height"] >= 12
