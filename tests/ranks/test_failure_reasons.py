from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.agent.protocol import TrialEnd
from harness.ranks.failure_reasons import judge
from harness.store.events.rank_tail import RankTail
from harness.store.layout import TrialPaths
from harness.store.outcome import MemoryEvidence, RankEnd

FINISHED = RankTail(phase="close", finished=True)
TRIAL = TrialPaths(Path("/run"))


def rank(number: int = 0, **changes: Any) -> RankEnd:
    plain = {
        "rank": number,
        "host": f"n{number}",
        "pid": 100 + number,
        "exit_code": 0,
        "signal": None,
        "cpu_s": 1.0,
        "max_rss_bytes": 2**20,
    }
    return RankEnd(**{**plain, **changes})


def end(*ranks: RankEnd, cause: str = "ended", oom_kills: int | None = 0) -> TrialEnd:
    limit = 2**30 if oom_kills else None
    memory = MemoryEvidence("cgroup v2" if limit else "none", limit, limit, oom_kills)
    return TrialEnd("t", cause, ranks, memory, 0, 0, 1, 2)


def killed(number: int = 0, signal: int = 9, **changes: Any) -> RankEnd:
    return rank(number, exit_code=None, signal=signal, **changes)


def test_a_trial_is_ok_only_when_every_rank_finished():
    both = end(rank(0), rank(1))
    assert judge(both, {0: FINISHED, 1: FINISHED}, trial=TRIAL, timeout_s=60).ended == "ok"
    judged = judge(both, {0: FINISHED, 1: RankTail(phase="measure")}, trial=TRIAL, timeout_s=60)
    assert judged.ended == "failed"
    assert "Rank 1 on n1 ended in phase measure with exit code 0" in judged.reason


def test_the_kernels_memory_killer_is_told_from_other_kills():
    by_kernel = judge(end(killed(), oom_kills=1), {}, trial=TRIAL, timeout_s=60)
    assert by_kernel.ended == "out-of-memory"
    assert "limit 1 GiB, cgroup v2" in by_kernel.reason
    assert judge(end(killed()), {}, trial=TRIAL, timeout_s=60).ended == "failed"
    assert judge(end(killed(), oom_kills=None), {}, trial=TRIAL, timeout_s=60).ended == "failed"


@pytest.mark.parametrize(
    "words",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory",
        "ResourceExhaustedError: OOM: RESOURCE_EXHAUSTED: failed to allocate memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB\nMemoryError",
    ],
)
def test_frameworks_say_that_memory_is_gone_each_in_its_way(words):
    said = RankTail(phase="build", stderr=f"a line before\n{words}\n")
    judged = judge(end(rank(exit_code=1)), {0: said}, trial=TRIAL, timeout_s=60)
    assert judged.ended == "out-of-memory"


def test_a_full_disk_is_not_memory_that_is_gone():
    words = "OP_REQUIRES failed at save_op.cc:141 : RESOURCE_EXHAUSTED: /t; No space left on device"
    said = RankTail(phase="measure", failed_kind="error", failed_message="Full", stderr=words)
    judged = judge(end(rank(exit_code=1)), {0: said}, trial=TRIAL, timeout_s=60)
    assert judged.ended == "failed"


@pytest.mark.parametrize(
    ("oom_kills", "words", "advice"),
    [
        (1, "MemoryError", "Try a smaller batch, or a larger measure.memory."),
        (0, "MemoryError", "no measure.memory is set, this is all that the machine gives."),
        (1, "CUDA out of memory.", "a GPU's memory, which measure.memory does not limit."),
        (0, "OOM when allocating tensor on /device:GPU:0", "a GPU's memory, which"),
    ],
)
def test_out_of_memory_gives_only_advice_that_helps(oom_kills, words, advice):
    said = RankTail(phase="build", failed_kind="out-of-memory", failed_message=words)
    ended = end(rank(exit_code=1), oom_kills=oom_kills)
    assert advice in judge(ended, {0: said}, trial=TRIAL, timeout_s=60).reason


def test_the_rank_that_ended_first_is_blamed_not_those_that_were_ended_with_it():
    both = end(killed(0, 15, stopped=True), rank(1, exit_code=3), cause="rank-failed")
    said = {1: RankTail(phase="build", failed_kind="error", failed_message="KeyError: 'x'")}
    judged = judge(both, said, trial=TRIAL, timeout_s=60)
    blamed = "Rank 1 on n1 failed in phase build: KeyError: 'x'."
    assert judged.reason == f"{blamed} Log: /run/rank.1.err"


