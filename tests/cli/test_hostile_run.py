"""A run directory that somebody sends: reading it writes nowhere else and shows nothing else."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import bakeoff
from harness.errors import BakeoffError
from harness.store.layout import RunPaths
from tests.outcomes import seal_all
from tests.runs import RecordedCell, write_run

SECRET = "the-secret-of-the-user"
VERBS = (
    "list runs",
    "show {}",
    "report {}",
    "status {}",
    "watch --once {}",
    "watch --json {}",
    "export --to csv {} --output out.csv",
    "export --to json {} --output out.json",
    "compare {} {}-fine",
    "compare {}-fine {}",
)
QUERIES = (
    "select count(*) from windows, facts, units",
    "select count(*) from samples",
)


SOME_VERBS = ("list runs", "status {}", "watch --once {}", "report {}")


def read_with_every_verb(run: Path, verbs: Sequence[str] = VERBS) -> None:
    """Open a run as all verbs do that only read; they may refuse it in one message."""
    lines = [words.replace("{}", str(run)).split() for words in verbs]
    lines += [["sql", str(run), query] for query in QUERIES]
    for arguments in lines:
        try:
            bakeoff.main(arguments, standalone_mode=False)
        except BakeoffError as refused:
            print(refused)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    root = write_run(tmp_path / "runs", [RecordedCell()])
    root.rename(root.with_name("fine"))
    write_run(tmp_path / "runs", [RecordedCell()]).rename(tmp_path / "runs" / "sent")
    (tmp_path / "runs" / "sent-fine").symlink_to("fine")
    return Path("runs/sent")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "inner").mkdir(parents=True)
    (folder / "secret").write_text(f'{{"title": "{SECRET}", "version": 2}}\n')
    (folder / "secret.toml").write_text(f'[[finding]]\nclaim = "{SECRET}"\n')
    return folder


def first_trial(paths: RunPaths) -> Path:
    return sorted(paths.cells.glob("*/trial-1"))[0]


PLACES: Mapping[str, Callable[[RunPaths], Path]] = {
    "run.json": lambda paths: paths.run,
    "plan.json": lambda paths: paths.plan,
    "study.toml": lambda paths: paths.study,
    "provenance.json": lambda paths: paths.provenance,
    "lock": lambda paths: paths.lock,
    "log.jsonl": lambda paths: paths.log,
    "jobs.json": lambda paths: paths.jobs,
    "results.json": lambda paths: paths.results,
    "report.html": lambda paths: paths.report,
    ".report.html.new": lambda paths: paths.root / ".report.html.new",
    "environment": lambda paths: paths.environment("torch-cpu"),
    "gate": lambda paths: paths.gate / f"{first_trial(paths).parent.name}.json",
    "outcome": lambda paths: first_trial(paths) / "outcome.json",
    "events": lambda paths: first_trial(paths) / "events.0.jsonl",
    "samples": lambda paths: first_trial(paths) / "samples.node0.bin",
    "table": lambda paths: first_trial(paths) / "samples.node0.parquet",
    "job": lambda paths: first_trial(paths) / "job.json",
}


def gone(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    return path


def outside_state(folder: Path) -> dict[str, bytes | None]:
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None
        for one in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize("place", PLACES)
def test_a_link_in_a_run_is_neither_read_nor_written_through(
    run: Path, outside: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = outside_state(outside)
    target = outside / ("secret.toml" if place == "study.toml" else "secret")
    gone(PLACES[place](RunPaths(run))).symlink_to(target)
    read_with_every_verb(run)
    assert outside_state(outside) == before
    told = capsys.readouterr()
    page = run / "report.html"
    texts = [told.out, told.err, *(one.read_text() for one in Path().glob("out.*"))]
    texts += [page.read_text()] if page.exists() and not page.is_symlink() else []
    assert not any(SECRET in text for text in texts)


FOLDERS = ("cells", "cells/KEY", "cells/KEY/trial-1", "report-data", "environments", "gate")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_that_is_a_link_is_not_entered(run: Path, outside: Path, folder: str) -> None:
    key = first_trial(RunPaths(run)).parent.name
    place = run / folder.replace("KEY", key)
    if place.exists():
        place.rename(outside / "moved")
        place.symlink_to(outside / "moved")
    else:
        place.symlink_to(outside / "inner")
    before = outside_state(outside)
    read_with_every_verb(run)
    assert outside_state(outside) == before


@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_in_a_run_keeps_nobody_waiting(run: Path, place: str) -> None:
    os.mkfifo(gone(PLACES[place](RunPaths(run))))
    read_with_every_verb(run, SOME_VERBS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("place", PLACES)
def test_a_device_in_a_run_is_not_read(run: Path, place: str) -> None:
    try:
        os.mknod(gone(PLACES[place](RunPaths(run))), 0o644 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("this root may not make a device")
    read_with_every_verb(run)


@pytest.mark.parametrize("place", PLACES)
def test_a_sparse_file_of_a_terabyte_in_a_run_fills_no_memory(run: Path, place: str) -> None:
    with gone(PLACES[place](RunPaths(run))).open("wb") as file:
        file.truncate(1 << 40)
    read_with_every_verb(run, SOME_VERBS)


@pytest.mark.parametrize("place", PLACES)
def test_what_is_nested_too_deeply_in_a_run_is_damage(run: Path, place: str) -> None:
    gone(PLACES[place](RunPaths(run))).write_text('{"event":' + "[" * 200_000 + "\n")
    read_with_every_verb(run, SOME_VERBS)


def test_what_a_desktop_leaves_in_folders_is_no_part_of_a_run(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in [run, *(one for one in run.rglob("*") if one.is_dir())]:
        for name in (".DS_Store", "._x.json", "._trial-1", "Thumbs.db"):
            (folder / name).write_bytes(b"\0\5\26\7\0\2\0\0Mac OS X")
    read_with_every_verb(run)
    told = capsys.readouterr()
    lines = (told.out + told.err).splitlines()
    platform = "plan.json is damaged: platform."  # the recorded one names no real machine
    assert not [line for line in lines if "damaged" in line and platform not in line]
    assert "Thumbs" not in told.out + told.err
    assert (run / "report.html").exists()


@pytest.mark.parametrize("length", [None, 0, -3, 0.5, 65, 10**9])
def test_texts_that_no_network_can_be_fed_are_refused_or_shown(
    length: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = RecordedCell("tinybert", unit="tokens", factors={"sequence": length})
    read_with_every_verb(write_run(tmp_path / "runs" / "r", [told]))


def test_the_host_of_a_rank_cannot_name_another_folder(
    run: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = first_trial(RunPaths(run)) / "outcome.json"
    file.write_text(file.read_text().replace('"node0"', '"../../../../../outside/inner/x"'))
    seal_all(run)
    before = outside_state(outside)
    read_with_every_verb(run)
    assert outside_state(outside) == before
    assert f"{file} is damaged: '../../../../../outside/inner/x' cannot be a node" in (
        " ".join(capsys.readouterr().err.split())
    )
