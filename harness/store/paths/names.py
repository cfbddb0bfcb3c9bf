"""Check a name that a file or a node stated before it becomes a part of a path.

Keys of cells, names of trials, environments, payloads and nodes come from files that somebody else
may have written: ``../..`` as the key of a cell must not name another folder.
"""

from __future__ import annotations

import re

from harness.errors import DamagedFile

_NAME = re.compile(r"[^\W_][\w.@+:,\[\]-]{0,199}", re.ASCII)
_PAYLOAD = re.compile(r"payload(?:\.[0-9]{1,6})?")


def path_part(name: object, what: str = "name") -> str:
    """Give a name back that names one thing in a folder; refuse every other.

    It begins with a letter or a digit, so it is never hidden, a parent, or an option of a command.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DamagedFile(
            f"{name!r:.80} cannot be a {what}: it begins with a letter or a digit, and holds "
            "nothing but letters, digits and . _ - @ + : , [ ]"
        )
    return name


def payload_name(name: object) -> str:
    """Give the name of a run's payload folder back; refuse every other."""
    if not isinstance(name, str) or not _PAYLOAD.fullmatch(name):
        raise DamagedFile(f"{name!r:.80} is no folder of a payload: payload, payload.2 … are.")
    return name
