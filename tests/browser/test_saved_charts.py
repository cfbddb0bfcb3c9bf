"""A chart that leaves the page is the same picture in programs that know no style sheets."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageChops, ImageStat
from playwright.sync_api import Browser

from tests import needs
from tests.browser.pages import PAGES

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
SHRUNK = 240
MOST_DIFFERENCE = 0.03
ASKED_FROM = 10
"""Chromium asks before it saves a further file of one visit; headless, nobody answers."""
DARK, COLOURED = 150, 40
"""Where a whisker is, every channel is darker; where a bar is, two channels differ more."""

NAMES = ("demo", "everything")
TEXTS = "Array.from(document.querySelectorAll('text')).map((t) => t.textContent)"
CUT_OFF = """
Array.from(document.querySelectorAll('text')).filter((text) => {
  const [ink, all] = [text.getBBox(), document.documentElement.viewBox.baseVal];
  return ink.x < -1 || ink.x + ink.width > all.width + 1 || ink.y + ink.height > all.height + 1;
}).map((text) => text.textContent)
"""


def _by_librsvg(place: Path) -> Image.Image:
    program = needs.program("rsvg-convert", package="librsvg2-bin")
    done = subprocess.run([program, str(place)], check=True, capture_output=True)
    return Image.open(io.BytesIO(done.stdout)).convert("RGBA")


def _by_cairosvg(place: Path) -> Image.Image:
    program = needs.program("cairosvg", package="cairosvg")
    done = subprocess.run(
        [program, str(place), "-f", "png", "-o", "-"], check=True, capture_output=True
    )
    return Image.open(io.BytesIO(done.stdout)).convert("RGBA")


ELSEWHERE: dict[str, Callable[[Path], Image.Image]] = {
    "librsvg": _by_librsvg,
    "cairosvg": _by_cairosvg,
}


@pytest.fixture(scope="module")
def saved(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], list[Path]]:
    """Save every chart of a page as its buttons do, once; in dark colours, as somebody may read."""
    done: dict[str, list[Path]] = {}

    def of(name: str) -> list[Path]:
        if name not in done:
            done[name] = list(_saved(browser, PAGES[name](), tmp_path_factory.mktemp(name)))
        return done[name]

    return of


def _saved(browser: Browser, html: str, folder: Path) -> Iterator[Path]:
    report = folder / "report.html"
    report.write_text(html, encoding="utf-8")
    page = browser.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    buttons = page.locator("[data-svg], [data-bars]")
    for number in range(buttons.count()):
        if number % ASKED_FROM == 0:
            page.goto(report.as_uri())
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        with page.expect_download() as waiting:
            buttons.nth(number).click()
        place = folder / waiting.value.suggested_filename
        waiting.value.save_as(place)
        yield place
    page.close()


@cache
def _by_browser(browser: Browser, place: Path, size: tuple[int, int]) -> Image.Image:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(place.as_uri())
    taken = page.screenshot()
    page.close()
    return Image.open(io.BytesIO(taken)).convert("RGBA")


def _difference(one: Image.Image, other: Image.Image) -> float:
    height = round(SHRUNK * one.height / one.width)
    small = [image.convert("RGB").resize((SHRUNK, height)) for image in (one, other)]
    return sum(ImageStat.Stat(ImageChops.difference(*small)).mean) / 3 / 255


@pytest.mark.parametrize("program", ELSEWHERE)
@pytest.mark.parametrize("name", NAMES)
def test_a_saved_chart_is_the_browsers_picture_elsewhere(browser, saved, name, program):
    assert saved(name)
    for place in saved(name):
        drawn = ELSEWHERE[program](place)
        assert drawn.getextrema()[3][0] == 255, f"{place.name} has no ground"
        assert drawn.getpixel((0, 0))[:3] == (255, 255, 255), place.name
        difference = _difference(_by_browser(browser, place, drawn.size), drawn)
        assert difference <= MOST_DIFFERENCE, f"{place.name}: {difference:.1%} different"


def test_every_chart_opens_alone_whole_and_readable(browser, saved):
    assert len(saved("everything")) >= 6
    for place in saved("everything"):
        ElementTree.parse(place)
        alone = browser.new_page()
        alone.goto(place.as_uri())
        assert alone.evaluate("document.querySelectorAll('text').length") > 2
        assert alone.evaluate(CUT_OFF) == []
        if place.name.startswith("ranking-"):
            assert {"images/s", "samples/s"} & set(alone.evaluate(TEXTS))
            assert "interval" in alone.evaluate(TEXTS)
        painted = "getComputedStyle(document.querySelector('text:not([class])')).fill"
        assert alone.evaluate(painted) == "rgb(27, 29, 31)"
        alone.close()


@pytest.mark.parametrize("program", ELSEWHERE)
def test_bars_are_coloured_and_whiskers_are_there(saved, program):
    for place in saved("demo"):
        if not place.name.startswith("ranking-"):
            continue
        drawn, bars, whiskers = ELSEWHERE[program](place).convert("RGB"), 0, 0
        root = ElementTree.parse(place).getroot()
        corner = [-float(value) for value in root.get("viewBox", "").split()[:2]]
        for shape, left, top in _shapes(root, *corner):
            if shape.tag == f"{SVG}line" and not shape.get("class"):  # one of a whisker's group
                across = float(shape.get("x1")) + float(shape.get("x2"))
                down = float(shape.get("y1")) + float(shape.get("y2"))
                near = _around(drawn, left + across / 2, top + down / 2)
                assert any(max(pixel) < DARK for pixel in near), (place.name, near)
                whiskers += 1
            elif shape.tag == f"{SVG}rect" and shape.get("class", "").startswith("s"):
                at = left + float(shape.get("x")) + 5, top + float(shape.get("y")) + 3
                (pixel,) = _around(drawn, *at, reach=0)
                assert max(pixel) - min(pixel) > COLOURED, (place.name, pixel)
                bars += 1
        assert whiskers == 3 * bars > 0


def _shapes(
    within: ElementTree.Element, left: float, top: float
) -> Iterator[tuple[ElementTree.Element, float, float]]:
    """Give every shape with what its groups move it by."""
    for shape in within:
        moved = shape.get("transform", "translate(0 0)")
        across, down = moved.removeprefix("translate(").removesuffix(")").split()
        at = left + float(across), top + float(down)
        yield shape, *at
        yield from _shapes(shape, *at)


def _around(image: Image.Image, x: float, y: float, reach: int = 1) -> list[tuple[int, int, int]]:
    steps = range(-reach, reach + 1)
    return [image.getpixel((int(x) + i, int(y) + j)) for i in steps for j in steps]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_in_a_saved_chart_needs_a_style_sheet(saved, name):
    for place in saved(name):
        text = place.read_text(encoding="utf-8")
        assert "var(" not in text
        assert "<style" not in text
        assert "%" not in "".join(
            value
            for one in ElementTree.fromstring(text).iter()
            for key, value in one.attrib.items()
            if key in ("x", "y", "x1", "x2", "cx", "width", "height")
        )
