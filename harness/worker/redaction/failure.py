"""Say in a worker's events, and to who reads its output, why it failed: without secrets."""

from __future__ import annotations

import os
import sys
import traceback

from harness.worker.events import Events
from harness.worker.redaction.redact import redact_text, secrets_of


def tell(events: Events, kind: str, fault: BaseException) -> None:
    """Say why a worker failed, and end its events."""
    known = secrets_of(os.environ)
    trace = redact_text(traceback.format_exc(), known)
    sys.stderr.write(trace)
    message = "{}: {}".format(type(fault).__name__, fault) if kind == "error" else str(fault)
    message = redact_text(message, known)
    events.say("failed", kind=kind, message=message or type(fault).__name__, trace=trace)
    events.close()
