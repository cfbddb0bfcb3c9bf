"""What a GPU day says of utilisation and energy, from the rows of a page's tables."""

from __future__ import annotations

from tests.gpu.steps.figures import of_energy, of_tokens


def test_a_network_of_texts_has_its_operations_by_each_convention() -> None:
    row = {"cell": "tinygpt · torch", "tokens": 85_700.0, "full_gflops": 400.0, "full_share": 0.5}
    row |= {"causal_gflops": 390.0, "causal_share": None}
    row |= {"hardware_gflops": None, "hardware_share": None}
    words = "85,700 tokens/s; full 400 GFLOP/s (50.0%), causal 390 GFLOP/s"
    assert list(of_tokens([row])) == [f"tinygpt · torch: {words}"]


def test_energy_is_of_one_sample_and_said_once_a_cell() -> None:
    whole = {"cell": "tinycnn · torch", "work_per_joule": 4.0, "unit": "images per joule"}
    part = {"cell": "tinycnn · torch", "work_per_joule": None, "unit": None}
    assert list(of_energy([whole, part])) == ["tinycnn · torch: 0.25 J per image"]
    assert list(of_energy([])) == ["no energy was measured"]
