"""Look up how an adapter writes a layer, a loss or an optimiser; a word it lacks is unsupported.

Words that a framework cannot express stand in its table as holes, with the reason.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, NamedTuple, TypeVar

from harness.worker.contracts import Unsupported

Written = TypeVar("Written")


class Hole(NamedTuple):
    """Why a framework has no lowering of a word."""

    why: str


def holes(words: Iterable[Any], why: str) -> Dict[Any, Any]:
    """Fill the places of words that a framework lacks, all for one reason."""
    return {word: Hole(why) for word in words}


def lowering_of(table: Mapping[Any, Written], word: Any, framework: str, path: str = "") -> Written:
    """Give what a word of the vocabulary becomes in a framework; ``path`` says where it stands."""
    found = table.get(word, Hole(""))
    if isinstance(found, Hole):
        name = word if isinstance(word, str) else word.__name__
        where = " (layer '{}')".format(path) if path else ""
        why = ": " + found.why if found.why else ""
        raise Unsupported("{} adapter: no lowering of {}{}{}".format(framework, name, where, why))
    return found
