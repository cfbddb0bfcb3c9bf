"""Open pages of runs whose every text is an attack, without the policy that would stop them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Opened
from tests.cli.command import bakeoff
from tests.gauntlet.attacks import WORDS, say_everywhere
from tests.outcomes import seal_all
from tests.runs import RecordedCell, write_run

pytestmark = pytest.mark.browser
POLICY = re.compile(r"<meta http-equiv=.Content-Security-Policy.[^>]*>")


@pytest.mark.parametrize("words", [one for one in WORDS if "fired" in one or "script" in one])
def test_nothing_planted_fires_or_fetches_on_a_page(
    words: str, visit: Callable[..., Opened], tmp_path: Path
) -> None:
    cells = [RecordedCell(), RecordedCell(factors={"batch": 32})]
    run = write_run(tmp_path / "runs", cells)
    say_everywhere(run, words)
    seal_all(run)
    made = bakeoff("report", str(run), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    html = (run / "report.html").read_text()
    without, count = POLICY.subn("", html)
    assert count == 1
    assert "127.0.0.1:9" in without or "fired" in without
    opened = visit(without)
    opened.page.wait_for_load_state("networkidle")
    assert opened.page.evaluate("window.fired") is None
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    planted = "img[src^=http], [onerror], [onload]"
    assert opened.page.locator(planted).count() == 0


MARKUP = (
    "\"><img src=http://127.0.0.1:9/x onerror=\"window.fired=1\">' onmouseover='window.fired=1' "
    "</script></style></title></textarea></svg><script>window.fired=1</script><!--<script>"
    "<base href=http://127.0.0.1:9/><meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>"
)
OF_STRUCTURE = (
    *("version", "key", "cell", "cell_key", "trial", "event", "what", "order", "phase", "outcome"),
    *("state", "origin", "strategy", "framework", "environment", "workload", "purpose", "host"),
    *("until", "warmup", "input", "unit"),
)
"""Without these nothing would be shown: no cell would have a number."""
BY_NAME = ("versions", "facts", "packages", "options")
"""What holds names of anybody's choice."""
EVENTS = ("mouseover", "mousemove", "pointerenter", "pointermove", "focus", "click", "keydown")


def marked(value: Any, name: str = "") -> Any:
    """Lengthen every text of a JSON value, and names that may be any."""
    if isinstance(value, dict):
        more = MARKUP if name in BY_NAME else ""
        return {key + more: marked(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [marked(one, name) for one in value]
    return value + MARKUP if isinstance(value, str) and name not in OF_STRUCTURE else value


def test_no_field_of_a_run_brings_markup_to_its_page(
    visit: Callable[..., Opened], tmp_path: Path
) -> None:
    run = write_run(tmp_path / "runs", [RecordedCell(), RecordedCell(framework="jax")])
    for file in run.rglob("*.json*"):
        lines = file.read_text().splitlines() if file.suffix == ".jsonl" else [file.read_text()]
        file.write_text("".join(json.dumps(marked(json.loads(one))) + "\n" for one in lines))
    seal_all(run)
    made = bakeoff("report", str(run), cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    without, count = POLICY.subn("", (run / "report.html").read_text())
    assert count == 1
    opened = visit(without)
    assert opened.page.locator("svg").count() > 2, "it has charts, whose texts are marked as well"
    opened.page.evaluate(
        """events => document.querySelectorAll("*").forEach(one => events
            .filter(name => name != "click" || one.tagName != "A")
            .forEach(name => one.dispatchEvent(new Event(name, {bubbles: true}))))""",
        list(EVENTS),
    )
    opened.page.wait_for_load_state("networkidle")
    assert opened.page.evaluate("window.fired") is None
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    attributes = """() => [...document.querySelectorAll("*")].flatMap(one => [...one.attributes])
        .filter(one => one.name.startsWith("on") || /^\\s*(javascript|https?):/.test(one.value))
        .map(one => one.name)"""
    assert opened.page.evaluate(attributes) == []
    assert opened.page.locator("img, base, meta[http-equiv=refresh]").count() == 0
