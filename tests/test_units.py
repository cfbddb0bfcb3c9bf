from __future__ import annotations

import pytest

from harness import units


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (16 * 10**9, "16 GB"),
        (384 * 2**30, "384 GiB"),
        (3 * 2**39, "1.5 TiB"),
        (200 * 2**20, "200 MiB"),
        (403_705_032_704, "376 GiB"),
        (900, "900 B"),
        (0, "0 B"),
    ],
)
def test_a_size_is_printed_in_the_units_in_which_it_is_round(size: int, words: str) -> None:
    assert units.size_text(size) == words


def test_a_size_that_was_printed_round_is_read_back() -> None:
    for size in (16 * 10**9, 384 * 2**30, 200 * 2**20):
        assert units.size_bytes(units.size_text(size)) == size


def test_sizes_of_disks_are_in_powers_of_ten() -> None:
    assert [units.decimal_size(size) for size in (12, 4_300, 1_500_000, 2_340_000_000)] == [
        "12 B",
        "4 kB",
        "2 MB",
        "2.3 GB",
    ]
