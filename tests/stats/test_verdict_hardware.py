"""Hold the verdicts from hardware evidence to their table of thresholds."""

from __future__ import annotations

from typing import Any

import pytest

from harness.verdicts.thresholds import (
    REJECTING,
    SEVERITY,
    THRESHOLDS,
    HardwareEvidence,
    gravest_first,
    judge_hardware,
    rejecting,
    worst,
)

QUIET: dict[str, Any] = {
    "node": "here",
    "seconds": 60.0,
    "cores": 16,
    "foreign_cores": 0.02,
    "steal": 0.0,
    "pressure": 0.3,
    "memory_pressure": 0.0,
    "preempted_per_s": 20.0,
    "foreign_contexts": 0,
    "quota": (0.0, 4.0),
    "stall_s": 0.2,
    "window_s": 0.1,
}


def verdict(**changes: Any) -> str:
    return worst(judge_hardware(HardwareEvidence(**{**QUIET, **changes})))


def test_a_quiet_machine_gives_no_finding() -> None:
    assert judge_hardware(HardwareEvidence(**QUIET)) == ()


def test_what_is_unknown_speaks_against_nobody() -> None:
    assert judge_hardware(HardwareEvidence(node="here", seconds=60.0, cores=16)) == ()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"foreign_cores": 0.9}, "contended"),
        ({"steal": 0.05}, "contended"),
        ({"memory_pressure": 0.2}, "contended"),
        ({"foreign_contexts": 1}, "contended"),
        ({"quota": (0.5, 1.0)}, "throttled"),
        ({"heat": (("core:3", 2),)}, "throttled"),
        ({"slowed": {"gpu:GPU-a: hardware thermal limit": 0.3}}, "throttled"),
        ({"falls": (("gpu:GPU-a", 1.4e9, 1.1e9),)}, "throttled"),
        ({"stall_s": 5.0, "stalled_gpus": {"gpu:GPU-a": 1.0}}, "stalled"),
        ({"slowed": {"gpu:GPU-a: power cap": 0.9}}, "valid"),
        ({"falls": (("gpu:GPU-a", 1.41e9, 1.40e9),)}, "valid"),
        ({"stall_s": 5.0, "window_s": 1.0}, "valid"),
        ({"foreign_cores": 0.12, "cores": 128}, "valid"),
        ({"foreign_cores": 0.9, "seconds": 0.2}, "valid"),
        ({"foreign_cores": 1.9, "seconds": 0.98, "cores": 2}, "contended"),
        ({"steal": 0.05, "seconds": 0.5}, "valid"),
    ],
    ids=str,
)
def test_evidence_gives_its_verdict(changes: dict[str, Any], expected: str) -> None:
    assert verdict(**changes) == expected


def test_the_worst_of_several_verdicts_stands() -> None:
    assert verdict(stall_s=5.0, quota=(0.5, 1.0), foreign_cores=1.0) == "contended"


def test_evidence_names_figures() -> None:
    (finding,) = judge_hardware(HardwareEvidence(**{**QUIET, "foreign_cores": 0.9}))
    assert "0.90 of the 16 cores on here" in finding.evidence
    (finding,) = judge_hardware(HardwareEvidence(**{**QUIET, "foreign_cores": 0.9, "cores": 1}))
    assert "0.90 of the core on here" in finding.evidence
    (finding,) = judge_hardware(
        HardwareEvidence(**{**QUIET, "stall_s": 4.2, "stalled_gpus": {"gpu:GPU-a": 0.98}})
    )
    assert "no step ended for 4.2 s" in finding.evidence
    assert "gpu:GPU-a called itself 98 % busy" in finding.evidence


def test_every_threshold_belongs_to_a_verdict() -> None:
    assert {limit.verdict for limit in THRESHOLDS.values()} <= set(SEVERITY)
    assert set(SEVERITY) > REJECTING


def test_a_study_may_tolerate_what_its_machine_cannot_avoid() -> None:
    assert rejecting(["contended"]) == REJECTING - {"contended"} > {"stalled", "throttled"}
    assert rejecting([]) == REJECTING


def test_what_is_tolerated_hides_nothing_that_rejects() -> None:
    findings = judge_hardware(
        HardwareEvidence(**{**QUIET, "foreign_cores": 0.9, "quota": (0.5, 1.0)})
    )
    assert worst(findings) == "contended"
    assert worst(findings, ["contended"]) == "throttled"
    assert worst(findings, ["contended", "throttled"]) == "contended"
    assert gravest_first(findings, ["contended"])[0].verdict == "throttled"


def test_neighbours_are_named() -> None:
    seen = HardwareEvidence(
        **{**QUIET, "foreign_cores": 0.9, "neighbours": (("make (process 7)", 0.85),)}
    )
    (finding,) = judge_hardware(seen)
    assert "(busiest on the node: make (process 7) 0.85)" in finding.evidence
