"""Tables of a run that anybody wrote: its numbers of 64 bits, and its links."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import bakeoff
from harness.errors import RunError, UsageError
from harness.store.dataset import Dataset
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.sql import schema
from tests.outcomes import seal
from tests.runs import Behaviour, RecordedCell, write_run

CELL = RecordedCell(behaviour=Behaviour(windows=3, warmup=1))
NUMBERS = (2**31, -(2**31) - 1, 2**62, -(2**62), 2**63 - 1, -(2**63))
RANK = ("ranks", 0)
# By file: the way to each whole number in it, and the table that shows it.
PLACES: tuple[tuple[str, tuple[str | int, ...], str], ...] = (
    ("outcome.json", ("position",), "trials"),
    ("outcome.json", ("started_wall_ns",), "trials"),
    ("outcome.json", ("ended_wall_ns",), "trials"),
    ("outcome.json", ("leftovers",), ""),
    ("outcome.json", ("survivors",), ""),
    ("outcome.json", (*RANK, "rank"), "ranks"),
    ("outcome.json", (*RANK, "pid"), "ranks"),
    ("outcome.json", (*RANK, "exit_code"), "ranks"),
    ("outcome.json", (*RANK, "signal"), "ranks"),
    ("outcome.json", (*RANK, "max_rss_bytes"), "ranks"),
    ("outcome.json", (*RANK, "started_ns"), "ranks"),
    ("outcome.json", (*RANK, "dropped_bytes"), ""),
    ("run.json", ("started_wall_ns",), "runs"),
    ("plan.json", ("seed",), "runs"),
    ("plan.json", ("cells", 0, "parameters"), "cells"),
    ("plan.json", ("cells", 0, "macs"), "cells"),
    ("plan.json", ("cells", 0, "epoch_samples"), "cells"),
)
OF_OUTCOMES = tuple(at for file, at, _ in PLACES if file == "outcome.json")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path, [CELL])


def first_trial(run: Path) -> TrialPaths:
    return RunPaths(run).trial(CELL.key, TrialName(1))


def change(file: Path, number: int, *at: str | int) -> None:
    """Put a number into a JSON file, where these keys lead."""
    value = json.loads(file.read_text())
    inside: Any = value
    for key in at[:-1]:
        inside = inside[key]
    inside[at[-1]] = number
    file.write_text(json.dumps(value))
    if file.name == "outcome.json":
        seal(TrialPaths(file.parent))


@pytest.mark.parametrize(("file", "at", "table"), PLACES)
def test_every_number_of_64_bits_is_shown_as_it_is_written(
    run: Path, file: str, at: tuple[str | int, ...], table: str
) -> None:
    place = first_trial(run).outcome if file == "outcome.json" else run / file
    for number in NUMBERS:
        change(place, number, *at)
        dataset = Dataset([run])
        for name in schema.NAMES:
            dataset.sql(f'select * from "{name}"')
        if table:
            assert (number,) in dataset.sql(f"select {at[-1]} from {table}").rows


@pytest.mark.parametrize("number", NUMBERS)
def test_a_run_with_numbers_of_64_bits_is_reported(run: Path, number: int) -> None:
    for at in OF_OUTCOMES:
        change(first_trial(run).outcome, number, *at)
    bakeoff.main(["report", str(run)], standalone_mode=False)
    bakeoff.main(["sql", str(run), "select * from trials, ranks"], standalone_mode=False)


@pytest.mark.parametrize("at", OF_OUTCOMES)
def test_a_number_beyond_64_bits_costs_its_trial_and_is_named(
    run: Path, at: tuple[str | int, ...]
) -> None:
    whole = len(Dataset([run]).trials)
    file = first_trial(run).outcome
    change(file, 2**63, *at)
    dataset = Dataset([run])
    assert dataset.sql("select count(*) from trials").rows == ((whole - 1,),)
    (told,) = dataset.warnings
    assert str(file) in told
    assert str(at[-1]) in told


def table_is_a_link(run: Path, outside: Path) -> None:
    first_trial(run).sample_table("node0").symlink_to(outside / "secret")


def events_are_a_link(run: Path, outside: Path) -> None:
    events = first_trial(run).events(0)
    events.unlink()
    events.symlink_to(outside / "secret")


def trial_is_a_link(run: Path, outside: Path) -> None:
    moved = first_trial(run).root.rename(outside / "moved")
    (moved / "samples.node0.parquet").write_text("secret")
    first_trial(run).root.symlink_to(moved)


def cell_is_a_link(run: Path, outside: Path) -> None:
    moved = first_trial(run).root.parent.rename(outside / "moved")
    (moved / "trial-1" / "samples.node0.parquet").write_text("secret")
    first_trial(run).root.parent.symlink_to(moved)


def table_is_a_folder_that_is_a_link(run: Path, outside: Path) -> None:
    first_trial(run).sample_table("node0").symlink_to(outside)


LINKS = (
    table_is_a_link,
    events_are_a_link,
    trial_is_a_link,
    cell_is_a_link,
    table_is_a_folder_that_is_a_link,
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


@pytest.mark.parametrize("link", LINKS)
def test_a_link_lets_no_query_read_what_it_points_to(
    run: Path, outside: Path, link: Callable[[Path, Path], None]
) -> None:
    link(run, outside)
    targets = [one for one in outside.rglob("*") if one.is_file()]
    assert targets
    dataset = Dataset([run])
    assert any("link" in one and "left out" in one for one in dataset.warnings)
    through = first_trial(run).sample_table("node0")
    for target in (*targets, through, through / "secret"):
        with pytest.raises(UsageError, match="Permission Error"):
            dataset.sql(f"select * from read_text('{target}')")


def test_of_a_run_whose_trials_all_lie_behind_a_link_none_is_read(run: Path, outside: Path) -> None:
    RunPaths(run).cells.rename(outside / "moved")
    RunPaths(run).cells.symlink_to(outside / "moved")
    dataset = Dataset([run])
    assert dataset.trials == ()
    assert any("cells is a link" in one for one in dataset.warnings)


def test_a_link_that_replaces_events_after_they_were_read_is_refused(
    run: Path, outside: Path
) -> None:
    dataset = Dataset([run])
    events_are_a_link(run, outside)
    with pytest.raises(RunError, match="link"):
        dataset.sql("select 1")


def test_a_file_with_a_second_name_is_read(run: Path, outside: Path) -> None:
    asked = "select count(*) from windows"
    wanted = Dataset([run]).sql(asked).rows
    os.link(first_trial(run).events(0), outside / "same")
    dataset = Dataset([run])
    assert dataset.warnings == ()
    assert dataset.sql(asked).rows == wanted
