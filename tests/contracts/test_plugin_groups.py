"""Hold each group of plug-ins to being alive: declared, read by somebody, and not empty."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from harness import plugins

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "bakeoff."
DECLARED = sorted(
    name.removeprefix(PREFIX)
    for name in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "entry-points"
    ]
    if name.startswith(PREFIX)
)
LOOK_UP = re.compile(r'\bplugins\.(?:modules|files|loaded|load)\(\s*"(\w+)"')


def read() -> set[str]:
    """Name the groups that the product looks plug-ins up in."""
    paths = [path for room in ("harness", "reports") for path in (ROOT / room).rglob("*.py")]
    own = Path(plugins.__file__)
    texts = [path.read_text(encoding="utf-8") for path in paths if path != own]
    texts.append(re.sub(r"\b(modules|files|load)\(", r"plugins.\1(", own.read_text("utf-8")))
    return {group for text in texts for group in LOOK_UP.findall(text)}


def test_there_are_groups() -> None:
    assert {"workloads", "adapters", "launchers", "samplers", "sections", "platforms"} <= set(
        DECLARED
    )


def test_every_declared_group_is_read_and_every_group_read_is_declared() -> None:
    assert read() == set(DECLARED)


@pytest.mark.parametrize("group", DECLARED)
def test_a_group_has_members_and_none_of_ours_is_broken(group: str) -> None:
    entries = {**plugins.modules(group), **plugins.files(group)}
    assert entries, "declared and not installed? run: make setup"
    assert [one for one in entries.values() if one.problem is not None] == []


@pytest.mark.parametrize(
    ("group", "parts"),
    [
        ("workloads", {"WORKLOAD"}),
        ("launchers", {"SETTINGS", "launch", "nodes", "reach"}),
        ("samplers", {"HZ", "BLOCKS", "open"}),
        ("sections", {"SECTION"}),
    ],
)
def test_each_module_that_the_host_imports_can_be_imported_and_holds_its_parts(
    group: str, parts: set[str]
) -> None:
    lacking = {}
    for entry, module in plugins.loaded(group):
        if module is None:
            lacking[entry.name] = entry.problem
        elif missing := parts - set(vars(module)):
            lacking[entry.name] = ", ".join(sorted(missing))
    assert lacking == {}


def test_nothing_speaks_of_a_group_that_is_not_declared() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", Path(plugins.__file__)]
    naming = re.compile(r"entry-point\s+groups?(?:\s+such\s+as)?\s+`+bakeoff\.([a-z]+)`")
    spoken = [one for page in pages for one in naming.findall(page.read_text(encoding="utf-8"))]
    assert spoken
    assert set(spoken) <= set(DECLARED)


def test_the_doctor_looks_through_the_declared_groups() -> None:
    assert set(plugins.GROUPS) == set(DECLARED)
