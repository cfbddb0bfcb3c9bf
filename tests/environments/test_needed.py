from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness.environments.package_index.needed import with_what_they_need
from harness.environments.package_index.pip import Item
from harness.errors import Unavailable

LINUX = {"sys_platform": "linux", "python_version": "3.12", "platform_machine": "ppc64le"}


class Index:
    """Offers one version of each package, and remembers what it was asked for."""

    def __init__(self, **needs: tuple[str, ...]) -> None:
        self.needs = needs
        self.asked: list[list[str]] = []

    def __call__(self, names: Sequence[str]) -> list[Item]:
        self.asked.append(list(names))
        plain = [one.partition("=")[0].partition("<")[0].partition(">")[0] for one in names]
        return [Item(one, "1.0", f"file:///{one}", "0" * 64, self.needs[one]) for one in plain]


def chosen(index: Index, *requirements: str) -> list[str]:
    return sorted(one.name for one in with_what_they_need(index, requirements, LINUX).items)


def test_what_is_needed_is_followed_by_the_other_machine_s_markers() -> None:
    index = Index(
        a=('b>=0.5; platform_machine == "ppc64le"', 'c; sys_platform == "win32"'),
        b=("a", 'd; python_version < "3.13"'),
        d=(),
    )
    assert chosen(index, "a==1.0") == ["a", "b", "d"]
    assert index.asked == [["a==1.0"], ["b>=0.5"], ["d"]]


def test_an_extra_brings_its_own_though_the_package_was_chosen_before() -> None:
    index = Index(
        a=("b", "c[fast]"), b=("c",), c=('d; extra == "fast"', 'e; extra == "slow"'), d=()
    )
    assert chosen(index, "a", "c") == ["a", "b", "c", "d"]


def test_what_is_there_already_is_neither_chosen_nor_followed_but_told() -> None:
    index = Index(a=("b>=2", "c"), b=("d",), c=("b<9",), d=())
    needed = with_what_they_need(index, ["a"], LINUX, frozenset({"b"}))
    assert [one.name for one in needed.items] == ["a", "c"]
    assert needed.left_out == ("b<9", "b>=2")
    assert needed.names_left_out == ("b",)


def test_contradictions_are_told_with_who_makes_them() -> None:
    index = Index(a=("b<1",), b=())
    with pytest.raises(Unavailable, match=r"a needs b<1, and 1\.0 was chosen"):
        chosen(index, "a")


@pytest.mark.parametrize("need", ["b @ https://elsewhere/b.whl", "b >>> 1"])
def test_a_need_that_no_lock_can_pin_is_refused(need: str) -> None:
    with pytest.raises(Unavailable, match="a needs 'b "):
        chosen(Index(a=(need,), b=()), "a")
