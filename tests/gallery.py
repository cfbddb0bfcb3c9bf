"""Measure the studies of docs/gallery/ anew on this machine, and write their pages and the picture.

Names of studies take those alone; ``--pages-only`` writes the pages from the runs that are there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests import needs
from tests.browser.conftest import FLAGS

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "docs" / "gallery"
BAKEOFF = Path(sys.executable).with_name("bakeoff")
IN_USE = ("--set", "measure.turns=false", "--set", 'measure.tolerate=["contended"]')
"""For a machine that is never left alone: the pages say so."""
STUDIES = {
    "quickstart": ("quickstart",),
    "frameworks": (str(ROOT / "examples" / "frameworks.toml"),),
    "why": (str(ROOT / "examples" / "why.toml"),),
    "why-bf16": (str(ROOT / "examples" / "why-bf16.toml"),),
    "lee2021": (
        "lee2021",
        *("--size", "smoke", "--only", "workload=read-traces", "--set", "measure.trials=6"),
        *IN_USE,
    ),
}
PICTURE = "quickstart"


def main(arguments: list[str]) -> None:
    """Run the studies unless only pages are asked for; then write everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STUDIES))
    parser.add_argument("--pages-only", action="store_true")
    asked = parser.parse_args(arguments)
    work = ROOT / "build" / "gallery"
    work.mkdir(parents=True, exist_ok=True)
    for name in asked.names or STUDIES:
        if not asked.pages_only:
            shutil.rmtree(work / "runs" / name, ignore_errors=True)  # what was measured before
            subprocess.run([BAKEOFF, "run", *STUDIES[name], "--name", name], cwd=work, check=True)
        # A pipe takes the page alone, without the files that would lie beside it.
        words = [BAKEOFF, "report", name, "--output", "/dev/stdout"]
        page = subprocess.run(words, cwd=work, check=True, stdout=subprocess.PIPE).stdout
        (GALLERY / f"{name}.html").write_bytes(page)
    first_screen(GALLERY / f"{PICTURE}.html", GALLERY / "first-screen.png")


def first_screen(page: Path, picture: Path) -> None:
    """Take the picture of what a reader sees first."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs.chromium(), args=FLAGS)
        window = browser.new_page(viewport={"width": 1280, "height": 900})
        window.goto(page.as_uri())
        window.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
