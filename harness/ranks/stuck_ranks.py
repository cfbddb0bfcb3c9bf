"""Name the rank that the others waited for, from the state of their connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Link:
    """One connection between two ranks, seen from one end."""

    rank: int
    other: int
    unsent: int
    unread: int
    again: int


def who_waited(waits: Sequence[Mapping[str, Any]], hosts: Mapping[int, str]) -> str:
    """Give a sentence that names the stuck rank; empty where the evidence names none.

    A process that is stopped is to blame for whatever stands still. Else a link on which a rank
    sends the same again and again is cut: nothing of it arrives. Else it is the rank that leaves
    unread what came to it.
    """
    links = list(_links(waits))
    stopped = [one["rank"] for one in waits if one["stopped"]]
    if stopped:
        others = [rank for rank in sorted(hosts) if rank not in stopped]
        named = _opening(_ranks(others, hosts) or "everybody")
        return f"{named} waited for {_ranks(stopped, hosts)}, which was stopped."
    cut = max((one for one in links if one.again and one.unsent), key=_amount, default=None)
    if cut is not None:
        return (
            f"The link between {_ranks([cut.rank], hosts)} and {_ranks([cut.other], hosts)} "
            f"stands still: rank {cut.other} waited for rank {cut.rank}, whose last "
            f"{cut.unsent:,} bytes to it were sent again and never acknowledged."
        )
    unread = max((one for one in links if one.unread), key=lambda one: one.unread, default=None)
    if unread is not None:
        return (
            f"{_opening(_ranks([unread.other], hosts))} waited for "
            f"{_ranks([unread.rank], hosts)}, which had not read the {unread.unread:,} bytes that "
            "had come from there."
        )
    return ""


def _opening(text: str) -> str:
    return text[0].upper() + text[1:]


def _amount(link: _Link) -> tuple[int, int]:
    return link.again, link.unsent


def _links(waits: Sequence[Mapping[str, Any]]) -> Iterator[_Link]:
    """Join both ends of each connection by their addresses."""
    owner = {
        (made["local"], made["remote"]): one["rank"] for one in waits for made in one["connections"]
    }
    for one in waits:
        for made in one["connections"]:
            other = owner.get((made["remote"], made["local"]))
            if other is not None and other != one["rank"]:
                yield _Link(one["rank"], other, made["unsent"], made["unread"], made["again"])


def _ranks(ranks: Sequence[int], hosts: Mapping[int, str]) -> str:
    named = [f"rank {rank} on {hosts[rank]}" if rank in hosts else f"rank {rank}" for rank in ranks]
    if len(named) > 4:
        return f"{', '.join(named[:3])} and {len(named) - 3} more"
    return " and ".join(named) if len(named) < 3 else f"{', '.join(named[:-1])} and {named[-1]}"
