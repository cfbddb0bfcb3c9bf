"""Tell in what a session printed the messages about problems from what is always printed."""

from __future__ import annotations

import re

_USUAL = re.compile(
    r"(Study |Gate: |Done: |Stopped: |To go on: )"
    r"|\d+/\d+ trials  "
    r"|$"
)
"""What a session says of its own: which study, how far it is, how it went, how to go on."""


def problems(errors: str) -> list[str]:
    """Give each message about a problem: a line, with the indented ones that belong to it."""
    found: list[str] = []
    is_problem = False
    for line in errors.splitlines():
        if line.startswith(" "):
            if is_problem:
                found[-1] += f"\n{line}"
            continue
        is_problem = not _USUAL.match(line)
        if is_problem:
            found.append(line)
    return found
