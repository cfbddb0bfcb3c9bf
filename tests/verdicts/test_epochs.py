"""Read epochs back: whole ones are rated, other caches left out, ranks held together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.store.events import epoch_events, event_lines
from harness.verdicts import epochs
from harness.worker.input.evidence.audit import digest
from harness.worker.input.evidence.page_cache import CHARGED, label


def written(path: Path, said: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in said))
    return path


def passes(samples: list[int], caches: list[str], *, step_s: float = 1.0) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for number, cache in enumerate(caches):
        start, end = number * 10**10, number * 10**10 + int(step_s * 1e9)
        said.append(
            {
                "event": "window",
                "phase": "measure",
                "first": number,
                "steps": 1,
                "start": start,
                "end": end,
                "waited": (end - start) // 4,
            }
        )
        said.append(
            {
                "event": "epoch",
                "phase": "measure",
                "first": number,
                "steps": 1,
                "number": number,
                "samples": len(samples),
                "bytes": 1000 * len(samples),
                "digest": f"{digest(samples):016x}",
                "cache": cache,
                "cold_fraction": 1.0,
                "calls": 10,
                "call_bytes": 1000 * len(samples),
                "cpu_s": 0.5,
            }
        )
    return said


def judged(*files: Path) -> Any:
    spoken = event_lines.read_event_files([file.read_bytes() for file in files])
    found = [epoch_events.read_rank_input(one) for one in spoken]
    return epochs.judge_epochs([one for one in found if one is not None])


def test_epochs_of_other_caches_are_left_out(tmp_path: Path) -> None:
    told = judged(written(tmp_path / "0", passes(list(range(100)), ["cold", "cold", "warm"])))
    assert (told.cache, told.epochs, told.other_epochs) == ("cold", 2, 1)
    assert told.rate == 100.0
    assert told.bytes_per_s == 100_000.0
    assert told.wait_share == 0.25
    assert told.cpu_s_per_gb == 1.0 / (200_000 / 1e9)


def test_mapped_memory_is_read_without_requests(tmp_path: Path) -> None:
    said = passes(list(range(100)), ["cold"])
    asked = judged(written(tmp_path / "asked", said))
    assert (asked.calls_per_epoch, asked.bytes_per_call) == (10, 10_000)
    mapped = [{**one, "call_bytes": 900} if "call_bytes" in one else one for one in said]
    told = judged(written(tmp_path / "mapped", mapped))
    assert (told.calls_per_epoch, told.bytes_per_call) == (None, None)


def test_ranks_that_read_the_same_samples_twice_are_no_result(tmp_path: Path) -> None:
    own = [written(tmp_path / str(rank), passes([0, 1], ["cold"])) for rank in range(2)]
    assert judged(*own).faults == ("epoch 0: the ranks did not read each sample exactly once",)
    shared = [
        written(tmp_path / f"s{rank}", passes([2 * rank, 2 * rank + 1], ["cold"]))
        for rank in range(2)
    ]
    told = judged(*shared)
    assert told.faults == ()
    assert told.rate == 4.0


def test_a_training_whose_windows_end_with_an_epoch_may_still_leave_samples_out(
    tmp_path: Path,
) -> None:
    said = passes(list(range(1, 97)), ["cold", "cold"])
    trained = [{**one, "left_out": 4} if "samples" in one else one for one in said]
    told = judged(written(tmp_path / "0", trained))
    assert told.faults == ()
    assert (told.rate, told.delivered) == (96.0, 96.0)
    assert judged(written(tmp_path / "1", said)).faults != ()


def trained(*steps: tuple[str, int]) -> list[dict[str, Any]]:
    """Say steps of 10 ms, 10 kB each, in epochs of 16; phases begin where they are told to."""
    said: list[dict[str, Any]] = []
    done, (one, *_) = 0, passes(list(range(160)), ["cold"])[1:]
    for phase, count in steps:
        for number in range(done, done + count):
            start, end = number * 10**7, (number + 1) * 10**7
            window = {"event": "window", "phase": phase, "first": number, "steps": 1}
            said.append({**window, "start": start, "end": end, "waited": 10**6})
            if number % 16 == 15:
                epoch = {"phase": phase, "first": number - 15, "steps": 16, "number": number // 16}
                said.append({**one, **epoch})
        done += count
    return said


@pytest.mark.parametrize("measured", [13, 29])
def test_an_epoch_that_began_in_the_warm_up_has_its_time_too(tmp_path: Path, measured: int) -> None:
    told = judged(written(tmp_path / "0", trained(("warm-up", 3), ("measure", measured))))
    assert told.epochs == 1
    assert told.bytes_per_s == pytest.approx(1e6)
    assert told.epoch_s == pytest.approx(0.16)
    assert told.wait_share == pytest.approx(0.1)


def test_as_many_steps_as_an_epoch_has_are_not_a_whole_one(tmp_path: Path) -> None:
    told = judged(written(tmp_path / "0", trained(("warm-up", 3), ("measure", 16))))
    assert told.rate is None


@pytest.mark.parametrize(
    ("read", "cache", "share"),
    [((640, 1360), "cold", 1.0), ((640, 1000), "mixed", 0.82), ((0, 2000), "mixed", 0.5)],
)
def test_ranks_that_share_pages_are_cold_together(
    tmp_path: Path, read: tuple[int, int], cache: str, share: float
) -> None:
    """One finds in memory what the other read from storage a moment ago."""
    files = []
    for rank, own in enumerate(read):
        share_of_own = min(1.0, own / 1000)
        told = {"cold_fraction": share_of_own, "read_bytes": own, "cache": label(share_of_own)}
        told["witness"] = CHARGED
        said = passes([2 * rank, 2 * rank + 1], ["cold", "cold"])
        said = [{**one, **told} if "samples" in one else one for one in said]
        files.append(written(tmp_path / str(rank), said))
    joined = judged(*files)
    assert (joined.cache, joined.epochs, joined.faults) == (cache, 2, ())
    assert joined.cold_fraction == pytest.approx(share)


def test_an_epoch_that_a_rank_lacks_is_a_fault(tmp_path: Path) -> None:
    both = written(tmp_path / "0", passes([0, 1], ["cold", "cold"]))
    one = written(tmp_path / "1", passes([2, 3], ["cold"]))
    assert judged(both, one).faults == ("epoch 1: 1 of 2 ranks read it",)


def test_processors_are_counted_while_an_epoch_was_read(tmp_path: Path) -> None:
    said = passes([0, 1], ["cold", "cold"])
    with_cpus = [{**one, "cpus": 4} if "samples" in one else one for one in said]
    told = judged(written(tmp_path / "0", with_cpus))
    assert (told.busy_cores, told.cpus) == (0.5, 4.0)
    assert judged(written(tmp_path / "1", said)).cpus is None


def test_a_rank_that_waited_for_nothing_says_nothing_of_input(tmp_path: Path) -> None:
    file = written(tmp_path / "0", [{"event": "window", "phase": "measure", "first": 0}])
    (spoken,) = event_lines.read_event_files([file.read_bytes()])
    assert epoch_events.read_rank_input(spoken) is None
