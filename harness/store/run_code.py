"""Digest what a run directory would have executed: its payload, and its plan.

``run.json`` keeps the digests that they were made with, under ``digests``, so that a reader sees
what was edited since. Who edits that file too is found out where it matters, at `bakeoff resume`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import DamagedFile
from harness.store.contained import Contained
from harness.store.layout import RunPaths
from harness.store.paths.names import payload_name

TRUSTED = "trusted"
"""In ``run.json``: the digest of a payload that a user had carried out on trust."""
MIXED = "mixed"
"""In ``run.json``: what changed at each ``bakeoff resume --mix``, in words."""
_MOST_MIXES = 50


def digest_of(contents: Mapping[str, bytes]) -> str:
    """Digest files by their path and content, as ``sha256sum`` would list them.

    A path with control characters is written as JSON: a line break in it could be a file's line.
    """
    whole = hashlib.sha256()
    for name, content in sorted(contents.items()):
        line = name if name.isprintable() else json.dumps(name)
        whole.update(f"{hashlib.sha256(content).hexdigest()}  {line}\n".encode())
    return whole.hexdigest()


def payload_digest(files: Contained, folder: Path) -> str:
    """Digest all that a payload holds, whatever it is: Python would import it.

    Of a payload that is not there, as in an archive without it, nothing is digested.
    """
    if not files.exists(folder):
        return ""
    return digest_of({name: files.read_bytes(folder / name) for name in files.files_below(folder)})


def plan_digest(paths: RunPaths) -> str:
    """Digest the plan, which names interpreters, environments and commands."""
    return digest_of({paths.plan.name: paths.files.read_bytes(paths.plan)})


def digests(paths: RunPaths) -> tuple[str, str]:
    """Give the digests of what a run's next session would carry out."""
    payload = payload_name(paths.files.read_object(paths.run).get("payload"))
    return plan_digest(paths), payload_digest(paths.files, paths.root / payload)


def mixes(paths: RunPaths) -> list[str]:
    """Say what had changed when a run was resumed with ``--mix``."""
    told = paths.files.read_object(paths.run).get(MIXED)
    words = told if isinstance(told, list) else []
    return [str(one) for one in words][:_MOST_MIXES]


def doubts(paths: RunPaths) -> list[str]:
    """Say why a run may not have run the code that it was made with."""
    try:
        run = paths.files.read_object(paths.run)
        payload = payload_name(run.get("payload"))
    except DamagedFile:
        return []  # there is none, or its own readers say what is wrong with it
    made: Any = run.get("digests")
    made = made if isinstance(made, dict) else {}
    found = [
        f"its {name} was changed after it was made"
        for name in (paths.plan.name, payload)
        if name in made and _digest_now(paths, name) not in (made[name], "")
    ]
    if TRUSTED in run:
        found.append("trials ran code that was not this user's own, by --trust-payload")
    found += [f"resumed with --mix though this had changed: {words}" for words in mixes(paths)]
    return found


def _digest_now(paths: RunPaths, name: str) -> str | None:
    try:
        if name == paths.plan.name:
            return plan_digest(paths)
        return payload_digest(paths.files, paths.root / name)
    except (DamagedFile, FileNotFoundError):
        return None
