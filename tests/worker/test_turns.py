"""Give the timed loop its turns as an agent does, with a clock that only work advances."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.worker import loop
from harness.worker.events import Events
from harness.worker.job import Span
from harness.worker.place import Place
from harness.worker.windows import turns
from harness.worker.windows.turns import Abandoned, RankTurns
from tests.worker.paced import Log, Work


class Giver:
    """The agent's end: gives turns one after the other, and hears what the rank says."""

    def __init__(
        self,
        step_s: float,
        words: list[dict[str, Any]],
        tmp_path: Any,
        work: Callable[[Log, float], Work] = Work,
    ) -> None:
        ours, theirs = socket.socketpair()
        self.heard: list[dict[str, Any]] = []
        self.log = Log()
        self.events = tmp_path / "events.0.jsonl"
        place = Place(0, 1, 0, 1, "here", "none")
        events = Events(str(self.events), place)
        giving = threading.Thread(target=self._give, args=(ours, words))
        giving.start()
        try:
            loop.run(
                work(self.log, step_s),
                events,
                warmup=Span(steps=20),
                until=Span(seconds=3),
                clock=self.log.clock,
                turns=RankTurns(theirs.detach()),
            )
        finally:
            events.close()
            giving.join(60)

    def _give(self, ours: socket.socket, words: list[dict[str, Any]]) -> None:
        with ours, ours.makefile("rw") as there:
            for word in words:
                self.heard.append(json.loads(there.readline()))
                print(json.dumps(word), file=there, flush=True)
            if words[-1]["say"] != "finish":
                self.heard.append(json.loads(there.readline()))

    def said(self, kind: str) -> list[dict[str, Any]]:
        events = map(json.loads, self.events.read_text().splitlines())
        return [event for event in events if event["event"] == kind]

    def windows(self, phase: str) -> list[dict[str, Any]]:
        return [one for one in self.said("window") if one["phase"] == phase]


@pytest.fixture(autouse=True)
def _outlive_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_end_with_parent", lambda: None)


def turn(number: int, *, attempt: int = 1, before: str = "", **span: float) -> dict[str, Any]:
    return {
        "say": "turn",
        "round": number,
        "attempt": attempt,
        "span": span,
        "disturbed": before,
        "foreign_cores": 0.25,
    }


FINISH = {"say": "finish", "disturbed": "", "foreign_cores": 0.0}


def test_a_trial_measures_in_its_turns_and_says_how_long_a_step_takes(tmp_path: Any) -> None:
    giver = Giver(0.01, [turn(1, seconds=1.0), turn(2, seconds=0.5), FINISH], tmp_path)
    assert [one["say"] for one in giver.heard] == ["ready", "turned", "turned"]
    assert giver.heard[0]["step_s"] == pytest.approx(0.01)
    per_turn = [sum(w["steps"] for w in giver.windows("measure") if w["turn"] == n) for n in (1, 2)]
    assert per_turn == [100, 50]


class Disturbed(Work):
    """Most of the last steps of a warm-up take ten times as long."""

    def step(self) -> None:
        super().step()
        if 17 <= self.steps <= 19:
            self.log.now += round(9e9 * self.seconds)


def test_a_neighbour_of_the_warm_up_does_not_make_a_step_seem_long(tmp_path: Any) -> None:
    giver = Giver(0.01, [turn(1, seconds=1.0), FINISH], tmp_path, Disturbed)
    assert giver.heard[0]["step_s"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("step_s", "span", "settling"),
    [
        (0.01, {"seconds": 1.0}, 30),
        (0.01, {"seconds": 0.1}, 10),
        (0.01, {"steps": 50}, 30),
        (0.01, {"steps": 7}, 7),
        (0.2, {"seconds": 1.0}, 3),
        (2.0, {"seconds": 1.0}, 3),
    ],
)
def test_a_turn_settles_as_long_as_it_measures_but_no_longer_than_it_takes(
    tmp_path: Any, step_s: float, span: dict[str, float], settling: int
) -> None:
    giver = Giver(step_s, [turn(1, **span), turn(2, **span), FINISH], tmp_path)
    first = {n: min(w["first"] for w in giver.windows("measure") if w["turn"] == n) for n in (1, 2)}
    for number in (1, 2):
        some = [one for one in giver.windows("settle") if one["turn"] == number]
        assert sum(one["steps"] for one in some) == settling
        assert all(one["first"] < first[number] for one in some)


