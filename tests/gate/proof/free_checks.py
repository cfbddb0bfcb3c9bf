"""Judge what a planted trial shows of itself: its losses, masks, multiplications, start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.store.events.rank_streams import Stream, read_streams
from harness.store.layout import TrialName, TrialPaths
from harness.store.outcome import RankEnd
from harness.store.records import TrialRecord
from harness.verdicts.credibility.amount import judge_amount
from harness.verdicts.credibility.learning import judge_losses, judge_masks
from tests.outcomes import ended


def streams_of(place: Path) -> Sequence[Stream]:
    """Read what the ranks of a planted trial said."""
    rank = RankEnd(0, "here", pid=1, exit_code=0, cpu_s=0.0, max_rss_bytes=0)
    record = TrialRecord("planted", TrialName(1), TrialPaths(place), ended(ranks=(rank,)))
    ((_, streams),) = read_streams([record])
    return streams


def seen(place: Path, precision: str = "fp32") -> list[str]:
    """Name the checks of every trial that find a fault."""
    streams = streams_of(place)
    found = ["losses"] if judge_losses(streams, precision, None) else []
    found += ["masks"] if judge_masks(streams) else []
    found += ["multiplications"] if judge_amount(streams) else []
    started = [(one.facts.get("start") or {}).get("differs") for one in streams]
    return found + (["start"] if any(started) else [])
