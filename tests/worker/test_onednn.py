"""Check how oneDNN's and XLA's own words are read, old and new."""

from __future__ import annotations

from harness.worker.facts import hlo, onednn

NEW = [
    "onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with Intel DL Boost and bfloat16 support",
    (
        "onednn_verbose,v1,primitive,exec,cpu,convolution,brg_conv_fwd:avx512_core_bf16,"
        "forward_training,src:bf16::blocked:acdb::f0 wei:bf16:a:blocked:Acdb16a::f0 "
        "bia:f32::blocked:a::f0 dst:bf16::blocked:acdb::f0,,alg:convolution_direct,mb16,3.0"
    ),
    (
        "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:abcd::f0 "
        "dst:bf16::blocked:acdb::f0,,,16x3x32x32,0.5"
    ),
    (
        "onednn_verbose,v1,primitive,exec,cpu,inner_product,x64:gemm:jit,backward_weights,"
        "src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0,,,mb16,1.0"
    ),
    "onednn_verbose,v1,primitive,exec,cpu,gemm_api,,undef,src:f32::blocked:ab::f0,,,16x16,9.0",
]
OLD = [
    (
        "dnnl_verbose,exec,cpu,convolution,jit:avx2,forward_training,"
        "src_f32::blocked:aBcd8b:f0 wei_f32::blocked:ABcd8b8a:f0,,,mb8,2.0"
    ),
]


def test_types_are_weighed_by_the_time_of_convolutions_and_products() -> None:
    facts = onednn.read(NEW, steps=1)
    assert facts["computed"] == {"bfloat16": 0.75, "float32": 0.25}
    assert facts["onednn_layouts"] == {"acdb": 1.0, "ab": 1.0}
    assert facts["onednn_reorders"] == 1.0


def test_counts_are_per_step() -> None:
    assert onednn.read(NEW, steps=2)["onednn_primitives"]["gemm_api"] == 0.5


def test_older_versions_are_read_too() -> None:
    facts = onednn.read(OLD, steps=1)
    assert facts["onednn_primitives"] == {"convolution jit:avx2": 1.0}
    assert (facts["computed"], facts["onednn_layouts"]) == ({"float32": 1.0}, {"aBcd8b": 1.0})


def test_silence_says_nothing_of_types() -> None:
    facts = onednn.read(["Hello"], steps=1)
    assert (facts["onednn_primitives"], "computed" in facts) == ({}, False)
    assert onednn.instruction_set(["Hello"]) is None


def test_the_instruction_set_is_found_where_onednn_introduces_itself() -> None:
    assert onednn.instruction_set(NEW) == "Intel AVX-512 with Intel DL Boost and bfloat16 support"


HLO = """
ENTRY %main (p0: bf16[16,32]) -> f32[16,10] {
  %p0 = bf16[16,32]{1,0} parameter(0)
  %wide = f32[16,32]{1,0} convert(%p0)
  %kernel.1 = f32[32,10]{1,0} parameter(1)
  %conv = f32[16,8,8,4]{3,2,1,0} convolution(%wide, %kernel.1), window={size=3x3}
  %f = bf16[16,10]{1,0} fusion(%conv), kind=kLoop, calls=%c
  ROOT %dot = f32[16,10]{1,0} dot(%f, %kernel.1), lhs_contracting_dims={1}
}
"""


def test_a_type_is_that_of_what_goes_in_not_of_what_comes_out() -> None:
    facts = hlo.read(HLO)
    assert facts["computed"] == {"float32": 0.5, "bfloat16": 0.5}
    assert facts["operations"] == {"convolution float32": 1, "dot bfloat16": 1}
    assert facts["fusions"] == 1


def test_a_library_call_is_named_by_its_target() -> None:
    text = "%y = (bf16[4,4]{1,0}, s8[9]{0}) custom-call(bf16[4,4]{1,0} %x), "
    text += 'custom_call_target="__cublas$gemm"'
    assert hlo.read(text)["operations"] == {"__cublas$gemm bfloat16": 1}


def test_a_plain_layout_is_told_and_a_blocked_one_is_not() -> None:
    assert onednn.layout({"acdb": 3.0, "abcd": 1.0, "aBcd16b": 9.0}) == "channels-last"
    assert onednn.layout({"aBcd16b": 9.0, "ab": 2.0}) is None


def test_xla_s_layout_is_read_from_strides_not_from_the_order_of_labels() -> None:
    text = "  %c = f32[8,4,9,9]{{{}}} convolution(%x, %w), window={{size=3x3}}, dim_labels={}"
    assert hlo.layout(text.format("3,2,1,0", "bf01_oi01->bf01")) == "channels-first"
    assert hlo.layout(text.format("1,3,2,0", "bf01_oi01->bf01")) == "channels-last"
    assert hlo.layout(text.format("3,2,1,0", "b01f_01io->b01f")) == "channels-last"
    assert hlo.layout("  ROOT %dot = f32[16,10]{1,0} dot(%f, %k)") is None
