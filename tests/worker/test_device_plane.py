"""Divide steps by the plane of a GPU in an XSpace, as JAX's profiler writes it.

The traces here are written by hand after the format (xplane.proto; a line for each stream, kernels
with ``hlo_op``, ``hlo_module`` and ``correlation_id``). None was recorded on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from harness.worker.attribution import xspace
from harness.worker.attribution.account import Attribution
from harness.worker.attribution.idle import (
    AFTER_THE_LAST,
    LAUNCH_UNKNOWN,
    NOT_BEGUN,
    NOT_LAUNCHED,
)
from harness.worker.attribution.marks import (
    GAPS,
    LAYOUT_COPY,
    OF_UPDATE,
    STEP,
    UNMARKED,
    UPDATE,
    Marks,
    Place,
)
from harness.worker.attribution.protobuf import before_bytes, number_field
from harness.worker.attribution.traced import divided
from harness.worker.contracts import Unsupported
from workloads.tinycnn import WORKLOAD

CONV1 = Marks(WORKLOAD.network).of("conv1")
FORWARD, BACKWARD = Place("conv1", "forward"), Place("conv1", "backward")
INSTRUCTIONS = (
    ("cudnn-conv.1", "custom-call", f"jit(step)/jvp({CONV1})/conv_general_dilated"),
    ("loop_add_fusion", "fusion", f"jit(step)/transpose(jvp({CONV1}))/conv_general_dilated"),
    ("transpose.3", "transpose", f"jit(step)/jvp({CONV1})/transpose"),
    ("while.2", "while", f"jit(step)/transpose(jvp({CONV1}))/while"),
    ("input_fusion.7", "fusion", f"jit(step)/{UPDATE}/add"),
    ("copy.5", "copy", f"jit(step)/{UPDATE}/copy"),
    ("copy.6", "copy", f"jit(step)/{UPDATE}/copy"),
)
LARGE = 3 * 2**20 // (8 * 4)
"""Rows of eight numbers that are 3 MiB."""
FLOAT32 = 11
OP, MODULE, CALL, ANY = 1, 2, 3, 4
STATS = {OP: "hlo_op", MODULE: "hlo_module", CALL: "correlation_id", ANY: "jit_step"}

Event = tuple[str, int, int, bytes]
"""Name, beginning and length in nanoseconds, stats."""


def field(number: int, content: bytes | str) -> bytes:
    own = content.encode() if isinstance(content, str) else content
    return before_bytes(number, len(own)) + own


def text_stat(stat: int, text: str) -> bytes:
    return field(4, number_field(1, stat) + field(5, text))


def call(number: int) -> bytes:
    return field(4, number_field(1, CALL) + number_field(3, number))


def of(instruction: str, number: int = 0) -> bytes:
    """Give a kernel's stats; the module is named by reference, as the profiler does."""
    module = field(4, number_field(1, MODULE) + number_field(7, ANY))
    return text_stat(OP, instruction) + module + (call(number) if number else b"")


def plane(name: str, lines: Mapping[str, Iterable[Event]]) -> bytes:
    told = {line: list(events) for line, events in lines.items()}
    names = list(dict.fromkeys(one[0] for events in told.values() for one in events))
    written = field(2, name)
    for line, events in told.items():
        content = field(2, line)
        for event, start, length, stats in events:
            at = number_field(2, start * 1000) + number_field(3, length * 1000)
            content += field(4, number_field(1, names.index(event) + 1) + at + stats)
        written += field(3, content)
    for number, event in enumerate(names, start=1):
        known = number_field(1, number) + field(2, event)
        written += field(4, number_field(1, number) + field(2, known))
    for number, stat in STATS.items():
        known = number_field(1, number) + field(2, stat)
        written += field(5, number_field(1, number) + field(2, known))
    return field(1, written)


def program() -> bytes:
    """Write the plane that holds the program that XLA compiled."""
    computation = number_field(5, 1)
    for number, (name, opcode, op_name) in enumerate(INSTRUCTIONS, start=1):
        rows = LARGE if name == "copy.6" else 16
        shape = number_field(2, FLOAT32) + number_field(3, rows) + number_field(3, 8)
        own = field(1, name) + field(2, opcode) + field(3, shape) + field(7, field(2, op_name))
        computation += field(2, own + number_field(35, number))
    proto = field(1, field(1, "jit_step") + field(3, computation))
    stat = number_field(1, 9) + field(6, proto)
    module = number_field(1, 1) + field(5, stat)
    known = number_field(1, 9) + field(2, "Hlo Proto")
    return field(
        1,
        field(2, "/host:metadata")
        + field(4, number_field(1, 1) + field(2, module))
        + field(5, number_field(1, 9) + field(2, known)),
    )


