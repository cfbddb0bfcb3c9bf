"""Hold the documentation to the product: what exists is described, in its own words."""

from __future__ import annotations

import ast
import importlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli.main import VERBS, bakeoff
from harness.store import layout
from harness.study.factors import FACTORS
from harness.study.framework import read_framework
from harness.study.framework_file import (
    Difference,
    FrameworkFile,
    Reader,
    RequirementTable,
    Strategy,
)
from harness.study.framework_variables import RANK_FACTS, Variables
from harness.study.measure import MeasureTable
from harness.study.study import StudyFile, load_study
from harness.worker import events
from reports.exports.results_file import ResultsFile

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_described(verb: str) -> None:
    assert f"`bakeoff {verb}" in read("commands.md")


@pytest.mark.parametrize("factor", FACTORS)
def test_every_factor_is_described_with_its_meaning(factor: str) -> None:
    row = next(line for line in read("studies.md").splitlines() if line.startswith(f"| `{factor}`"))
    assert FACTORS[factor].meaning in row


@pytest.mark.parametrize("key", [*StudyFile.model_fields, *MeasureTable.model_fields])
def test_every_key_of_a_study_is_described(key: str) -> None:
    assert f"| `{key}` |" in read("studies.md")


@pytest.mark.parametrize("field", ResultsFile.__dataclass_fields__)
def test_every_field_of_the_results_is_described(field: str) -> None:
    rows = [line.split("|")[1] for line in read("results.md").splitlines() if line.startswith("|")]
    assert any(f"`{field}`" in row for row in rows)


KEYS = (FrameworkFile, Strategy, Reader, Variables, RequirementTable, Difference)


@pytest.mark.parametrize("key", sorted({key for table in KEYS for key in table.model_fields}))
def test_every_key_of_a_framework_is_described(key: str) -> None:
    page = read("adding-a-framework.md")
    assert re.search(rf"^{key} = |^\[+{key}[\].]|`{key}( = |`)", page, re.MULTILINE)


@pytest.mark.parametrize("fact", RANK_FACTS)
def test_all_that_a_rank_can_be_told_is_described(fact: str) -> None:
    assert f"`${fact}`" in read("adding-a-framework.md")


def test_the_framework_shown_in_the_docs_can_be_read(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", read("adding-a-framework.md"), re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(blocks[0], encoding="utf-8")
    assert read_framework(path).strategy("ring").environment == "ring"


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_what_every_json_holds_is_described() -> None:
    rows = read("results.md").partition("## What `--json` prints")[2].splitlines()
    told = {
        name.removeprefix("bakeoff ")
        for row in rows
        if row.startswith("| `")
        for name in re.findall(r"`([^`]+)`", row.split("|")[1])
    }
    printing = {
        name
        for name, command in commands(bakeoff)
        if any("--json" in option.opts for option in command.params)
    }
    assert told == printing


def test_every_event_is_described_as_the_format_states_it() -> None:
    stated = ast.get_docstring(ast.parse(Path(events.__file__).read_text(encoding="utf-8")))
    assert stated is not None
    table = textwrap.dedent("\n".join(x for x in stated.splitlines() if x.startswith("    ")))
    assert table in read("run-directory.md")


def test_the_map_of_a_run_directory_is_the_layout_s_own() -> None:
    stated = ast.get_docstring(ast.parse(Path(layout.__file__).read_text(encoding="utf-8")))
    assert stated is not None
    assert textwrap.dedent(stated.split("\n\n", 1)[1]) in read("run-directory.md")


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=str)
def test_a_study_shown_in_the_docs_can_be_read(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for number, block in enumerate(block for block in blocks if "[matrix]" in block):
        path = tmp_path / f"{number}.toml"
        path.write_text(block, encoding="utf-8")
        load_study(path)


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=str)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def places(page: Path) -> set[str]:
    """Give the names by which links reach the headings of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md"], ids=str)
def test_links_lead_to_headings(page: Path) -> None:
    for target, place in re.findall(
        r"\]\(([^)#:]*\.md|)#([^)]+)\)", page.read_text(encoding="utf-8")
    ):
        assert place in places(page.parent / target if target else page), f"{target}#{place}"


@pytest.mark.parametrize("path", sorted((ROOT / "reports/exports/formats").glob("[!_]*.py")))
def test_every_format_of_export_writes_something_and_is_described(path: Path) -> None:
    module = importlib.import_module(f"reports.exports.formats.{path.stem}")
    assert any(hasattr(module, name) for name in ("of_table", "of_results", "of_figure"))
    assert f"`{path.stem}`" in read("commands.md")


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=str
)
def test_files_named_in_the_docs_exist(page: Path) -> None:
    folders = "harness|reports|tests|workloads|platforms|examples"
    named = rf"(?<![\w/])(?:{folders})/[\w/.]+\.(?:py|toml|json)"
    for name in set(re.findall(named, page.read_text(encoding="utf-8"))):
        is_pattern = re.search(r"[A-Z]{2}", name) or name == "platforms/ours.toml"
        assert is_pattern or (ROOT / name).exists(), name
