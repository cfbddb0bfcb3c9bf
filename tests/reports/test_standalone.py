"""A chart that is written to a file has its colours in its shapes, and its size on paper."""

from __future__ import annotations

from xml.etree import ElementTree

from harness.analysis.context.roofline import RoofPoint
from harness.analysis.scaling.prediction import forecasts
from harness.sections.contract.blocks import Curve, Curves, Point
from reports.charts.bars import bar
from reports.charts.lines import lines
from reports.charts.roofline import roofline
from reports.charts.stacks import stacks
from reports.charts.svg import element, picture, text
from reports.figures.forecast import drawing
from reports.figures.standalone import standalone
from tests.reports import samples

SVG = "{http://www.w3.org/2000/svg}"


def _root(content: str, width_mm: float | None = None) -> ElementTree.Element:
    chart = picture(200, 100, content, label='a "chart" <of> it', name="x")
    return ElementTree.fromstring(standalone(chart, width_mm=width_mm))


def test_colours_and_sizes_are_attributes_and_no_style_is_left():
    root = _root(element("rect", class_="s2 faint", width=5.0) + text(1, 2, "a < b & c"))
    rect = root.findall(f"{SVG}rect")[1]
    assert (rect.get("fill"), rect.get("opacity")) == ("#d55e00", ".3")
    words = root.find(f"{SVG}text")
    assert (words.get("fill"), words.get("font-size")) == ("#1b1d1f", "12px")
    assert words.text == "a < b & c"
    assert root.find(f"{SVG}style") is None
    assert "var(" not in ElementTree.tostring(root, encoding="unicode")
    assert root.find(f"{SVG}title").text == 'a "chart" <of> it'


def test_the_style_sheet_has_the_last_word_as_in_a_browser():
    root = _root(element("path", class_="curve d2", fill="#123456", stroke_dasharray="1 1"))
    path = root.find(f"{SVG}path")
    assert (path.get("fill"), path.get("stroke-dasharray")) == ("none", "7 3")


def test_it_lies_on_white_and_is_as_wide_as_the_paper_asks():
    root = _root("", width_mm=85)
    assert (root.get("width"), root.get("height")) == ("85mm", "42.50mm")
    ground = root.find(f"{SVG}rect")
    assert (ground.get("fill"), ground.get("width"), ground.get("height")) == ("#fff", "200", "100")


def test_what_xml_cannot_hold_is_replaced():
    assert _root(text(0, 0, "bell\x07")).find(f"{SVG}text").text == "bell\ufffd"


def test_a_bar_keeps_its_whiskers():
    rate = samples.demo().cells[0].rate
    drawn = bar(rate, top=40.0, colour=1).replace("<svg", '<svg viewBox="0 0 100 22"', 1)
    root = ElementTree.fromstring(standalone(drawn))
    (whisker,) = root.findall(f"{SVG}g[@class='whisker']")
    assert whisker.get("stroke") == "#1b1d1f"
    assert len(whisker.findall(f"{SVG}line")) == 3


def test_a_prediction_is_drawn_with_its_colours_on_white():
    drawn = drawing(forecasts(samples.scaled(), [16, 32]))
    root = ElementTree.fromstring(drawn)
    curves = [one for one in root.iter() if "curve" in one.get("class", "")]
    assert {one.get("stroke") for one in curves} == {"#0072b2", "#d55e00"}
    assert {one.get("fill") for one in curves} == {"none"}
    assert {one.get("stroke-dasharray") for one in curves} == {None, "7 3"}
    assert "<style" not in drawn
    assert "var(" not in drawn


def test_a_narrow_chart_breaks_long_names_and_cuts_none():
    name = "tinycnn · tensorflow · multiworker · cpu · batch 16 · 2 ranks per node"
    points = (Point(1, 1.0), Point(2, 0.7))
    curve = Curve(name, "a run", "tensorflow", points)
    roof = RoofPoint(name, 10.0, 1e9, 0.5, "a run", "tensorflow")
    for drawn in (
        stacks([(name, (("all", 1.0),))], name="x", label="x", shown=str, narrow=True),
        lines(Curves((curve,), "nodes"), {}, name="x", title="x", narrow=True),
        roofline((), (roof,), {}, name="x", narrow=True),
    ):
        words = [one.text or "" for one in ElementTree.fromstring(drawn).iter("text")]
        assert max(map(len, words)) <= 53
        assert name in " ".join(words)
