"""Say in sentences what factors do: the largest first, those that do nothing together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis import numbers
from harness.analysis.effects.effects import Effect, Effects, Interaction

_FACTORS, _LEVELS = 3, 2
"""So many factors have a sentence, with so many of their levels; the drawing has all."""
_CLEAR = ("faster", "slower")
_ALIKE = 1.15
"""Ratios of pairs that lie within so much are the same ratio, each with its noise."""


def sentences(of: Effects) -> tuple[str, ...]:
    """Give one sentence a factor that matters, then those that matter not, then those left open."""
    clear = [some for some in of.by_factor if _is_clear(some)]
    told = [sentence(some) for some in clear[:_FACTORS]]
    told += _together(clear[_FACTORS:], "does something too", "do something too")
    told += _together(
        [some for some in of.by_factor if all(one.answer == "same" for one in some)],
        "matters little",
        "matter little",
    )
    told += _together(
        [
            some
            for some in of.by_factor
            if not _is_clear(some) and any(one.answer != "same" for one in some)
        ],
        "is left open by these blocks",
        "are left open by these blocks",
    )
    return tuple(told)


def _is_clear(effects: Sequence[Effect]) -> bool:
    return any(one.answer in _CLEAR for one in effects)


def sentence(effects: Sequence[Effect]) -> str:
    """Say of a factor's levels which differ most from its base, and where they do."""
    clear = [one for one in effects if one.answer in _CLEAR]
    most = sorted(clear, key=_distance, reverse=True)[:_LEVELS]
    first, *others = (_ratio(one) for one in most)
    said = " and ".join((first.replace("×", f"× as fast as {effects[0].base}", 1), *others))
    return f"{said}{_where(most)}."


def _ratio(one: Effect) -> str:
    within = numbers.ratio_bracket(one.interval, one.ratio)
    return f"{one.level} is {numbers.ratio(one.ratio, one.interval)} × {within}".rstrip()


def _distance(one: Effect) -> float:
    return max(one.ratio, 1 / one.ratio)


def _where(effects: Sequence[Effect]) -> str:
    """Say whether that is so wherever it was tried, and how far pairs of cells lie apart."""
    is_everywhere = all(one.is_everywhere for one in effects)
    first = max(effects, key=lambda one: one.most / one.least)
    if is_everywhere and first.most / first.least <= _ALIKE:
        return ", everywhere"
    if first.pairs == 1:
        return ""
    whose = f": {first.level}" if len(effects) > 1 else ","
    where = "everywhere" if is_everywhere else "on average"
    return f", {where}{whose} from {numbers.ratio(first.least)} to {numbers.ratio(first.most)} ×"


def _together(factors: Sequence[Sequence[Effect]], one: str, many: str) -> Iterator[str]:
    names = [some[0].factor.replace("_", " ") for some in factors]
    if names:
        listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
        yield f"{listed[:1].upper()}{listed[1:]} {one if len(names) == 1 else many}."


def interaction(of: Interaction) -> str:
    """Say what one level does at two levels of another factor."""
    return (
        f"{of.level} is {numbers.ratio(of.ratio_at_base)} × as fast as {of.base} with "
        f"{of.other_base}, but {numbers.ratio(of.ratio_at_other)} × with {of.other}."
    )
