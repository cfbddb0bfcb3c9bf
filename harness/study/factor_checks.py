"""Check a factor's name or value in a file, and tell the file's document what is wrong."""

from __future__ import annotations

from typing import Any

from harness.errors import nearest
from harness.study.factors import FACTORS, Factor
from harness.toml.document import Document
from harness.toml.tables import unknown_key
from harness.toml.values import shown


def check_value(
    document: Document, place: tuple[str | int, ...], factor: Factor, value: Any
) -> None:
    """Tell a document when a value cannot be one of a factor's, or of an option's."""
    wrong = factor.wrong(value)
    if wrong is not None:
        document.fault(place, wrong)
    elif factor.allowed and value not in factor.allowed:
        allowed = tuple(map(str, factor.allowed))
        hint = nearest(str(value), allowed)
        document.fault(place, f"{shown(value)} is no value of {factor.name}.{hint}", allowed)


def is_known(document: Document, place: tuple[str | int, ...], name: str) -> bool:
    """Tell whether a factor has this name; a document is told when none has."""
    if name in FACTORS:
        return True
    document.fault(place, *unknown_key(name, tuple(FACTORS)))
    return False
