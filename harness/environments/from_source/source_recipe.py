"""Read how a distribution is built from its source: environments/sources/NAME.toml."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import harness.environments.sources


@dataclass(frozen=True)
class Substitution:
    """One passage of a source that is written anew."""

    file: str
    old: str
    new: str
    why: str


@dataclass(frozen=True)
class Source:
    """What is built, and how."""

    distribution: str
    version: str
    sha256: str
    programs: Mapping[str, str]
    optional: Mapping[str, Mapping[str, str]]
    environment: Mapping[str, str]
    frameworks: Mapping[str, Mapping[str, str]]
    substitutions: tuple[Substitution, ...]
    digest: str
    """Of the whole description."""


def read_source(name: str) -> Source:
    """Read one of the descriptions beside the locks."""
    text = (Path(harness.environments.sources.__path__[0]) / f"{name}.toml").read_bytes()
    table = tomllib.loads(text.decode())
    return Source(
        distribution=table["distribution"],
        version=table["version"],
        sha256=table["sha256"],
        programs=table.get("programs", {}),
        optional=table.get("optional", {}),
        environment=table.get("environment", {}),
        frameworks=table.get("for", {}),
        substitutions=tuple(Substitution(**one) for one in table.get("substitute", ())),
        digest=hashlib.sha256(text).hexdigest(),
    )
