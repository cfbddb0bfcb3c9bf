"""Every parser that is given damaged input."""

from __future__ import annotations

from tests.gauntlet.parsers import data_sets, machines, programs, runs, traces, users

PARSERS = (
    *programs.PARSERS,
    *users.PARSERS,
    *runs.PARSERS,
    *traces.PARSERS,
    *machines.PARSERS,
    *data_sets.PARSERS,
)
