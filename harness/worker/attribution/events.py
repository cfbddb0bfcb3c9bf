"""Say an attribution as events: one of the steps, then one for each layer and pass."""

from __future__ import annotations

from harness.worker.attribution.account import Attribution
from harness.worker.events import Events
from harness.worker.redaction.redact import redact_values

DIGITS = 6


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