def test_a_turn_has_a_few_steps_however_long_they_take(tmp_path: Any) -> None:
    giver = Giver(5.0, [turn(1, seconds=1.0), FINISH], tmp_path)
    assert sum(one["steps"] for one in giver.windows("measure")) == turns.FEWEST_STEPS


def test_a_turn_of_steps_has_just_those(tmp_path: Any) -> None:
    giver = Giver(0.0001, [turn(1, steps=700), FINISH], tmp_path)
    assert sum(one["steps"] for one in giver.windows("measure")) == 700


def test_a_disturbed_turn_leaves_no_measured_window(tmp_path: Any) -> None:
    words = [
        turn(1, seconds=1.0),
        turn(1, attempt=2, before="others used 0.40 of the 2 cores", seconds=1.0),
        FINISH,
    ]
    giver = Giver(0.01, words, tmp_path)
    assert {one["turn"] for one in giver.windows("disturbed")} == {1}
    assert {one["turn"] for one in giver.windows("measure")} == {2}
    first, second = giver.said("turn")
    assert (first["number"], first["round"], first["attempt"]) == (1, 1, 1)
    assert first["disturbed"] == "others used 0.40 of the 2 cores"
    assert (second["number"], second["round"], second["attempt"], second["disturbed"]) == (
        *(2, 1, 2),
        "",
    )


def test_a_turn_says_what_it_reached_while_it_settled_and_what_it_measured(tmp_path: Any) -> None:
    giver = Giver(0.01, [turn(1, seconds=1.0), FINISH], tmp_path)
    (said,) = giver.said("turn")
    settling = giver.windows("settle")[turns.SETTLING_WINDOWS :]
    for some, steps, seconds in (
        (settling, said["settled_steps"], said["settled_s"]),
        (giver.windows("measure"), said["steps"], said["work_s"]),
    ):
        assert steps == sum(one["steps"] for one in some)
        assert seconds == pytest.approx(sum(one["end"] - one["start"] for one in some) / 1e9)


def test_every_window_of_a_turn_lies_within_it(tmp_path: Any) -> None:
    giver = Giver(0.01, [turn(1, seconds=1.0), turn(2, seconds=1.0), FINISH], tmp_path)
    spans = {one["number"]: (one["start"], one["end"]) for one in giver.said("turn")}
    for one in (*giver.windows("settle"), *giver.windows("measure")):
        begin, end = spans[one["turn"]]
        assert begin <= one["start"] <= one["end"] <= end


def test_phases_tell_when_a_trial_works_and_when_it_waits(tmp_path: Any) -> None:
    giver = Giver(0.01, [turn(1, seconds=1.0), turn(2, seconds=1.0), FINISH], tmp_path)
    names = [one["name"] for one in giver.said("phase")]
    assert names == ["warm-up", "wait", *("settle", "measure", "wait") * 2]


def test_nothing_lies_between_the_clock_reads_of_a_turn_s_window_but_its_work(
    tmp_path: Any,
) -> None:
    giver = Giver(0.01, [turn(1, seconds=0.2), FINISH], tmp_path)
    happened = giver.log.happened
    for at, what in enumerate(happened):
        if what == "step":
            assert happened[at - 1 : at + 3] == ["clock", "step", "sync", "clock"]


def test_a_rank_whose_agent_has_gone_ends_instead_of_waiting(tmp_path: Any) -> None:
    with pytest.raises(Abandoned):
        Giver(0.01, [turn(1, seconds=1.0)], tmp_path)
