"""Plant every fault that a test plants, and write a table of what caught it.

``python -m tests.mutations`` goes on where it was interrupted: what was found is kept by the code
that it was found in. Words that follow are pytest's own, for example ``-k torch``; exit code 1 says
that a fault was missed, or named otherwise than it should be.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "mutations"
_TESTED = ("harness/worker", "harness/gate", "harness/exact", "harness/verdicts", "workloads")
_TESTED += ("harness/data", "tests/gate")


class Keeper:
    """Leaves out what is known, and keeps each fault's fate as soon as it is."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept
        self.known = {one["test"]: one for one in _lines(kept)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave what is known to the table."""
        items[:] = [item for item in items if item.nodeid not in self.known]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a fault's fate; what could not run is tried again."""
        told = dict(report.user_properties)
        if report.when == "call" and "fault" in told:
            one = {"test": report.nodeid, **told, "passed": report.passed}
            self.known[report.nodeid] = one
            with self._kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")


def main(words: Sequence[str]) -> int:
    """Plant what is left, write the table, and say what was missed."""
    OUT.mkdir(parents=True, exist_ok=True)
    keeper = Keeper(OUT / f"{tested_code()}.jsonl")
    options = ["-m", "planted", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    code = pytest.main([*options, str(ROOT / "tests/gate"), *words], plugins=[keeper])
    text = table(list(keeper.known.values()))
    (OUT / "table.md").write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    missed = [one for one in keeper.known.values() if not one["passed"]]
    return int(bool(missed) or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED))


def tested_code() -> str:
    """Give a digest of what is tested: fates in other code are not counted together."""
    digest = hashlib.sha256()
    for folder in _TESTED:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".toml"):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def table(found: Sequence[dict[str, Any]]) -> str:
    """Lay out a row for each fault, and what all come to; named as in its first framework."""
    rows = sorted(found, key=lambda one: (one["fault"], one["framework"]))
    lines = ["| fault | planted in | caught by | named as |", "|---|---|---|---|"]
    for fault, group in groupby(rows, key=lambda one: str(one["fault"])):
        ones = list(group)
        where = ", ".join(one["framework"] + _fate(one) for one in ones)
        by = ", ".join(dict.fromkeys(name for one in ones for name in one["by"].split(", ")))
        named = next((one["named"] for one in ones if one["named"]), "–").replace("|", "\\|")
        lines.append(f"| {fault} | {where} | {by} | {named} |")
    return "\n".join([*lines, "", *_counts(rows), ""])


def _fate(one: dict[str, Any]) -> str:
    if one["named"] is None:
        return " (**missed**)"
    return "" if one["passed"] else " (**named otherwise**)"


def _counts(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    caught = sum(one["named"] is not None for one in rows)
    right = sum(one["passed"] for one in rows)
    faults = len({one["fault"] for one in rows})
    by = Counter(one["framework"] for one in rows)
    each = ", ".join(f"{name} {count}" for name, count in sorted(by.items()))
    yield f"{faults} faults, planted {len(rows)} times ({each}): {caught} caught, {right} named."


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
