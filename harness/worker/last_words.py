"""Pick the last lines that matter of what a program printed.

A program that aborts prints its stack after the line that says why: glog and abseil a dozen frames
and more, Python's faulthandler the calls of every thread. They would push the reason out.
"""

from __future__ import annotations

import re
from typing import Iterable, List

_FRAME = re.compile(
    r"\s*@ +(0x[0-9a-f]+|\(nil\))"  # glog, abseil
    r"|PC: @|\*\*\* (Check failure stack trace|Aborted at) "
    r'|  File "[^"]*", line \d+ in '  # faulthandler; a traceback has ", in"
    r"|(Current thread|Thread) 0x[0-9a-f]+|Extension modules: |  <no Python frame>"
)


_RULE = re.compile(r"\s*[-=*]{10,}\s*")


def is_of_a_stack(line: str) -> bool:
    """Tell a line of a stack trace from a program's own words."""
    return _FRAME.match(line) is not None


def last_words(lines: Iterable[str], most: int) -> List[str]:
    """Give the last lines, without a stack trace's and empty ones."""
    return [line.rstrip() for line in lines if line.strip() and not is_of_a_stack(line)][-most:]


def last_message(text: str) -> str:
    """Give the last two lines; of a message between rules, as Open MPI writes it, its beginning."""
    lines = text.strip().splitlines()
    if not lines or _RULE.fullmatch(lines[-1]) is None:
        return " ".join(last_words(lines, 2)) or "it said nothing"
    rules = [number for number, line in enumerate(lines[:-1]) if _RULE.fullmatch(line)]
    inside = "\n".join(lines[rules[-1] + 1 if rules else 0 : -1])
    first, *more = re.split(r"\n\s*\n", inside.strip())
    if first.endswith(":") and more:  # what it names stands in the next paragraph
        first += "\n" + more[0]
    return " ".join(first.split())
