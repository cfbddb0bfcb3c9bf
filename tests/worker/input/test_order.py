"""The order of an epoch: a permutation, the same for everybody, shared by ranks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.worker.input.order import epoch_order

HELD = st.lists(st.integers(1, 7), min_size=1, max_size=8)


@given(HELD, st.sampled_from(["none", "global", "file"]), st.integers(1, 4), st.integers(0, 9))
def test_the_ranks_together_read_each_sample_once(
    held: list[int], shuffle: str, size: int, epoch: int
) -> None:
    read = [
        sample
        for rank in range(size)
        for sample in epoch_order(
            held,
            shuffle=shuffle,
            seed=1,
            epoch=epoch,
            rank=rank,
            size=size,
            buffer_samples=5,
        )
    ]
    assert sorted(read) == list(range(sum(held)))


def test_an_epoch_s_order_follows_from_seed_and_number() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        return epoch_order([4] * 8, shuffle="global", seed=seed, epoch=epoch)

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_a_file_shuffle_keeps_neighbours_in_one_buffer() -> None:
    order = epoch_order([4] * 8, shuffle="file", seed=1, epoch=0, buffer_samples=8)
    for start in range(0, 32, 8):
        files = {sample // 4 for sample in order[start : start + 8]}
        assert len(files) == 2
    assert order != sorted(order)
