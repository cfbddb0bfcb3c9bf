from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness.errors import DamagedFile, FullDisk, RunError
from harness.store.files import explained
from harness.store.layout import RunPaths, TrialName, TrialPaths
from harness.store.outcome import write_outcome
from harness.store.paths.birth import born_ns
from harness.store.run_directory import opening, session_log, trial_folders
from harness.store.run_directory.identity import claim, is_copy
from tests.needs import small_disk
from tests.outcomes import ended


def test_a_run_is_made_once(tmp_path):
    with opening.creating(tmp_path / "run", {"id": "x"}):
        pass
    with (
        pytest.raises(RunError, match="bakeoff resume"),
        opening.creating(tmp_path / "run", {"id": "y"}),
    ):
        pass
    assert opening.open_run(tmp_path / "run").root == tmp_path / "run"


def test_a_copy_on_another_file_system_is_one_though_its_inode_is_the_same(tmp_path):
    with small_disk(tmp_path / "one", "1m") as one, small_disk(tmp_path / "two", "1m") as two:
        with opening.creating(one / "run", {}) as original:
            if born_ns(original.root) is None:
                pytest.skip("this file system does not keep when a folder was made")
        copy = RunPaths(shutil.copytree(one / "run", two / "run"))
        assert copy.root.stat().st_ino == original.root.stat().st_ino
        assert is_copy(copy)
        assert claim(copy)
        assert not is_copy(copy)
        assert read_id(copy) != read_id(original)
        moved = RunPaths(original.root.rename(one / "renamed"))
        assert not is_copy(moved)
        assert not claim(moved)


def test_of_a_run_that_failed_to_be_made_nothing_is_removed_but_itself(tmp_path):
    whole = tmp_path / "whole"
    with opening.creating(whole, {}):
        pass

    def make_one_that_is_replaced() -> None:
        with opening.creating(tmp_path / "run", {}) as paths:
            paths.root.rename(tmp_path / "away")
            whole.rename(paths.root)
            paths.files.write(paths.study, "not this run's")

    with pytest.raises(RunError, match="another directory is here now"):
        make_one_that_is_replaced()
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == ["cells", "run.json"]


def read_id(paths: RunPaths) -> str:
    return str(json.loads(paths.run.read_text())["id"])


def test_a_full_disk_is_named_with_the_lock_that_finds_no_room(tmp_path):
    with small_disk(tmp_path / "small", "64k") as disk:
        with opening.creating(disk / "run", {}) as paths:
            pass
        with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
            while ballast.write(bytes(512)):
                pass
        with pytest.raises(FullDisk, match=r"run/lock: the disk is full"), opening.locked(paths):
            pass


def test_a_run_without_its_trials_says_which_folder_is_missing(tmp_path):
    with opening.creating(tmp_path / "run", {}) as paths:
        paths.cells.rmdir()
        with pytest.raises(DamagedFile, match="cells: this folder is missing, and with it all"):
            trial_folders.outcomes(paths)


MAKE_ONE = """
import sys
from pathlib import Path
from harness.store.run_directory.opening import creating
sys.stdin.read()
with creating(Path(sys.argv[1]), {}, numbered=True) as paths:
    print(paths.root.name)
"""


def test_processes_that_make_a_run_of_one_name_at_once_get_one_each(tmp_path):
    argv = [sys.executable, "-c", MAKE_ONE, str(tmp_path / "runs" / "one")]
    makers = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.close()  # all begin now
    names = set()
    for maker in makers:
        with maker:
            assert maker.stdout is not None
            names.add(maker.stdout.read().strip())
    assert names == {"one", "one-2", "one-3", "one-4"}


def test_only_run_directories_of_our_format_are_opened(tmp_path):
    with pytest.raises(RunError, match="no run directory"):
        opening.open_run(tmp_path)
    for version in (1, 99):
        (tmp_path / "run.json").write_text(json.dumps({"version": version}))
        with pytest.raises(RunError, match=f"format {version}, and this bakeoff reads format"):
            opening.open_run(tmp_path)


def test_a_run_cannot_be_made_where_nobody_may_write():
    with pytest.raises(RunError, match=r"may not write|read-only"):
        opening.creating(Path("/sys/bakeoff"), {}).__enter__()


