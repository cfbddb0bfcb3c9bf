"""The accessibility checker that pages are held to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

from tests import needs

HERE = Path(__file__).parent


@cache
def source() -> str:
    """Give the checker's source, installed from its lock on first use."""
    place = HERE / "node_modules" / "axe-core" / "axe.min.js"
    if not place.exists():
        npm = shutil.which("npm")
        if npm is None:
            needs.missing("npm", "install it, for example: apt-get install npm")
        command = [str(npm), "ci", "--prefix", str(HERE), "--ignore-scripts", "--no-audit"]
        subprocess.run(command, check=True, capture_output=True)
    return place.read_text(encoding="utf-8")


def faults(page: Page, only: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """Say what is wrong with a page as it is shown, into which the source was loaded.

    ``only`` names rules, all others are left out then.
    """
    asked = {"resultTypes": ["violations"], **({"runOnly": list(only)} if only else {})}
    found = page.evaluate("(asked) => axe.run(document, asked)", asked)
    return [(v["id"], [n["html"][:160] for n in v["nodes"][:3]]) for v in found["violations"]]
