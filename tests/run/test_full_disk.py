from __future__ import annotations

from harness.run import full_disk
from tests.needs import small_disk


def test_a_disk_is_full_by_its_own_state_alone(tmp_path):
    with small_disk(tmp_path / "small", "6m") as folder:
        assert not full_disk.is_full(folder)
        (folder / "ballast").write_bytes(bytes(3 << 20))
        assert full_disk.is_full(folder)
        assert [one.name for one in folder.iterdir()] == ["ballast"]


def test_words_about_space_are_answered_with_where_to_look():
    assert full_disk.hint("OSError: [Errno 28] No space left on device").startswith(
        ". The run's own"
    )
    assert full_disk.hint("No space left on device.").startswith(" The run's own")
    assert full_disk.hint("Disk quota exceeded") != ""
    assert full_disk.hint("it failed") == ""
