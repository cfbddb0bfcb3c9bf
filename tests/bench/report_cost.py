"""Measure what a page costs: processor time with all imports (compiled), size, and first paint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import needs
from tests.browser.conftest import FLAGS

ROOT = Path(__file__).resolve().parents[2]
CASES = (
    # name, how the page is made, most CPU seconds, most bytes
    ("50 cells", "render(samples.big(50))", 0.4, 280_000),
    ("1,000 cells of 6 trials", "render(samples.big(1000))", 5.0, 3_000_000),
    ("1,008 cells of four factors", "render(samples.factorial(6, 7, 12))", 5.0, 2_000_000),
    (
        "64 GPUs for an hour at 10 Hz",
        "render(samples.demo(), Evidence(Recordings((samples.timeline(64, 3600.0, 10.0),))))",
        5.0,
        5_000_000,
    ),
)
MOST_PAINT_MS = 1000.0
_LOADS = 5
_EMPTY = "<!DOCTYPE html><title>Empty</title><p>nothing"
# Making the numbers up costs more than the page: it is not counted.
SCRIPT = """
import json, sys, time
imports = time.process_time()
from harness.analysis.evidence import Evidence, Recordings
from reports.page.page import render
imports = time.process_time() - imports
from tests.reports import samples
render_now = render
def render(*values):
    before = time.process_time()
    page = render_now(*values)
    spent = imports + time.process_time() - before
    open(sys.argv[1], "w").write(page)
    print(json.dumps([spent, len(page.encode())]))
"""


def cost(make: str, place: Path, compiled: Path) -> tuple[float, int]:
    """Make a page in a process of its own, which finds and leaves compiled modules in a folder."""
    keeps = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + make, str(place)],
        cwd=ROOT,
        env={**keeps, "PYTHONPYCACHEPREFIX": str(compiled)},
        capture_output=True,
        text=True,
        check=True,
    )
    spent, size = json.loads(done.stdout)
    return spent, size


def first_paint(pages: list[Path]) -> list[float]:
    """Measure from navigation to first contentful paint, in ms: the least of some loads."""
    from playwright.sync_api import sync_playwright

    read = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs.chromium(), args=FLAGS)
        paints = []
        for place in pages:
            page = browser.new_page(bypass_csp=True)  # the wait below is evaluated in the page
            times = []
            for _ in range(_LOADS):
                page.goto(place.as_uri())
                page.wait_for_function("performance.getEntriesByType('paint').length > 1")
                times.append(float(page.evaluate(read)))
            paints.append(min(times))
            page.close()
        browser.close()
    return paints


def main() -> int:
    """Print each case beside its goal; 1 if one was missed."""
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / f"{index}.html" for index in range(len(CASES))]
        compiled = Path(folder) / "compiled"
        cost(CASES[0][1], places[0], compiled)  # an installation compiles once, and is not timed
        costs = [
            cost(make, place, compiled)
            for (_, make, _, _), place in zip(CASES, places, strict=True)
        ]
        empty = Path(folder) / "empty.html"
        empty.write_text(_EMPTY, encoding="utf-8")
        nothing, *paints = first_paint([empty, *places])
    for (name, _, most_cpu, most_bytes), (cpu, size), paint in zip(
        CASES, costs, paints, strict=True
    ):
        fine = cpu <= most_cpu and size <= most_bytes and paint <= MOST_PAINT_MS
        missed |= not fine
        print(
            f"page of {name}: {cpu:.2f} CPU-s (≤ {most_cpu}), {size / 1e3:.0f} kB "
            f"(≤ {most_bytes / 1e3:.0f}), first paint {paint:.0f} ms (≤ {MOST_PAINT_MS:.0f}), "
            f"{paint / nothing:.1f} × an empty page's"
            f"{'' if fine else '   MISSED'}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
