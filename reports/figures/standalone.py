"""Turn a chart of the page into a picture of its own: colours in its shapes, no style sheet.

Not every program that draws SVG reads style sheets or their variables; ``page.js`` does the same
to the charts that its buttons save.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path

from reports.charts.svg import coordinate, element

_STYLE = Path(__file__).parent.parent / "assets" / "chart.css"
_SPACE = "http://www.w3.org/2000/svg"
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_VARIABLE = re.compile(r"var\((--\w+)\)")
_TAG = re.compile(r'<([\w:]+)((?: [\w:-]+="[^"]*")*)(/?)>')
_ATTRIBUTE = re.compile(r' ([\w:-]+)="([^"]*)"')
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MM_PER_PIXEL = 25.4 / 96
"""Of a style sheet's pixels."""


def standalone(chart: str, *, width_mm: float | None = None) -> str:
    """Give a chart as a file that needs nothing else, on white; ``width_mm`` wide on paper."""
    chart = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", chart)
    opening = _TAG.match(chart)
    assert opening is not None, "no chart begins otherwise"
    given = dict(_ATTRIBUTE.findall(opening[2]))
    left, top, width, height = map(float, given["viewBox"].split())
    wide = width if width_mm is None else width_mm / MM_PER_PIXEL
    variables, _ = _rules()
    root = {
        "xmlns": _SPACE,
        "viewBox": given["viewBox"],
        "width": coordinate(wide),
        "height": coordinate(height * wide / width),
        "font-family": escape(variables["font-family"]),
    }
    if width_mm is not None:
        root |= {"width": f"{width_mm:g}mm", "height": f"{height * width_mm / width:.2f}mm"}
    ground = element("rect", x=left, y=top, width=width, height=height, fill="#fff")
    title = f"<title>{given['aria-label']}</title>" if "aria-label" in given else ""
    return f"<svg{_written(root)}>{title}{ground}{_TAG.sub(_inlined, chart[opening.end() :])}\n"


def _inlined(tag: re.Match[str]) -> str:
    """Give a shape the attributes that the style sheet has for it, as the last word."""
    name, attributes = tag[1], dict(_ATTRIBUTE.findall(tag[2]))
    kinds = {name, *(f".{one}" for one in attributes.get("class", "").split())}
    for kind, style in _rules()[1]:
        if kind in kinds:
            attributes |= style
    return f"<{name}{_written(attributes)}{tag[3]}>"


def _written(attributes: dict[str, str]) -> str:
    return "".join(f' {key}="{value}"' for key, value in attributes.items())


@cache
def _rules() -> tuple[dict[str, str], tuple[tuple[str, dict[str, str]], ...]]:
    """Read the style sheet of charts: its variables, and what each element or class looks like."""
    found = [
        (selector.strip().removeprefix(".chart").strip(), _declared(style))
        for one, style in _RULE.findall(_STYLE.read_text(encoding="utf-8"))
        for selector in one.split(",")
    ]
    (_, variables), *rules = found

    def plain(value: str) -> str:
        return _VARIABLE.sub(lambda name: variables[name[1]], value)

    return variables, tuple(
        (kind, {key: escape(plain(value)) for key, value in style.items()}) for kind, style in rules
    )


def _declared(style: str) -> dict[str, str]:
    pairs = (one.partition(":") for one in style.split(";") if one.strip())
    return {key.strip(): value.strip() for key, _, value in pairs}