def test_a_timeout_names_who_was_late_and_where():
    late = end(rank(0), killed(1, 15, stopped=True), cause="timeout")
    judged = judge(late, {0: FINISHED, 1: RankTail(phase="warm-up")}, trial=TRIAL, timeout_s=90)
    assert judged.ended == "timed-out"
    assert judged.reason.startswith("Rank 1 had not ended after 90 s, in phase warm-up.")


def test_unsupported_is_an_honest_hole_even_if_other_ranks_were_ended_for_it():
    both = end(rank(0, exit_code=3), killed(1, 15, stopped=True), cause="rank-failed")
    said = {0: RankTail(failed_kind="unsupported", failed_message="no bf16 here")}
    judged = judge(both, said, trial=TRIAL, timeout_s=60)
    assert (judged.ended, judged.reason) == ("unsupported", "no bf16 here.")


def test_what_a_rank_refuses_is_said_in_its_own_sentence_without_a_trace():
    why = "sync returned before the steps were done"
    said = RankTail(phase="examine", failed_kind="refused", failed_message=why, stderr="Traceback")
    alone = judge(end(rank(exit_code=3)), {0: said}, trial=TRIAL, timeout_s=60)
    assert (alone.ended, alone.reason) == ("failed", f"{why}.")
    both = end(killed(0, 15, stopped=True), rank(1, exit_code=3), cause="rank-failed")
    assert judge(both, {1: said}, trial=TRIAL, timeout_s=60).reason == f"Rank 1: {why}."


def test_a_failure_quotes_the_last_lines_of_stderr():
    said = RankTail(phase="open", stderr="\n".join(f"line {number}" for number in range(9)))
    reason = judge(end(rank(exit_code=1)), {0: said}, trial=TRIAL, timeout_s=60).reason
    assert "line 8" in reason
    assert "line 3" not in reason


def test_a_stack_trace_does_not_push_out_what_was_said_before_it():
    frames = [f"    @     0x7fb275e42{number:03x}  somewhere" for number in range(20)]
    calls = [f'  File "worker.py", line {number} in step' for number in range(9)]
    said = "\n".join(
        [
            "F20261121 11:41:10.684623 20718 tensor.cc:66] Check failed: shapes differ",
            "*** Check failure stack trace: ***",
            *frames,
            "Fatal Python error: Aborted",
            "",
            "Current thread 0x00007f0000000000 (most recent call first):",
            *calls,
            "",
            "Extension modules: numpy.linalg._umath_linalg (total: 13)",
        ]
    )
    tail = RankTail(phase="build", stderr=said)
    reason = judge(end(killed(signal=6)), {0: tail}, trial=TRIAL, timeout_s=60).reason
    assert "signal 6 (SIGABRT)" in reason
    assert "Check failed: shapes differ" in reason
    assert "Fatal Python error: Aborted" in reason


def test_a_signal_without_a_name_is_told_by_its_number():
    reason = judge(end(killed(signal=40)), {}, trial=TRIAL, timeout_s=60).reason
    assert reason.startswith("Rank 0 was ended by signal 40 before its first event.")


def test_a_kill_is_not_explained_by_the_line_that_happened_to_be_the_last():
    tail = RankTail(phase="build", stderr='layer {\n  top: "loss"\n}')
    reason = judge(end(killed()), {0: tail}, trial=TRIAL, timeout_s=60).reason
    assert "signal 9 (SIGKILL)" in reason
    assert "loss" not in reason


def test_what_could_not_be_started_points_to_the_environment():
    never = rank(exit_code=None, pid=None, problem="cannot start /no/python: no such file")
    judged = judge(end(never, cause="rank-failed"), {}, trial=TRIAL, timeout_s=60)
    assert judged.ended == "failed"
    assert "bakeoff env check" in judged.reason


@pytest.mark.parametrize("cause", ["cancel", "closed"])
def test_a_cancelled_trial_says_how_to_go_on(cause):
    judged = judge(end(killed(0, 15, stopped=True), cause=cause), {}, trial=TRIAL, timeout_s=60)
    assert judged.ended == "cancelled"
    assert "bakeoff resume" in judged.reason


def test_what_its_node_could_not_start_is_no_fault_of_the_cell():
    why = "cannot start python: this user may have no further process"
    refused = rank(1, exit_code=None, problem=why, refused=True)
    stopped = killed(0, signal=15, stopped=True)
    words = {0: RankTail(failed_kind="error", failed_message="my peer is gone")}
    judged = judge(end(stopped, refused, cause="rank-failed"), words, trial=TRIAL, timeout_s=60)
    assert judged.ended == "node-lost"
    assert judged.reason == f"Rank 1 on n1: {why}. `bakeoff resume` runs it again."
