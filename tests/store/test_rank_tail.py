from __future__ import annotations

import json

from harness.store.events.rank_tail import read_rank_tail
from harness.store.events.running_trial import read_trial_progress, units_per_s
from harness.store.layout import TrialPaths


def write(trial, *events, cut=""):
    text = "".join(json.dumps(event) + "\n" for event in events)
    trial.events(0).write_text(text + cut)


ANCHOR = {"event": "anchor", "size": 2}
UNITS = {"event": "units", "units": {"images": 16.0}}
VALUES = {"event": "values", "values": {"loss": 0.5}}
MEASURE = {"event": "phase", "name": "measure", "t": 1}
WINDOW = {"event": "window", "phase": "measure", "first": 0, "steps": 4, "start": 0, "end": 10**9}


def test_the_rate_of_a_running_trial_is_that_of_its_last_window_over_all_ranks(tmp_path):
    trial = TrialPaths(tmp_path)
    assert read_trial_progress(trial).phase is None
    write(trial, ANCHOR, UNITS, MEASURE)
    now = read_trial_progress(trial)
    assert (now.phase, now.steps, units_per_s(trial, now, "images")) == ("measure", None, None)
    write(trial, ANCHOR, UNITS, MEASURE, VALUES, WINDOW, cut='{"event": "window", "pha')
    now = read_trial_progress(trial)
    assert (now.phase, now.steps, now.loss) == ("measure", 4, 0.5)
    assert units_per_s(trial, now, "images") == 128.0
    assert units_per_s(trial, now, "tokens") is None


def test_a_line_cut_off_by_a_crash_is_left_out(tmp_path):
    trial = TrialPaths(tmp_path)
    write(trial, ANCHOR, MEASURE, cut='{"event": "finish')
    assert read_rank_tail(trial, 0).finished is False
    assert read_rank_tail(trial, 0).phase == "measure"


def test_a_failure_is_found_behind_megabytes_of_windows(tmp_path):
    trial = TrialPaths(tmp_path)
    failed = {"event": "failed", "kind": "error", "message": "KeyError: 1", "trace": ""}
    write(trial, ANCHOR, *[WINDOW] * 20_000, failed)
    trial.stderr(0).write_text("last words\n")
    found = read_rank_tail(trial, 0)
    assert (found.failed_kind, found.failed_message) == ("error", "KeyError: 1")
    assert (found.phase, found.stderr) == ("measure", "last words\n")
