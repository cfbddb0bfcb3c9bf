"""Take pictures of a page of each kind, in every width and theme and as it is printed.

``python -m tests.browser.screenshots --to FOLDER [KIND…]`` also says what an accessibility checker
finds, folds closed and open, and ends with 1 if that is anything, or if a page is wider than its
window. The pictures are for people to look at; ``test_page.py`` holds what can be held without.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from harness.analysis.read import read_comparison
from harness.sections.contract.read import read_with_limits
from reports.page.page import render
from tests import needs
from tests.browser.axe import faults, source
from tests.browser.conftest import FLAGS
from tests.reports import samples
from tests.runs import Behaviour, RecordedCell, Recording, write_run

WIDTHS = (1440, 768, 390)
THEMES = ("light", "dark")
_OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
_WIDTH = "document.documentElement.scrollWidth"
_ALL_LAID_OUT = "* { content-visibility: visible !important }"
_DPI = "80"


def _of(*runs: Path) -> str:
    return render(*read_with_limits(runs))


def _scaling(folder: Path) -> str:
    """Data-parallel training on one to 64 nodes, whose efficiency falls below 80 %."""
    cells = [
        RecordedCell(
            workload="resnet50",
            factors={"nodes": nodes, "strategy": "none" if nodes == 1 else "ddp"},
            behaviour=Behaviour(step_s=0.2 * (1 + 0.06 * index), trial_noise=0.004),
        )
        for index, nodes in enumerate((1, 2, 4, 8, 16, 32, 64))
    ]
    return _of(
        write_run(folder, cells, Recording(name="scaling", question="How far does it scale?"))
    )


def _reading() -> str:
    """Two readers of the same files, and a network whose state is saved."""
    saved = [cell for cell in samples.everything().cells if cell.trials[0].checkpoints]
    cells = (*samples.reading(), *saved)
    varied = ("workload", "reader")
    return render(replace(samples.demo(), cells=cells, varied=varied, holes=(), warnings=()))


def _compared(folder: Path) -> str:
    """One study before and after a change that slowed one of two frameworks."""
    cells = (RecordedCell(), RecordedCell(framework="jax", behaviour=Behaviour(step_s=0.024)))
    slower = (replace(cells[0], behaviour=Behaviour(step_s=0.0225)), cells[1])
    before = write_run(folder, cells, Recording(name="before"))
    after = write_run(folder, slower, Recording(name="after", seed=2))
    results, evidence = read_with_limits([before, after])
    return render(results, replace(evidence, comparison=read_comparison(before, after)))


KINDS: dict[str, Callable[[Path], str]] = {
    "demo": lambda _: render(samples.demo()),
    "large": lambda _: render(samples.factorial()),
    "scaling": _scaling,
    "input": lambda _: _reading(),
    "compare": _compared,
    "failures": lambda _: render(samples.many_failures()),
    "everything": lambda _: render(samples.everything(), samples.evidence()),
}


def take(browser: Browser, kind: str, page: Path, to: Path) -> list[str]:
    """Take all pictures of a page; give what is wrong with it."""
    wrong = []
    for theme in THEMES:
        for width in WIDTHS:
            context = browser.new_context(
                viewport={"width": width, "height": 900},
                color_scheme=theme,
                reduced_motion="reduce",
                bypass_csp=True,
            )
            window = context.new_page()
            window.goto(page.as_uri())
            window.add_style_tag(content=_ALL_LAID_OUT)
            window.screenshot(path=to / f"{kind}-{width}-{theme}.png", full_page=True)
            if (found := window.evaluate(_WIDTH)) > width:
                wrong.append(f"{kind}, {width} px, {theme}: the page is {found} px wide")
            wrong += _inaccessible(window, f"{kind}, {width} px, {theme}")
            context.close()
    _print(browser, kind, page, to)
    return wrong


def _inaccessible(window: Page, where: str) -> list[str]:
    window.evaluate(source())
    closed = [f"{where}, folds closed: {fault}" for fault in faults(window)]
    window.evaluate(_OPEN)
    return [*closed, *(f"{where}, folds open: {fault}" for fault in faults(window))]


def _print(browser: Browser, kind: str, page: Path, to: Path) -> None:
    window = browser.new_page()
    window.goto(page.as_uri())
    printed = to / f"{kind}.pdf"
    window.pdf(path=printed, prefer_css_page_size=True)
    window.close()
    drawn = needs.program("pdftoppm", package="poppler-utils")
    words = [str(drawn), "-r", _DPI, "-png", str(printed), str(to / f"{kind}-print")]
    subprocess.run(words, check=True)


def main(arguments: list[str]) -> int:
    """Take the pictures of the kinds asked for, or of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("build/screenshots"))
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    asked = parser.parse_args(arguments)
    to = asked.to.resolve()
    to.mkdir(parents=True, exist_ok=True)
    wrong = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=needs.chromium(), args=FLAGS)
        for kind in asked.kinds or KINDS:
            page = to / f"{kind}.html"
            page.write_text(KINDS[kind](Path(folder)), encoding="utf-8")
            wrong += take(browser, kind, page, to)
        browser.close()
    print("\n".join(wrong) or "No fault was found.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
