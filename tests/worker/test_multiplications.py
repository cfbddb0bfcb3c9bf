"""Count what an optimised step of XLA multiplies, as its network is counted."""

from __future__ import annotations

import pytest

from harness.worker.facts import hlo

CONVOLVED = """
  %x = f32[2,9,9,3]{3,2,1,0} parameter(0)
  %w = f32[3,3,3,8]{3,2,1,0} parameter(1)
  %slope = f32[2,5,5,8]{3,2,1,0} parameter(2)
  %forward = f32[2,5,5,8]{3,2,1,0} convolution(%x, %w), dim_labels=b01f_01io->b01f
  %back = f32[2,9,9,3]{3,2,1,0} convolution(%slope, %w), dim_labels=b01f_01oi->b01f
  ROOT %w.2 = f32[3,3,3,8] convolution(f32[2,9,9,3] %x, %slope), dim_labels=f01b_i01o->01bf
"""


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_strided_convolution_and_its_gradients_multiply_equally_often(kept: int) -> None:
    head, lines = CONVOLVED.splitlines()[:4], CONVOLVED.splitlines()[4:7]
    assert hlo.macs("\n".join([*head, lines[kept]])) == 2 * 5 * 5 * 8 * 3 * 3 * 3


def test_a_grouped_convolution_multiplies_within_its_groups() -> None:
    text = """
  %x = f32[2,6,6,4]{3,2,1,0} parameter(0)
  %w = f32[3,3,2,8]{3,2,1,0} parameter(1)
  %y = f32[2,6,6,8]{3,2,1,0} convolution(%x, %w), dim_labels=b01f_01io->b01f, feature_group_count=2
"""
    assert hlo.macs(text) == 2 * 6 * 6 * 8 * 3 * 3 * 2


def test_a_product_multiplies_what_it_contracts() -> None:
    text = """
  %x = f32[4,9]{1,0} parameter(0)
  %w = f32[9,5]{1,0} parameter(1)
  %y = f32[4,5]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
    assert hlo.macs(text) == 4 * 9 * 5


def test_what_a_library_multiplies_is_not_counted() -> None:
    call = '  %g = bf16[4,5]{1,0} custom-call(%x, %w), custom_call_target="__cublas$gemm"'
    assert hlo.macs(call) is None
