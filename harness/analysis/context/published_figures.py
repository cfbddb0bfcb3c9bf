"""Read figures, published or of the project, from ``references/*.toml``.

A file has ``version``, perhaps one ``source`` for all, and ``[[figure]]`` tables with the fields of
``Figure``; devices, nodes, batches and values may be lists of one length, one figure each.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from harness.errors import Fault, FaultyFile
from harness.toml.values import shown

VERSION = 1  # 1: first
FOLDER = Path("references")
"""A project's own figures, beside its studies; ``bakeoff reference add`` writes here."""
KINDS = ("measured", "derived")


@dataclass(frozen=True)
class Figure:
    """One published figure; None is what its source does not state."""

    machine: str
    model: str
    """The network's family: resnet50 for every variant of it."""
    value: float
    unit: str
    source: str
    metric: str = "rate"
    """rate (work per second) or epoch (seconds); other kinds are kept but match no cell."""
    kind: str = "measured"
    """measured, or derived from what was published (†)."""
    processor: str | None = None
    """Words that must all occur in the name of the machine's GPU or CPU."""
    device: str = "gpu"
    devices: int = 1
    nodes: int | None = None
    framework: str | None = None
    framework_version: str | None = None
    workload: str | None = None
    """Our name of the exact variant, where the source leaves no doubt."""
    variant: str | None = None
    """The source's name of a variant that is none of ours."""
    sequence: int | None = None
    """Tokens of a sample; a figure of another length than a cell's is of other work."""
    batch: int | None = None
    """Per device."""
    global_batch: int | None = None
    precision: str | None = None
    layout: str | None = None
    loader: str | None = None
    compile: bool | None = None
    recompute: bool | str | None = None
    """Whether blocks are computed twice; selective: a part of what is in them."""
    attention: str | None = None
    accumulate: int | None = None
    """Micro-batches of a step."""
    note: str = ""


HOW = ("compile", "recompute", "attention", "accumulate")
"""The fields that say how a step is computed."""
_HOW_WORDS: Mapping[str, Mapping[object, str]] = {
    "compile": {True: "compiled", False: "not compiled"},
    "recompute": {
        True: "blocks computed twice",
        False: "no blocks computed twice",
        "selective": "in part computed twice",
    },
    "attention": {"fused": "fused attention", "plain": "plain attention"},
}
_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "kind": KINDS,
    **{key: tuple(words) for key, words in _HOW_WORDS.items()},
}
_MOST = 1e15
_SAYS = ("is a whole number above 0, or a list of them", "is a number above 0, or a list of them")
_LISTED = ("devices", "nodes", "sequence", "batch", "global_batch", "accumulate", "value")


def how(key: str, value: object) -> str:
    """Say in words what is stated in one of the fields of ``HOW``."""
    if key in _HOW_WORDS:
        return _HOW_WORDS[key][value]
    return "no micro-batches" if value == 1 else f"{value} micro-batches"


def published() -> tuple[Figure, ...]:
    """Read the figures that ship with Bakeoff."""
    folder = resources.files("reports") / "references"
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: entry.name,
    )
    return tuple(figure for file in files for figure in parse(file.read_text("utf-8"), file.name))


def own(folder: Path = FOLDER) -> tuple[Figure, ...]:
    """Read the figures kept beside a project's studies."""
    files = sorted(file for file in folder.glob("*.toml") if file.is_file())
    return tuple(figure for file in files for figure in parse(_text(file), str(file)))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as fault:
        raise FaultyFile([Fault(str(file), None, "", str(fault))]) from None


def parse(text: str, name: str) -> tuple[Figure, ...]:
    """Read figures from TOML; report all faults of the file together."""
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as fault:
        raise FaultyFile([Fault(name, None, "", str(fault))]) from None
    found, faults = [], []
    if raw.get("version") != VERSION:
        faults.append(Fault(name, None, "version", f"expected {VERSION}"))
    entries = raw.get("figure", [])
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        faults.append(Fault(name, None, "figure", "figures are written as [[figure]] tables"))
        entries = []
    for index, entry in enumerate(entries):
        where = f"figure[{index}]"
        fields = {"source": raw.get("source"), **entry}
        problems = list(_problems(fields))
        faults += [Fault(name, None, f"{where}.{key}", why) for key, why in problems]
        if not problems:
            found += [Figure(**one) for one in _expanded(fields)]
    if faults:
        raise FaultyFile(faults)
    return tuple(found)


def _problems(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    known = {field.name for field in fields(Figure)}
    for key in entry.keys() - known:
        yield key, f"unknown key; known: {', '.join(sorted(known))}"
    for key in ("machine", "model", "value", "unit", "source"):
        if entry.get(key) in (None, "", []):
            yield key, "is missing"
    for key, allowed in _CHOICES.items():
        if key in entry and not any(_same(entry[key], one) for one in allowed):
            yield key, f"is one of {', '.join(map(shown, allowed))}"
    for key, value in entry.items():
        several = value if isinstance(value, list) and key in _LISTED else [value]
        if key in known - _CHOICES.keys() and not all(_fits(key, one) for one in several):
            yield key, "is a text" if key not in _LISTED else _SAYS[key == "value"]
    lengths = {len(entry[key]) for key in _LISTED if isinstance(entry.get(key), list)}
    if len(lengths) > 1 or (lengths and not isinstance(entry.get("value"), list)):
        yield "value", "lists of one figure must be equally long, and value one of them"


def _same(value: object, allowed: object) -> bool:
    """Tell whether a value is an allowed one; to Python 1 is True."""
    return type(value) is type(allowed) and value == allowed


def _fits(key: str, value: Any) -> bool:
    """Tell whether a value is of its key's kind; None is what nobody stated."""
    if value is None:
        return True
    if key == "value":
        return type(value) in (int, float) and 0 < value < _MOST
    if key in _LISTED:
        return type(value) is int and 0 < value < _MOST
    return isinstance(value, str)


def _expanded(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Turn parallel lists (devices, value …) into one entry each."""
    if not isinstance(entry["value"], list):
        yield dict(entry)
        return
    for index in range(len(entry["value"])):
        yield {
            key: value[index] if isinstance(value, list) else value for key, value in entry.items()
        }
