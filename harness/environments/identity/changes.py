"""Say in words what of an environment changed since a run recorded it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.environments.worker_python import Interpreter
from harness.units import listed
from harness.worker.redaction.redact import redact_values

_LONGEST = 80
_UNSET, _ABSENT = "unset", "not there"


def changes(name: str, before: Mapping[str, Any], now: Interpreter) -> list[str]:
    """List the differences between a run's record of an environment and what is there now.

    A record of an older bakeoff holds fewer facts: of those that it lacks nothing is said.
    """
    record = redact_values(now.record())
    found = list(_differences(before, record, "variables", _UNSET))
    packages = list(_differences(before, record, "packages", _ABSENT))
    found += [f"{name}: {words}" for words in packages]
    found += [f"{name}: {words}" for words in _edited(before, record, now.edited)]
    if not found and before.get("description") != record["description"]:
        found.append(f"{name}: {before.get('description')} → {record['description']}")
    return found


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], kind: str, absent: str
) -> Iterator[str]:
    old, new = before.get(kind), now[kind]
    if not isinstance(old, Mapping):
        return
    for name in sorted(old.keys() | new.keys()):
        both = [_short(side.get(name, absent)) for side in (old, new)]
        if old.get(name) != new.get(name):
            yield f"{name}: {' → '.join(both)}"


def _edited(
    before: Mapping[str, Any], now: Mapping[str, Any], edited: Sequence[str]
) -> Iterator[str]:
    """Name the packages whose files changed, with the files that are not as installed."""
    old, new = before.get("contents"), now["contents"]
    if not isinstance(old, Mapping):
        return
    for package in sorted(old.keys() | new.keys()):
        if old.get(package) == new.get(package):
            continue
        files = [one for one in edited if one.split("/")[0].split(" ")[0] == package]
        named = f" ({listed(files)})" if files else ""
        if package not in old or package not in new:
            yield f"{package} was {'added' if package in new else 'removed'}{named}"
        else:
            yield f"the files of {package} changed{named}"


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
