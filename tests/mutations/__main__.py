"""Plant every fault that a test plants, train clean networks, and write tables of what was found.

``python -m tests.mutations`` goes on where it was interrupted: what was found is kept by the code
that it was found in. ``--lanes`` says how many tests run side by side; words that follow are
pytest's own, for example ``-k torch``. Exit code 1 says that a fault was missed, or named otherwise
than it should be, or that a clean network was refused.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutations import tables

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "mutations"
_TESTED = ("harness/worker", "harness/gate", "harness/exact", "harness/verdicts", "workloads")
_TESTED += ("harness/data", "tests/gate")
_TIMEOUT_S = 1200
"""Beyond what a busy machine takes for one fault: nothing here is timed."""


class Keeper:
    """Leaves out what is known, and keeps what each test found as soon as it has ended."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self.known = {one["test"]: one for one in _lines(kept)}
        self.untold: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a fault's or a network's fate; what could not run is tried again."""
        told = dict(report.user_properties)
        if report.when == "call" and tables.KINDS & told.keys():
            one = {"test": report.nodeid, **told, "passed": report.passed}
            one["seconds"] = round(report.duration, 1)
            self.known[report.nodeid] = one
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
        elif report.failed:
            self.untold.append(report.nodeid)


def main(words: Sequence[str]) -> int:
    """Run what is left, write the tables, and say what was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--lanes", type=int, default=min(2, os.cpu_count() or 1))
    asked, further = parser.parse_known_args(words)
    OUT.mkdir(parents=True, exist_ok=True)
    keeper = Keeper(OUT / f"{tested_code()}.jsonl")
    options = ["-m", "planted or seeded", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    options += [f"--timeout={_TIMEOUT_S}"]
    options += ["-n", str(asked.lanes), "--dist", "worksteal"] if asked.lanes > 1 else []
    options += [f"--deselect={test}" for test in keeper.known]
    code = pytest.main([*options, str(ROOT / "tests/gate"), *further], plugins=[keeper])
    text = tables.planted(keeper.known.values()) + "\n" + tables.seeded(keeper.known.values())
    text += tables.untold(keeper.untold)
    (OUT / "table.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    failed = [one for one in keeper.known.values() if not one["passed"]]
    return int(bool(failed) or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


def tested_code() -> str:
    """Give a digest of what is tested: fates in other code are not counted together."""
    digest = hashlib.sha256()
    for folder in _TESTED:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".toml"):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
