"""Say where raw data lie from a page, so that a reader can open them.

Only what lies beside a page or below is linked: such a folder moves and is mailed as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from harness.analysis.results import Results


@dataclass(frozen=True)
class Links:
    """The way from the page to each run's directory; a run that cannot be reached is not there."""

    roots: Mapping[str, str]

    @classmethod
    def of(cls, results: Results, page: Path | None) -> Links:
        """Find the runs that lie beside a page or below; none if nobody knows where it will lie."""
        roots = {}
        if page is not None:
            folder = page.resolve().parent
            for run in results.runs:
                directory = Path(run.directory).resolve()
                if directory.is_relative_to(folder):
                    roots[run.name] = directory.relative_to(folder).as_posix()
        return cls(roots)

    def to(self, path: str) -> str:
        """Give the address of ``run/cells/…`` from the page; empty where it has none."""
        for run, root in self.roots.items():
            if path.startswith(f"{run}/"):
                rest = path.removeprefix(f"{run}/")
                return quote(os.fsencode(rest if root == "." else f"{root}/{rest}"))
        return ""
