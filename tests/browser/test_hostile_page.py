"""Open pages of runs whose every text is an attack, without the policy that would stop them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Opened
from tests.cli.command import bakeoff
from tests.gauntlet.attacks import WORDS, say_everywhere
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
