"""Name cells by the factors in which they differ from the cells beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.analysis import numbers
from harness.study.factors import goes_without_saying
from harness.verdicts.results import CellResult

NAMED_APART = frozenset({"workload", "framework", "strategy"})
_SAYS_ITSELF = frozenset(
    {"precision", "strategy", "layout", "device", "format", "tier", "allocator"}
)
_COUNTED = {
    "nodes": "node",
    "threads": "thread",
    "reader_threads": "reader thread",
    "buffers": "buffer",
}
_PER = {"ranks_per_node": "rank{} per node", "devices_per_rank": "device{} per rank"}
_ABSENT = {"reader": "no reader", "checkpoint_every": "no checkpoints"}
_SILENT = frozenset(
    {"format", "samples", "reader_threads", "prefetch", "buffers", "buffer_samples", "tier"}
    | {"checkpoint_to", "checkpoint_through", "compute", "compute_ms", "input", "cache", "shuffle"}
    | {"sequence", "attention", "recompute"}
    | {"decode", "precision", "compile", "layout", "deterministic", "compile_cache", "communicate"}
)
"""Without a value there is nothing to say of them: nothing is read, saved or computed at all."""
_PLAIN_WITHOUT = frozenset({"compile", "decode", "container", "recompute"})
"""Beside "torch compiled", "torch" says enough."""
_FEW = 2
"""So many factors are always said, whatever their values; more only where cells are not told apart
without them, and then none that stands at its default.
"""
_UNPARTED = 3
"""So many words are read with nothing between them."""


def in_order(values: Iterable[Any]) -> list[Any]:
    """Give a factor's values without repetition: counts from the least, others as they come."""
    seen = list({repr(one): one for one in values}.values())
    is_counted = all(isinstance(one, int | float) and not isinstance(one, bool) for one in seen)
    return sorted(seen) if is_counted else seen


def factor_words(name: str, value: Any) -> str:
    """Put a factor's value into words that need no heading: ``batch 16``, ``compiled``.

    Exceptions come first: absent values, then switches with words of their own. Of the others a
    count is followed by its noun, a name that explains itself stands alone, and the rest follow
    their factor's name.
    """
    words = name.replace("_", " ")
    if value is None:
        return "" if name in _SILENT else _ABSENT.get(name, f"{words} default")
    if value == "none":
        return f"no {words}"
    if name == "compile":
        return "compiled" if value else "not compiled"
    if name == "recompute":
        return "recomputing" if value else "keeping all"
    if name == "decode":
        return "decoded" if value else "not decoded"
    if name == "communicate":
        return "" if value else "without exchange"  # the default is to exchange
    if name == "container":
        return "container" if value else "bare"
    if name == "message_bytes":
        return f"{numbers.size(value)} messages"
    if isinstance(value, bool):
        without = "not" if name == "deterministic" else "no"
        return words if value else f"{without} {words}"
    plural = "" if value == 1 else "s"
    if name in _COUNTED:
        return f"{value} {_COUNTED[name]}{plural}"
    if name in _PER:
        return f"{value} {_PER[name].format(plural)}"
    if name in ("cache", "reader", "input"):
        return f"{value} {name}"
    if name in _SAYS_ITSELF:
        return str(value)
    return f"{words} {value}"


def factor_value(cell: CellResult, name: str) -> Any:
    """Give a factor's value; three factors are fields of a cell."""
    if name in NAMED_APART:
        return getattr(cell, name)
    return cell.factors.get(name)


def distinguishing_factors(cells: Sequence[CellResult], varied: Sequence[str]) -> tuple[str, ...]:
    """Choose the factors that distinguish cells; those with few values are dropped first.

    Of as many values, what some cells do not state goes before what all do: where only one reads
    files, its input says more than the state of its cache.
    """
    values = {name: [repr(factor_value(cell, name)) for cell in cells] for name in varied}
    frameworks = [cell.framework for cell in cells]

    def apart(names: Sequence[str]) -> int:
        return len(set(zip(frameworks, *(values[name] for name in names), strict=True)))

    def said(name: str) -> tuple[int, bool]:
        return len(set(values[name])), repr(None) not in values[name]

    kept = list(varied)
    later_first = kept[::-1]
    for name in sorted(later_first, key=said):
        rest = [one for one in kept if one != name]
        if len(kept) > _FEW and name not in NAMED_APART and apart(rest) == apart(varied):
            kept = rest
    return tuple(sorted(kept, key=lambda name: name not in _SAYS_ITSELF))


def name_of(cell: CellResult, names: Sequence[str], among: Sequence[str] = ()) -> str:
    """Name a cell by these factors: ``torch bf16``, ``torch · batch 64 · 2 nodes``.

    ``among`` are those that cells beside it are named by, where these are only some of them.
    """
    has_many = len({*(among or names)} - NAMED_APART) > _FEW
    words = [
        _words(cell, name, names)
        for name in names
        if name not in NAMED_APART
        and not (factor_value(cell, name) is False and name in _PLAIN_WITHOUT)
        and not (has_many and goes_without_saying(name, factor_value(cell, name)))
    ]
    if "strategy" in names and cell.strategy != "none":
        words.insert(0, cell.strategy)
    words = [word for word in words if word]
    if cell.framework != "null" or not words:  # it is none at all
        words.insert(0, cell.framework)
    are_many = len(words) > _UNPARTED or sum(" " in word for word in words) > 1
    return (" · " if are_many else " ").join(words)


def _words(cell: CellResult, name: str, names: Sequence[str]) -> str:
    """Say a factor's value; how many threads read goes with the reader: ``pread × 8``."""
    value = factor_value(cell, name)
    if name == "devices_per_rank" and factor_value(cell, "device") == "cpu" and value != 1:
        return f"{value} logical CPUs per rank"
    if name == "reader" and value is not None and "reader_threads" in names:
        return f"{value} × {factor_value(cell, 'reader_threads')}"
    if name == "reader_threads" and "reader" in names:
        return ""
    return factor_words(name, value)
