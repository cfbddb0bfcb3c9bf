"""Hold the log parser to real logs: excerpts here, whole ones where they lie."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.worker.adapters.caffe.log import Log, parse
from harness.worker.adapters.caffe.program import failure
from harness.worker.contracts import Unsupported

HERE = Path(__file__).parent / "logs"
NEAR = 1_795_258_988_000_000_000  # 2026-11-21 11:03:08 UTC
WHOLE = Path(os.environ.get("BAKEOFF_CAFFE_LOGS", HERE.parents[4] / "shared" / "caffe-logs"))


def lines(name: str) -> list[str]:
    return (HERE / f"{name}.log").read_text(encoding="utf-8").splitlines()


def read(content: list[str], rank: int = 0) -> Log:
    log = Log(NEAR, rank)
    for line in content:
        log.add(line)
    return log


@pytest.mark.parametrize("dialect", ["bvlc", "intel"])
def test_the_forward_pass_at_the_end_is_no_step(dialect: str) -> None:
    log = read(lines(f"{dialect}_train"))
    shown = [step.iteration for step in log.steps()]
    assert 20 not in shown
    assert shown[:3] == [0, 1, 2]
    assert log.is_done
    assert not log.is_stopped


@pytest.mark.parametrize(("dialect", "first_ns"), [("bvlc", 12_254_000), ("intel", 870_000)])
def test_times_come_from_the_timestamps_and_losses_from_their_lines(
    dialect: str, first_ns: int
) -> None:
    log = read(lines(f"{dialect}_train"))
    first, second = log.steps()[:2]
    assert log.began_ns is not None
    assert first.wall_ns - log.began_ns == first_ns
    assert 0 < second.wall_ns - first.wall_ns < 500_000
    assert (first.loss, second.loss) == (2.24121, 1.58419)


def test_an_interrupted_training_says_both_that_it_stopped_and_that_it_is_done() -> None:
    log = read(lines("bvlc_interrupted"))
    assert log.is_stopped
    assert log.is_done


@pytest.mark.parametrize(
    ("dialect", "forward", "backward"),
    [("bvlc", 0.0756e-3, 0.0662e-3), ("intel", 0.949667e-3, 0.074e-3)],
)
def test_passes_are_read_from_their_averages(dialect: str, forward: float, backward: float) -> None:
    log = read(lines(f"{dialect}_time"))
    assert log.passes == {"forward": pytest.approx(forward), "backward": pytest.approx(backward)}
    assert log.layers["conv1"].keys() == {"forward", "backward"}
    assert log.shapes["pool1"] == (8, 8, 8, 8)
    assert log.shapes["data"] == (8, 3, 16, 16)
    assert log.shapes["loss"] == ()


def test_a_failed_check_is_told_in_caffe_s_words() -> None:
    log = read(lines("bvlc_fatal"))
    fault = failure(log, -6, program="caffe", verb="train", awaited="Optimization Done")
    assert isinstance(fault, Unsupported)
    assert str(fault) == "Cannot use GPU in CPU-only Caffe: check mode."


def test_a_rank_and_a_short_date_may_stand_before_a_line() -> None:
    plain = "I20261121 11:03:08.084312 21012 solver.cpp:290] Learning Rate Policy: fixed"
    short = plain.replace("I20261121", "I1121")
    expected = parse(plain, NEAR)
    assert expected is not None
    assert parse(short, NEAR) == expected
    assert parse("[3] " + short, NEAR) == expected._replace(rank=3)


def test_a_short_date_at_new_year_takes_the_nearest_year() -> None:
    january = 1_798_761_600_000_000_000  # 2027-01-01 00:00 UTC
    late = parse("I1231 23:59:59.999999 1 a.cpp:1] x", january)
    early = parse("I0101 00:00:00.000001 1 a.cpp:1] x", january - 10**9)
    assert late is not None
    assert early is not None
    assert (late.wall_ns, early.wall_ns) == (january - 1000, january + 1000)


@pytest.mark.parametrize("date", ["I1321", "I0000", "I20260231", "I202611"])
def test_a_date_that_cannot_be_crashes_nothing(date: str) -> None:
    parse(f"{date} 11:03:08.084312 21012 solver.cpp:290] x", NEAR)


def test_ranks_that_print_into_one_log_are_told_apart() -> None:
    mixed = [f"[{rank}] {line}" for line in lines("intel_train") for rank in (0, 1)]
    assert read(mixed, 1).steps() == read(lines("intel_train")).steps()


LOGS = ["bvlc_train", "intel_train", "bvlc_interrupted", "bvlc_fatal", "bvlc_time", "intel_time"]


@settings(deadline=None)
@given(st.sampled_from(LOGS), st.randoms(use_true_random=False))
def test_shuffled_lines_give_the_same_steps_and_times(name: str, chance) -> None:
    content = lines(name)
    shuffled = content[:]
    chance.shuffle(shuffled)
    first, second = read(content), read(shuffled)
    assert first.steps() == second.steps()
    assert first.passes == second.passes
    assert first.layers == second.layers
    assert (first.is_done, first.is_stopped) == (second.is_done, second.is_stopped)
    assert sorted(first.fatal) == sorted(second.fatal)


@settings(deadline=None)
@given(
    st.sampled_from(LOGS), st.integers(0, 10_000), st.integers(0, 10_000), st.binary(max_size=40)
)
def test_a_log_cut_anywhere_and_mixed_with_rubbish_gives_fewer_of_the_same_steps(
    name: str, start: int, end: int, rubbish: bytes
) -> None:
    text = "\n".join(lines(name))
    cut = text[start : len(text) - end].splitlines()
    cut.insert(len(cut) // 2, rubbish.decode("latin-1"))
    whole = set(read(lines(name)).steps())
    assert {step[:2] for step in read(cut).steps()} <= {step[:2] for step in whole}


def test_losses_that_left_the_numbers_are_read() -> None:
    stamp = "I20261121 11:03:08.1000{} 1 solver.cpp:1] Iteration 7"
    for word, value in (("nan", math.nan), ("-nan", math.nan), ("inf", math.inf), ("1e-9", 1e-9)):
        (step,) = read(
            [stamp.format("01") + f", loss = {word}", stamp.format("02") + ", lr = 0.01"]
        ).steps()
        assert step.loss == pytest.approx(value, nan_ok=True)


@pytest.mark.skipif(not WHOLE.is_dir(), reason="name the folder of whole logs: BAKEOFF_CAFFE_LOGS")
def test_every_whole_log_gives_what_it_holds() -> None:
    for path in sorted(WHOLE.glob("*.log")):
        content = path.read_text(encoding="utf-8", errors="replace").splitlines()
        log = read(content)
        printed = sum("] Iteration" in line and ", lr = " in line for line in content)
        assert abs(len(log.steps()) - printed) <= 1, path.name
        assert (set(log.passes) == {"forward", "backward"}) == ("_time_" in path.name), path.name
        assert bool(log.fatal) == ("fatal" in path.name), path.name
        if "time" in path.name:
            total = sum(log.passes.values())
            layers = sum(sum(layer.values()) for layer in log.layers.values())
            assert layers == pytest.approx(total, rel=0.1), path.name


HEAD = "I20261121 11:03:08.100050 21012 solver.cpp:239] "


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "Iteration 1 (2 iter/s), loss = 1.58.4",
        HEAD + "Iteration 1 (2 iter/s), loss = .",
        HEAD + f"Iteration {'9' * 5000}, loss = 1",
        HEAD + f"Iteration 1, lr = 1e{'9' * 5000}",
        HEAD + "Average Forward pass: 1.2.3 ms.",
        HEAD + "conv1\tforward: ... ms.",
        HEAD + "Setting up conv1\n" + HEAD + f"Top shape: {'9' * 5000} (1)",
        HEAD + "Top shape: " + "1" * 60 + "x",
        "I00000101 11:03:08.100050 21012 solver.cpp:239] Iteration 1, loss = 1",
        f"[{'9' * 5000}] " + HEAD + "Iteration 1, loss = 1",
    ],
)
def test_a_damaged_line_is_no_step_and_no_error(text: str) -> None:
    log = Log(0)
    for line in (*text.split("\n"), HEAD + "Iteration 7, lr = 0.01"):
        assert log.add(line) is None
    assert log.steps() == []
    completed = log.add(HEAD + "Iteration 7 (2 iter/s), loss = 1.58419")
    assert completed is not None
    assert completed.loss == 1.58419