HOST = {
    "python": [(STEP, 0, 1000, b"")],
    "tf_XLAEigen": [
        ("cuLaunchKernel", 20, 10, call(41)),
        ("cuLaunchKernel", 40, 10, call(42)),
        ("cuLaunchKernel", 600, 20, call(43)),
    ],
}
KERNELS = {
    "Stream #7(Compute)": [
        ("sm80_xmma_fprop", 100, 200, of("cudnn-conv.1", 41)),
        ("nchwToNhwcKernel", 300, 20, of("cudnn-conv.1", 42)),
        ("transpose_kernel", 320, 30, of("transpose.3", 42)),
        ("loop_add_fusion", 350, 100, of("while.2/loop_add_fusion", 42)),
        ("input_fusion_7", 640, 60, of("input_fusion.7", 43)),
    ],
    "Stream #20(MemcpyD2D,MemcpyH2D)": [
        ("MemcpyD2H", 400, 60, of("while.2", 42)),
        ("MemcpyH2D", 460, 10, b""),
    ],
    "XLA Ops": [("cudnn-conv.1", 0, 1000, of("cudnn-conv.1"))],
    "XLA Modules": [("jit_step", 0, 1000, b"")],
}


def attributed(folder: Path, *planes: bytes) -> Attribution:
    (folder / "host.xplane.pb").write_bytes(b"".join((*planes, program())))
    return divided(xspace.read(str(folder)), WORKLOAD.network, "a trace", [], is_gpu=True)


def shares(found: Attribution) -> dict[Place, float]:
    return {part.place: pytest.approx(part.shares[0]) for part in found.parts}


def test_a_kernel_belongs_to_the_instruction_that_asked_for_it(tmp_path: Path) -> None:
    found = attributed(tmp_path, plane("/host:CPU", HOST), plane("/device:GPU:0", KERNELS))
    assert shares(found) == {
        FORWARD: 0.22,
        Place("conv1", LAYOUT_COPY): 0.03,
        BACKWARD: 0.11,  # a loop's own copy counts, and what overlaps counts once
        UNMARKED: 0.01,
        Place("", OF_UPDATE): 0.06,
        Place("", GAPS): 0.57,
    }
    first = next(part for part in found.parts if part.place == FORWARD).operations[0]
    assert (first["name"], first["type"], first["shapes"]) == ("sm80_xmma_fprop", "float32", "16x8")


def test_idle_time_is_told_by_the_calls_that_launched(tmp_path: Path) -> None:
    found = attributed(tmp_path, plane("/host:CPU", HOST), plane("/device:GPU:0", KERNELS))
    gaps = next(part for part in found.parts if part.place == Place("", GAPS))
    assert {one["name"]: pytest.approx(one["share"]) for one in gaps.operations} == {
        AFTER_THE_LAST: 300 / 570,
        NOT_LAUNCHED: (30 + 150) / 570,
        NOT_BEGUN: (70 + 20) / 570,
    }


def test_without_the_driver_s_calls_nothing_is_said_of_what_a_device_waited_for(
    tmp_path: Path,
) -> None:
    host = plane("/host:CPU", {"python": HOST["python"]})
    found = attributed(tmp_path, host, plane("/device:GPU:0", KERNELS))
    gaps = next(part for part in found.parts if part.place == Place("", GAPS))
    assert {one["name"] for one in gaps.operations} == {LAUNCH_UNKNOWN, AFTER_THE_LAST}


@pytest.mark.parametrize("lines", [{}, {"XLA Ops": KERNELS["XLA Ops"]}])
def test_a_trace_without_anything_of_the_device_is_refused(
    lines: Mapping[str, Iterable[Event]], tmp_path: Path
) -> None:
    with pytest.raises(Unsupported, match="CUPTI"):
        attributed(tmp_path, plane("/host:CPU", HOST), plane("/device:GPU:0", lines))
