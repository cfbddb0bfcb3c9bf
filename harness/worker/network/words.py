"""Look up how an adapter writes a layer, a loss or an optimiser; a word it lacks is unsupported."""

from __future__ import annotations

from typing import Any, Mapping, TypeVar

from harness.worker.contracts import Unsupported

Written = TypeVar("Written")


def lowering_of(table: Mapping[Any, Written], word: Any, framework: str, path: str = "") -> Written:
    """Give what a word of the vocabulary becomes in a framework; ``path`` says where it stands."""
    if word not in table:
        name = word if isinstance(word, str) else word.__name__
        where = " (layer '{}')".format(path) if path else ""
        raise Unsupported("{} adapter: no lowering of {}{}".format(framework, name, where))
    return table[word]
