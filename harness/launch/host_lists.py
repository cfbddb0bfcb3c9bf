"""Read lists of hosts as Slurm writes them: ``cn[001-003,7],login1``, ``rack[1-2]-node[01-02]``.

Commas and spaces part hosts. Brackets hold numbers and ranges; where a name has several brackets,
the last one counts fastest. A number is as wide as the first of its range is written.

`scontrol show hostnames` is not asked: it needs a Slurm that is set up, and lists are read where
there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from harness.errors import UsageError

_HOST = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+")
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_NUMBERS = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
# Also what ssh takes: a user's name before a host, addresses, a scope. No host begins with a dash,
# which the program that reaches it would take for an option.
_NAME = re.compile(r"[A-Za-z0-9_][\w.:@%+-]*", re.ASCII)
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)")
_MOST = 65_536
"""As many as Slurm takes in one list."""


def unfolded(text: str) -> tuple[str, ...]:
    """Name every host of a list, in its order; refuse a list that is none, is empty or repeats."""
    if set("[]") & set(_HOST.sub("", text)):
        raise _refusal(text, "a bracket lacks its other end")
    hosts: dict[str, None] = {}
    for written in _HOST.findall(text):
        for name in _names(text, written):
            if not _NAME.fullmatch(name):
                raise _refusal(text, f"'{name}' cannot be a host's name")
            if name in hosts:
                raise _refusal(text, f"it names {name} twice")
            if len(hosts) == _MOST:
                raise _refusal(text, f"it names more than {_MOST:,} hosts")
            hosts[name] = None
    if not hosts:
        raise _refusal(text, "it names no host")
    return tuple(hosts)


def folded(hosts: Sequence[str]) -> str:
    """Write hosts as Slurm does, those that differ by their last number together."""
    groups: dict[tuple[str, int, str], list[int]] = {}
    plain = []
    for host in hosts:
        match = _LAST_NUMBER.fullmatch(host)
        if match is None:
            plain.append(host)
        else:
            groups.setdefault((match[1], len(match[2]), match[3]), []).append(int(match[2]))
    for (before, width, after), numbers in groups.items():
        ranges = ",".join(_ranges(sorted(numbers), width))
        is_one = ranges.isdigit()
        plain.append(f"{before}{ranges}{after}" if is_one else f"{before}[{ranges}]{after}")
    return ",".join(plain)


def _ranges(numbers: Sequence[int], width: int) -> Iterator[str]:
    first = last = numbers[0]
    for number in (*numbers[1:], None):
        if number is not None and number == last + 1:
            last = number
            continue
        yield f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"
        first = last = number or 0


def _names(text: str, written: str) -> Iterator[str]:
    """Give the names that one host with its brackets stands for."""
    words = _BRACKET.split(written)  # fixed words and what stands in brackets, in turn
    choices = [
        [word] if number % 2 == 0 else list(_numbers(text, word))
        for number, word in enumerate(words)
    ]
    return map("".join, product(*choices))


def _numbers(text: str, bracket: str) -> Iterator[str]:
    count = 0
    for part in bracket.split(","):
        match = _NUMBERS.fullmatch(part.strip())
        if match is None:
            raise _refusal(text, f"'{part}' in brackets is neither a number nor a range")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise _refusal(text, f"the range '{part.strip()}' counts down")
        numbers = range(int(first), int(last) + 1)
        count += len(numbers)
        if count > _MOST:
            raise _refusal(text, f"it names more than {_MOST:,} hosts")
        yield from (f"{number:0{len(first)}d}" for number in numbers)


def _refusal(text: str, why: str) -> UsageError:
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return UsageError(
        f"'{shown}' is no list of hosts: {why}.\n"
        "    Write h1,h2 or cn[01-04,7] or rack[1-2]-node[01-16]."
    )
