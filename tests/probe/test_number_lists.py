"""The kernel's lists of CPUs and memory nodes, also as a damaged survey may hold them."""

from __future__ import annotations

import pytest

from harness.machine.number_lists import MOST, read_list


def test_ranges_and_single_numbers_are_read_in_their_order() -> None:
    assert read_list("0-3,8,10-11\n") == (0, 1, 2, 3, 8, 10, 11)
    assert read_list("") == ()


@pytest.mark.parametrize("text", ["0-92233775808", f"{MOST}", ",".join(["0-65000"] * 2)])
def test_more_parts_than_a_machine_has_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="parts a machine may have"):
        read_list(text)
