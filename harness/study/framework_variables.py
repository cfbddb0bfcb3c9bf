"""Environment variables of a framework: what steers it, what ranks are told, where it caches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template
from typing import Annotated, Any

from pydantic import AfterValidator, Field, WithJsonSchema

from harness.errors import nearest
from harness.toml.tables import Listed, Table
from harness.worker.facts.variables import matches

RANK_FACTS: Mapping[str, str] = {
    "rank": "the rank's number among all",
    "size": "how many ranks there are",
    "local_rank": "its number on its node",
    "local_size": "how many ranks there are on its node",
    "node": "its node's number",
    "nodes": "how many nodes there are",
    "host": "its node's name",
    "meeting_host": "the address of the first node, where all ranks meet",
    "meeting_port": "a free port there",
    "addresses": "a free host:port for each rank, as a JSON list in the order of the ranks",
    "loopback": "the loopback interface where all ranks are on one node, else nothing",
    "threads": "threads of one operation in this rank",
}
"""What the text of a rank's variable may contain, each as ``$name``."""


def _written_as(pattern: str, what: str) -> tuple[Any, Any]:
    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(f"'{value}' is no {what}")
        return value

    return AfterValidator(check), WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


def _fillable(text: str) -> str:
    template = Template(text)
    if not template.is_valid():
        raise ValueError(f"'{text}': a $ that begins no name is written $$")
    for name in template.get_identifiers():
        if name not in RANK_FACTS:
            hint = nearest(name, RANK_FACTS) or f" Known: {', '.join(RANK_FACTS)}."
            raise ValueError(f"'${name}' is nothing that a rank is told.{hint}")
    return text


Variable = Annotated[str, *_written_as(r"[A-Za-z_]\w*", "environment variable")]
Pattern = Annotated[
    str, *_written_as(r"[A-Za-z_]\w*\*?", "environment variable, nor the beginning of one and a *")
]
Below = Annotated[str, *_written_as(r"[\w-][\w.-]*(/[\w-][\w.-]*)*", "path below a folder")]
RankText = Annotated[str, AfterValidator(_fillable)]
"""What a rank is told, with ``$rank`` and the like in it."""


class Variables(Table):
    """Environment variables; a pattern is a name, or the beginning of names and a star."""

    steering: Listed[Pattern] = ()
    """Patterns of variables that change how fast it runs: runs record their values."""
    foreign: Listed[Pattern] = ()
    """Patterns of variables of other programs that only begin alike."""
    into_containers: Listed[Pattern] = ()
    """Patterns of the host's variables that a container keeps."""
    caches: dict[Variable, Below] = Field(default_factory=dict)
    """Variables that name a compile cache, each with a path in the cell's private caches."""
    every_rank: dict[Variable, RankText] = Field(default_factory=dict)
    """Variables set for each rank; the text may contain $rank, $threads and the like."""
    several_ranks: dict[Variable, RankText] = Field(default_factory=dict)
    """Variables set where there are several ranks, which have to find each other."""

    def plus(self, other: Variables) -> Variables:
        """Join a framework's own and those of the strategy that it trains with."""
        return Variables.model_construct(
            steering=self.steering + other.steering,
            foreign=self.foreign + other.foreign,
            into_containers=self.into_containers + other.into_containers,
            caches={**self.caches, **other.caches},
            every_rank={**self.every_rank, **other.every_rank},
            several_ranks={**self.several_ranks, **other.several_ranks},
        )

    def of_a_rank(self, facts: Mapping[str, str], *, alone: bool) -> dict[str, str]:
        """Fill in what a rank is told; a text that comes out empty is left out."""
        texts = self.every_rank if alone else {**self.every_rank, **self.several_ranks}
        filled = {name: Template(text).substitute(facts) for name, text in texts.items()}
        return {name: text for name, text in filled.items() if text}

    def inside(self, name: str) -> bool:
        """Say whether a container keeps a variable: what is set for ranks, and the patterns."""
        is_set = name in self.caches or name in self.every_rank or name in self.several_ranks
        return is_set or matches(name, self.into_containers)
