from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from tests.needs import small_disk

from .conftest import Study


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie that PID 1 has not reaped yet has."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def test_a_third_partys_adapter_runs_from_the_payload(carried_out, study):
    assert carried_out("behave")["outcome"] == "ok"
    assert (study.paths.payload / "acme_adapters" / "unruly.py").is_file()


def test_a_rank_that_hangs_is_timed_out_and_ended(carried_out, study):
    outcome = carried_out("hang", measure='timeout = "2 s"')
    assert outcome["outcome"] == "timed-out"
    assert "Rank 0 had not ended after 2 s" in outcome["reason"]
    assert "measure.timeout" in outcome["reason"]
    assert outcome["ranks"][0]["signal"] == signal.SIGTERM
    assert study.processes() == []


@pytest.mark.slow
def test_a_rank_that_ignores_a_polite_request_is_killed_after_the_grace(carried_out, study):
    outcome = carried_out("deaf", measure='timeout = "2 s"')
    assert outcome["outcome"] == "timed-out"
    assert outcome["ranks"][0]["signal"] == signal.SIGKILL
    assert study.processes() == []


def test_a_rank_killed_from_outside_has_failed_by_that_signal(carried_out):
    outcome = carried_out("killed")
    assert outcome["outcome"] == "failed"
    assert "signal 9 (SIGKILL)" in outcome["reason"]
    assert "somebody else" in outcome["reason"]


def test_a_rank_that_speaks_of_a_full_disk_has_failed_where_the_runs_disk_has_room(carried_out):
    outcome = carried_out("disk-full")
    assert outcome["outcome"] == "failed"
    assert "No space left on device" in outcome["reason"]
    assert "The run's own disk has room; look at /dev/shm" in outcome["reason"]


def test_a_rank_that_eats_its_memory_is_out_of_memory_with_the_limit_named(carried_out):
    outcome = carried_out("hog", measure='memory = "200 MiB"')
    assert outcome["outcome"] == "out-of-memory"
    assert "limit 200 MiB" in outcome["reason"]
    assert "smaller batch" in outcome["reason"]
    assert outcome["memory"]["how"] in ("cgroup v1", "cgroup v2", "RLIMIT_DATA")


def test_a_frameworks_own_words_about_memory_are_understood(carried_out):
    outcome = carried_out("out-of-words")
    assert outcome["outcome"] == "out-of-memory"
    assert "Tried to allocate 2.00 GiB" in outcome["reason"]


@pytest.mark.parametrize("how", ["daemon", "nameless-daemon"])
def test_a_daemon_that_ignores_sigterm_is_killed_and_counted(carried_out, study, how):
    outcome = carried_out(how)
    assert outcome["outcome"] == "ok"
    assert outcome["leftovers"] == 1
    assert outcome["survivors"] == 0
    assert gone(int((study.trial() / "daemon.pid").read_text()))


def test_a_flood_of_output_is_capped_and_says_what_is_missing(carried_out, study):
    outcome = carried_out("flood")
    assert outcome["outcome"] == "ok"
    out, err = study.trial() / "rank.0.out", study.trial() / "rank.0.err"
    assert out.stat().st_size < 1.1 * 2**20
    assert out.read_text().startswith("line 000000 ")
    assert "bytes left out here" in out.read_text()
    assert err.read_text().endswith("the very last words\n")
    assert outcome["ranks"][0]["dropped_bytes"] > 4 * 2**20


def test_a_rank_that_exits_well_without_finishing_has_failed(carried_out):
    outcome = carried_out("quits")
    assert outcome["outcome"] == "failed"
    assert "exit code 0 but without finishing" in outcome["reason"]


def test_an_exception_is_a_failure_that_quotes_itself_and_names_the_log(carried_out, study):
    outcome = carried_out("raises")
    assert outcome["outcome"] == "failed"
    assert "ValueError: the third step is one too many" in outcome["reason"]
    assert str(study.trial() / "rank.0.err") in outcome["reason"]


def test_what_a_framework_cannot_do_is_unsupported_in_its_own_words(carried_out):
    outcome = carried_out("unsupported")
    assert outcome["outcome"] == "unsupported"
    assert outcome["reason"] == "unruly cannot do this, and says so."


def test_one_lost_rank_ends_the_others_at_once_and_is_the_one_blamed(carried_out, study):
    outcome = carried_out("one-rank-killed", ranks=2, measure='timeout = "10 min"')
    assert outcome["outcome"] == "failed"
    here = socket.gethostname()
    assert outcome["reason"].startswith(f"Rank 1 on {here} was ended by signal 9")
    assert [rank["stopped"] for rank in outcome["ranks"]] == [True, False]
    assert study.processes() == []


def test_a_disk_that_fills_up_ends_the_session_and_counts_as_no_trial(start_host, tmp_path):
    with small_disk(tmp_path / "small", "32m") as folder:
        study = Study(folder)
        study.write("fill-disk")
        assert start_host(study).end() != 0
        assert study.outcomes() == {}
        (folder / "ballast").unlink()
        again = start_host(study)
        again.wait_for("result", done=1, total=1)
        assert again.end() == 0
        assert study.outcome()["outcome"] == "ok"


@pytest.mark.slow
def test_a_cell_that_cannot_succeed_is_not_tried_again_and_again(study, start_host):
    study.write("unsupported", "behave", trials=3)
    host = start_host()
    host.wait_for("result", done=4, total=6)
    assert sorted(one["outcome"] for one in study.outcomes().values()) == [
        "ok",
        "ok",
        "ok",
        "unsupported",
    ]
    assert [one["why"] for one in study.logged("skipped")] == ["unsupported"] * 2
