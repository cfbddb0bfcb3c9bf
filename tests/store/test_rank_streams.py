"""These tests hold the quick way of reading event files to what JSON says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.store.dataset import Dataset
from harness.store.events import event_lines
from harness.store.events.window_lines import UNKNOWN
from harness.store.layout import TrialPaths
from tests.runs import RecordedCell, write_run

NUMBERS = ("first", "steps", "start", "end")
SAID = (
    {"event": "values", "step": 1, "values": {"loss": 2.5}},
    {"event": "phase", "name": "measure", "t": 7},
    {"event": "facts", "facts": {"threads": 2}},
    {"event": "device-steps", "last": 1, "seconds": [0.1]},
)
"""What stands between windows."""


@pytest.fixture
def events(tmp_path: Path) -> Path:
    dataset = Dataset([write_run(tmp_path, [RecordedCell()])])
    return TrialPaths(dataset.trials[0].directory).events(0)


def by_json(text: bytes, phase: str) -> list[list[int]]:
    told: list[list[int]] = []
    for line in text.split(b"\n"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("event") == "window":
            row = [event[name] for name in NUMBERS if type(event.get(name)) is int]
            if event.get("phase") == phase and len(row) == len(NUMBERS):
                told.append(row)
    return sorted(told, key=lambda row: row[2])


def is_as_json_reads(spoken: event_lines.RankEvents, text: bytes) -> bool:
    return bool(
        spoken.measured[:4].T.tolist() == by_json(text, "measure")
        and spoken.warm_up[:4].T.tolist() == by_json(text, "warm-up")
    )


def agrees(file: Path) -> bool:
    (spoken,) = event_lines.read_event_files([file.read_bytes()])
    return is_as_json_reads(spoken, file.read_bytes())


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """Draw an event file: few or many windows, other lines between, damaged in a few places."""
    clock = draw(st.sampled_from([0, 985, 10**13, 1790000000 * 10**9]))
    lines = []
    for number in range(draw(st.integers(0, 40))):
        window = {
            "event": "window",
            "phase": "warm-up" if number < 3 else "measure",
            "first": number,
            "steps": 1,
            "start": clock + 3 * number,
            "end": clock + 3 * number + 2,
        }
        lines.append({**window, **draw(st.sampled_from([{}] * 9 + [{"waited": number}]))})
        lines += draw(st.sampled_from([[]] * 9 + [[line] for line in SAID]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    text = "\n".join(json.dumps(line, separators=separators) for line in lines).encode()
    for _ in range(draw(st.integers(0, 2)) if text else 0):
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.sampled_from([b"", b"0", b"-", b"\n", b"x"])) + text[at + 1 :]
    return text


@given(st.lists(texts(), max_size=3))
@settings(max_examples=60)
def test_files_read_together_are_read_as_json_reads_each(files: list[bytes]) -> None:
    for spoken, text in zip(event_lines.read_event_files(files), files, strict=True):
        assert is_as_json_reads(spoken, text)


def test_what_a_rank_waited_stands_beside_its_windows() -> None:
    begin = {"event": "window", "phase": "measure"}
    lines = [{**begin, "first": n, "steps": 1, "start": n, "end": n + 1} for n in range(20)]
    waits = [{**line, "waited": 3 * n} for n, line in enumerate(lines)]
    plain, waiting = event_lines.read_event_files(
        ["\n".join(map(json.dumps, one)).encode() for one in (lines, waits)]
    )
    assert set(plain.measured[4]) == {UNKNOWN}
    assert waiting.measured[4].tolist() == [3 * n for n in range(20)]


def test_windows_are_read_as_json_reads_them(events: Path) -> None:
    (spoken,) = event_lines.read_event_files([events.read_bytes()])
    assert agrees(events)
    assert spoken.measured.shape[1] > 10
    assert spoken.properties["units"] == {"images": 16}


def test_compact_lines_are_read_alike(events: Path) -> None:
    events.write_text(events.read_text().replace(": ", ":").replace(", ", ","))
    assert agrees(events)


def test_what_a_killed_rank_left_torn_is_left_out(events: Path) -> None:
    whole = events.read_text()
    events.write_text(whole + '{"event": "window", "phase": "measure", "fir')
    assert agrees(events)


def test_other_lines_between_windows_and_more_keys_do_no_harm(events: Path) -> None:
    lines = events.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"measure", "first"' in line) + 3
    lines[at] = lines[at].replace('"first"', '"clock": 7, "first"')
    lines.insert(at, json.dumps({"event": "values", "step": 1, "values": {"loss": 2.5}}))
    events.write_text("\n".join(lines))
    assert agrees(events)


def test_windows_out_of_order_are_sorted(events: Path) -> None:
    expected = by_json(events.read_bytes(), "measure")
    lines = events.read_text().splitlines()
    events.write_text("\n".join(reversed(lines)))
    (spoken,) = event_lines.read_event_files([events.read_bytes()])
    assert spoken.measured[:4].T.tolist() == expected


@pytest.mark.parametrize("text", [b"", b"{", b'{"event": "window"}\n', b"[1, 2]\n"])
def test_a_rank_that_said_nothing_is_no_fault(text: bytes) -> None:
    (spoken,) = event_lines.read_event_files([text])
    assert (spoken.measured.size, spoken.warm_up.size, spoken.properties) == (0, 0, {})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"event": "window", "phase": "measure", "fir', "it is cut short"),
        (b"\xff\0\0", "it is no JSON"),
        (b'{"event":"window","phase":"measure","first":1,}', "it is no JSON from character"),
        (b"[" * 50_000, "it is nested too deeply"),
        (b'{"evXnt":"window"}', "it names no event"),
        (b'{"event":"window","phase":"measure","first":1,"steps":1,"start":2}', "end is missing"),
        (b'{"event":"phase","name":7,"t":1}', "name is not a text"),
        (b'{"event":"phase","name":"build","t":%d}' % 2**63, "t is beyond 6"),
        (b'{"event":"units","units":{"images":"many"}}', "units.images is not a number"),
        (b'{"event":"facts","facts":{"threads":"two"}}', "facts.threads is not a number"),
        (b'{"event":"facts","facts":{"device_name":7}}', "facts.device_name is not"),
        (b'{"event":"epoch","phase":"measure"}', "first is missing"),
        (b'{"event":"values","step":7,"values":{"lo', "it is cut short"),
        (b'{"event": "device-steps", "last": 7, "sec', "it is cut short"),
        (b'{"event":"values","step":7,"values":{"loss":2.5x}}', "it is no JSON from character"),
        (b'{"event":"values","step":7,"values":"many"}', "values is not"),
        (b'{"event":"values"' * 2 + b',"step":7,"values":{"loss":2.5}}', "it is no JSON"),
        (b'{"event":"values","step":7,"v\0{"event":"values","step":8,"values":{}}', "it is no"),
        (b'{"event":"units","units":{"im\\nages%s":"many"}}' % (b"s" * 999), "units.im agess"),
    ],
)
def test_a_damaged_line_is_named_with_what_is_wrong(events: Path, line: bytes, why: str) -> None:
    lines = events.read_bytes().splitlines()
    texts = [b"\n".join((*lines[:at], line, *lines[at:])) + b"\n" for at in (1, 9)]
    for spoken, number in zip(event_lines.read_event_files(texts), (2, 10), strict=True):
        ((at, told),) = spoken.damaged
        assert at == number
        assert told.startswith(why)
        assert len(told) < 130


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_nothing_is_wrong_with_what_workers_write(
    events: Path, separators: tuple[str, str]
) -> None:
    said = [*map(json.loads, events.read_text().splitlines()), *SAID]
    said.append({"event": "values", "step": 1, "values": {"loss": float("nan")}})
    said.append({"event": "of tomorrow", "t": 1})
    text = "\n".join(json.dumps(one, separators=separators) for one in said).encode()
    (spoken,) = event_lines.read_event_files([text])
    assert spoken.damaged == ()


def test_of_a_file_that_is_all_damage_the_first_lines_are_named(events: Path) -> None:
    (spoken,) = event_lines.read_event_files([b"what\n" * 1000])
    assert [number for number, _ in spoken.damaged] == [1, 2, 3, 4]
