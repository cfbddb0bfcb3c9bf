"""Say an attribution as events: one of the steps, then one for each layer and pass."""

from __future__ import annotations

import os
from typing import Callable

from harness.worker.attribution import traced_steps
from harness.worker.attribution.account import Attribution
from harness.worker.contracts import Unsupported
from harness.worker.events import Events
from harness.worker.place import Place
from harness.worker.redaction.redact import redact_values

DIGITS = 6


def keep(events: Events, place: Place, attribute: Callable[[], Attribution]) -> None:
    """Let ranks trace steps together; the first one's account stands for all, and is kept."""
    try:
        found = attribute()
    except Unsupported:
        if place.rank == 0:
            raise
        return
    if place.rank > 0:
        return
    kept = os.path.join(os.path.dirname(events.path), traced_steps.FILE)
    traced_steps.write(kept, found.traced_by, found.kept)
    say(events, found)


def say(events: Events, found: Attribution) -> None:
    """Say what a step's time went to; the parts with the largest shares first."""
    events.say(
        "attribution",
        traced_by=found.traced_by,
        step_s=[round(one, 9) for one in found.step_s],
        untraced_s=[round(one, 9) for one in found.untraced_s],
    )
    for part in found.parts:
        events.say(
            "part",
            site=part.place.site,
            phase=part.place.phase,
            shares=[round(one, DIGITS) for one in part.shares],
            operations=redact_values(
                [
                    {
                        **one,
                        "times": round(one["times"], DIGITS),
                        "share": round(one["share"], DIGITS),
                    }
                    for one in part.operations
                ]
            ),
            more=part.more,
        )