def test_nothing_is_left_of_a_run_that_could_not_be_made_whole(tmp_path):
    with (
        pytest.raises(RunError, match=r"the disk is full\. Free some space, then try again\.$"),
        opening.creating(tmp_path / "run", {"id": "x"}),
        explained(tmp_path),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not list(tmp_path.iterdir())


HOLD = """
import sys
from pathlib import Path
from harness.store.layout import RunPaths
from harness.store.run_directory.opening import locked
with locked(RunPaths(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_names_its_holder_and_does_not_survive_it(tmp_path):
    paths = RunPaths(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RunError, match=f"process {holder.pid} on "), opening.locked(paths):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with opening.locked(paths):
        assert str(os.getpid()) in paths.lock.read_text()


class Trials(RuleBasedStateMachine):
    """Whatever is cut off, a trial is complete or absent, and its job is there with it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        with opening.creating(Path(self.folder) / "run", {"id": "x"}) as self.paths:
            pass
        self.running: set[TrialName] = set()
        self.done: set[TrialName] = set()

    names = some.builds(TrialName, some.integers(1, 4), some.integers(1, 3))

    @rule(name=names)
    def start(self, name: TrialName) -> None:
        if name not in self.running | self.done:
            trial_folders.make_trial(self.paths, "cell", name, "{}")
            self.running.add(name)

    @precondition(lambda self: self.running)
    @rule(data=some.data())
    def end(self, data: some.DataObject) -> None:
        name = data.draw(some.sampled_from(sorted(self.running)))
        how = ended(cell_key="cell", trial=str(name))
        write_outcome(how, self.paths.trial("cell", name))
        self.running.remove(name)
        self.done.add(name)

    @rule(name=names)
    def crash_while_making(self, name: TrialName) -> None:
        beside = self.paths.cells / "cell" / f".{name}.new"
        beside.mkdir(parents=True, exist_ok=True)
        TrialPaths(beside).job.write_text('{"cut')

    @precondition(lambda self: self.running)
    @rule(data=some.data())
    def crash_while_ending(self, data: some.DataObject) -> None:
        trial = self.paths.trial("cell", data.draw(some.sampled_from(sorted(self.running))))
        trial.outcome.with_name(".outcome.json.new").write_text('{"outcome": "o')

    @rule()
    def clean_up(self) -> None:
        trial_folders.set_interrupted_aside(self.paths)
        self.running.clear()
        cell = self.paths.cells / "cell"
        left = {one.name for one in cell.iterdir()} if cell.exists() else set()
        assert left == {str(name) for name in self.done}

    @invariant()
    def complete_trials_are_what_is_counted(self) -> None:
        assert set(trial_folders.outcomes(self.paths).get("cell", {})) == self.done
        for name in self.running | self.done:
            assert self.paths.trial("cell", name).job.read_text() == "{}"

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestTrials = Trials.TestCase
TestTrials.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)


LEFT = (
    *("plan.json", "run.json", "environments/null.json", "gate/key.json", "jobs/1.sh"),
    *("cells/key/trial-1/outcome.json", "cells/key/trial-1/job.json"),
)
WRITTEN_BY_ANYBODY = (
    *("report.html", "mine.html", "report-data/key.csv", "cells/key/trial-1/samples.n.parquet"),
)


def test_what_a_killed_process_left_half_written_is_removed_by_the_next_session(tmp_path):
    paths = RunPaths(tmp_path / "run")
    beside = {}
    for name in (*LEFT, *WRITTEN_BY_ANYBODY):
        file = paths.root / name
        beside[name] = file.with_name(f".{file.name}.0123456789abcdef.new")
        file.parent.mkdir(parents=True, exist_ok=True)
        beside[name].touch()
    linked = paths.root / ".study.toml.0123456789abcdef.new"
    linked.symlink_to(tmp_path)
    trial_folders.set_interrupted_aside(paths)
    left = [name for name, file in beside.items() if file.exists()]
    assert left == [*WRITTEN_BY_ANYBODY[:3]]  # the trial has no outcome: it is set aside
    assert linked.is_symlink()
    for name in left:
        os.utime(beside[name], (0, 0))
    trial_folders.set_interrupted_aside(paths)
    assert not any(file.exists() for file in beside.values())


def test_a_damaged_line_of_the_log_costs_that_line_and_is_named(tmp_path):
    paths = RunPaths(tmp_path)
    session_log.log(paths, "started", trials=4)
    session_log.log(paths, "enough", block="two")
    session_log.log(paths, "run again", cell="k", trial="trial-1")
    with paths.log.open("a") as file:
        file.write('[]\n{"what": "cut')
    log = session_log.read_log(paths)
    assert [entry.what for entry in log.entries] == ["started", "run again"]
    assert log.damaged == (
        f"{paths.log}:2 is damaged: block is not a whole number. It is left out.",
        f"{paths.log}:4 is damaged: the file is not an object. It is left out.",
    )
    assert session_log.damaged_lines(paths) == log.damaged
    paths.log.write_text("?\n" * 100)
    damaged = session_log.damaged_lines(paths)
    assert len(damaged) == 4
    assert damaged[3] == f"{paths.log}: further lines are damaged, and left out."


def test_a_path_that_cannot_be_searched_for_code_is_refused_before_anything_is_made(tmp_path):
    with (
        pytest.raises(RunError, match="cannot hold a colon"),
        opening.creating(tmp_path / "a:b" / "run", {"id": "x"}),
    ):
        pass
    assert not list(tmp_path.iterdir())
