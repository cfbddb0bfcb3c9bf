"""Open pages from disk in a headless Chromium and watch what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests import needs
from tests.browser.axe import source

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
]


@dataclass
class Opened:
    """A page, with everything it complained of or asked for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = needs.chromium()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Write a page to disk, open it, and give the page with its complaints."""
    contexts = []

    def opened(
        html: str,
        *,
        width: int = 1280,
        theme: str = "light",
        scripts: bool = True,
    ) -> Opened:
        place = tmp_path / "report.html"
        place.write_text(html, encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=theme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        contexts.append(context)
        made = Opened(context.new_page())
        made.page.on(
            "console",
            lambda said: (
                made.errors.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        made.page.on("request", lambda asked: made.requests.append(asked.url))
        made.page.goto(place.as_uri())
        return made

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Give the accessibility checker's source."""
    return source()
