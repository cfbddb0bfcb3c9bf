"""Hold the pages to the files that a person writes: every TOML key is named there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from harness import plugins
from harness.plan.editor_schema import schemas
from harness.study.factors import FACTORS
from harness.study.framework import framework_info

DOCS = Path(__file__).resolve().parents[2] / "docs"
INTERNAL = {"as_found", "name"}  # of a platform: what Bakeoff itself fills in
PAGES = {
    "study": "studies.md",
    "platform": "platforms.md",
    "framework": "adding-a-framework.md",
}


@cache
def read(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@cache
def code(page: str) -> frozenset[str]:
    """Give the words that a page sets as code: in a block, or between backticks."""
    text = read(page)
    blocks = re.findall(r"```.*?```|^(?:    .*\n)+", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`[^`\n]+`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return frozenset(re.findall(r"[A-Za-z_]\w*", "\n".join([*blocks, *spans])))


def keys(schema: dict[str, Any]) -> set[str]:
    """Give the keys of a file but those of factors, which have a page of their own."""
    frameworks = set(plugins.adapter_files())

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, list):
            for one in node:
                yield from walk(one)
        elif isinstance(node, dict):
            properties = node.get("properties", {})
            if not frameworks & set(properties):
                yield from (key for key in properties if key not in FACTORS)
                yield from walk(list(properties.values()))
            yield from walk([value for name, value in node.items() if name != "properties"])

    return set(walk(schema))


CASES = [(file, key) for file in PAGES for key in sorted(keys(schemas()[file]))]


@pytest.mark.parametrize(("file", "key"), CASES)
def test_every_key_of_a_file_is_named_on_its_page(file: str, key: str) -> None:
    if file == "platform" and key in INTERNAL:
        return
    assert key in code(PAGES[file]), f"docs/{PAGES[file]} does not name the key {key}"


@pytest.mark.parametrize("name", sorted(plugins.adapter_files()))
def test_every_option_of_a_framework_is_described(name: str) -> None:
    for option, factor in framework_info(name).options.items():
        row = f"| `{name}.{option}` | {factor.meaning}"
        assert row in read("frameworks.md"), f"docs/frameworks.md lacks: {row}"
