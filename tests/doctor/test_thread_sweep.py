"""Check what a sweep tries and which of its settings it recommends."""

from __future__ import annotations

from dataclasses import replace

from harness.doctor.thread_sweep import Setting, recommend, sessions, settings, thread_counts
from harness.platform.platform import load_platform
from tests.reports import samples


def test_threads_go_by_powers_of_two_with_the_cores_and_the_cpus() -> None:
    assert thread_counts(2, 2) == (1, 2)
    assert thread_counts(68, 272) == (1, 2, 4, 8, 16, 32, 64, 68, 128, 256, 272)


def test_fast_memory_is_tried_where_there_is_some() -> None:
    def names(platform: str) -> list[str]:
        planned = sessions(
            load_platform(platform), cores=4, cpus=16, framework="torch", trials=1, until="1 s"
        )
        return [one.name for one in planned]

    assert names("local") == ["free-any", "pinned-any"]
    assert names("knl-7250-flat")[2:] == ["pinned-fast-first", "pinned-interleave"]
    assert names("knl-7210-cache") == ["free-any", "pinned-any"]


def test_a_setting_reached_what_its_best_undisturbed_trial_reached() -> None:
    demo = samples.demo()
    trials = (
        samples.trial("r", "k", 1, 4e9),
        samples.trial("r", "k", 2, 9e9, counted=False, verdict="contended"),
    )
    cell = replace(demo.cells[0], factors={"threads": 2}, trials=trials)
    planned = sessions(
        load_platform("local"), cores=2, cpus=2, framework="torch", trials=1, until="1 s"
    )
    (one,) = settings(replace(demo, cells=(cell,)), next(planned))
    assert (one.threads, one.rate, one.disturbed) == (2, 4e9, False)


def test_of_equally_fast_settings_the_simplest_is_recommended() -> None:
    tried = [
        Setting(68, "pinned", "fast-first", 100.0, disturbed=False),
        Setting(64, "pinned", "any", 97.0, disturbed=False),
        Setting(64, "free", "any", 96.0, disturbed=False),
        Setting(272, "free", "any", 60.0, disturbed=False),
    ]
    chosen, equals = recommend(tried)
    assert chosen.words == "64 threads, free"
    assert [one.words for one in equals] == [
        "64 threads, pinned",
        "68 threads, pinned, memory fast-first",
    ]
