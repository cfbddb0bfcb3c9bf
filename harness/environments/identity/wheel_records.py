"""Hold the files of installed packages to what their wheels recorded of them (PEP 376, PEP 427)."""

from __future__ import annotations

import base64
import csv
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

_NOT_RECORDED = (".pyc", ".dist-info/", ".egg-info/")
"""Byte code, and what installers leave about packages."""


def edited(site: Path, digests: Mapping[str, str]) -> tuple[str, ...]:
    """Name the files that changed since they were installed, and those that no package brought.

    ``digests`` are of the files that lie there now, by their path below ``site``.
    """
    recorded = dict(_recorded(site))
    found = []
    for name, digest in digests.items():
        if any(mark in name for mark in _NOT_RECORDED):
            continue
        if name not in recorded:
            found.append(f"{name} (of no package)")
        elif recorded[name] not in ("", digest):
            found.append(name)
    return tuple(sorted(found))


def _recorded(site: Path) -> Iterator[tuple[str, str]]:
    """Give the digest of each file in SHA-256; empty where its package told none."""
    for record in sorted(site.glob("*.dist-info/RECORD")):
        # Behind the damage of a damaged record, files are of no package.
        with suppress(OSError, ValueError, csv.Error):
            for line in csv.reader(record.read_text("utf-8").splitlines()):
                if not line or line[0].startswith(("../", "/")):
                    continue
                kind, _, value = (line[1] if len(line) > 1 else "").partition("=")
                yield posixpath.normpath(line[0]), _hexadecimal(value) if kind == "sha256" else ""


def _hexadecimal(value: str) -> str:
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
