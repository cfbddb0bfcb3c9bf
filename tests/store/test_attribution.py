"""Read what divided a cell's steps; what is damaged explains nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.store.layout import RunPaths
from harness.store.record_readers.attribution import NOT_MADE, Attribution, read_attribution
from tests.outcomes import record

HEAD = {"event": "attribution", "traced_by": "a trace", "step_s": [0.5, 0.25]}
OPERATION = {"name": "conv", "type": "float32", "shapes": "2x3", "times": 1, "share": 1.0}


def part(site: str, phase: str, *shares: float) -> dict[str, Any]:
    return {
        "event": "part",
        "site": site,
        "phase": phase,
        "shares": shares,
        "operations": [OPERATION],
        "more": 0,
    }


WHOLE = (HEAD, part("conv1", "forward", 0.75, 0.5), part("", "host gaps", 0.25, 0.5))


def said(paths: RunPaths, *lines: str) -> None:
    record(paths.attribution("k"))
    paths.attribution("k").events(0).write_text("\n".join(lines))


def written(root: Path, *events: dict[str, Any]) -> Attribution | str:
    paths = RunPaths(root)
    said(paths, *map(json.dumps, events))
    return read_attribution(paths, "k")


def test_parts_are_read_with_their_operations(tmp_path: Path) -> None:
    found = written(tmp_path, *WHOLE)
    assert isinstance(found, Attribution)
    assert (found.traced_by, found.step_s) == ("a trace", (0.5, 0.25))
    assert [(one.site, one.phase, one.shares) for one in found.parts] == [
        ("conv1", "forward", (0.75, 0.5)),
        ("", "host gaps", (0.25, 0.5)),
    ]
    assert vars(found.parts[0].operations[0]) == OPERATION


def test_the_steps_that_nothing_traced_are_read_beside_those_that_were(tmp_path: Path) -> None:
    found = written(tmp_path, {**HEAD, "untraced_s": [0.4, 0.3]}, *WHOLE[1:])
    assert isinstance(found, Attribution)
    assert found.untraced_s == (0.4, 0.3)


def test_a_cell_that_nothing_attributed_says_so(tmp_path: Path) -> None:
    assert read_attribution(RunPaths(tmp_path), "k") == NOT_MADE


@pytest.mark.parametrize(
    "events",
    [
        WHOLE[1:],
        (HEAD, *WHOLE),
        (HEAD,),
        (HEAD, part("conv1", "forward", 0.5)),
        (HEAD, part("conv1", "forward", 0.5, 1.5)),
        ({**HEAD, "step_s": [0.5, 0.0]}, *WHOLE[1:]),
        ({**HEAD, "step_s": []}, part("conv1", "forward")),
        ({**HEAD, "untraced_s": [0.5, -1]}, *WHOLE[1:]),
        ({**HEAD, "untraced_s": "0.5"}, *WHOLE[1:]),
        (HEAD, {**part("conv1", "forward", 0.5, 0.5), "operations": [{"name": "conv"}]}),
    ],
)
def test_damaged_events_explain_nothing(events: tuple[Any, ...], tmp_path: Path) -> None:
    found = written(tmp_path, *events)
    assert isinstance(found, str)
    assert "damaged" in found


def test_shares_of_which_a_line_is_torn_do_not_add_up(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    said(paths, *map(json.dumps, WHOLE[:2]), json.dumps(WHOLE[2])[:40])
    found = read_attribution(paths, "k")
    assert isinstance(found, str)
    assert "add up" in found
