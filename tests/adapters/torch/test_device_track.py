"""Divide steps of torch by what ran on a GPU.

The traces here are written by hand after the format of torch's trace files (kernels, copies, fills
and calls of CUDA, joined by ``External id`` and ``correlation``). None was recorded on a GPU.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from harness.worker.adapters.torch.tracing.events import read
from harness.worker.adapters.torch.tracing.inductor import CALL, Graph, Kernel
from harness.worker.adapters.torch.tracing.operators import divided
from harness.worker.attribution.account import Attribution
from harness.worker.attribution.idle import AFTER_THE_LAST, NOT_BEGUN, NOT_LAUNCHED
from harness.worker.attribution.marks import (
    GAPS,
    LAYOUT_COPY,
    LOSS,
    OF_LOSS,
    OF_UPDATE,
    STEP,
    UNMARKED,
    Marks,
    Place,
)
from harness.worker.contracts import Unsupported
from tests.adapters.torch.kineto_file import FromFile, Untold, from_json
from workloads.tinycnn import WORKLOAD

MARKS = Marks(WORKLOAD.network)
MAIN, BACKWARD_THREAD, LENGTH_US, STEPS = 100, 200, 1000, 6
FORWARD, BACKWARD = Place("conv1", "forward"), Place("conv1", "backward")
NODE = "autograd::engine::evaluate_function: "

Line = dict[str, Any]


class Written:
    """The lines of one trace, in microseconds from where a step began."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.began = 0.0
        self._numbers, self._calls = count(1), count(9000)

    def host(
        self, name: str, start: float, end: float, thread: int = MAIN, **own: Any
    ) -> tuple[int, int]:
        number = next(self._numbers)
        kind = "cpu_op" if "::" in name or name.startswith(("triton_", "## ")) else ""
        args = {"External id": number, **own}
        self._add(kind or "user_annotation", name, start, end, thread, args)
        return number, thread

    def device(
        self, kind: str, name: str, start: float, end: float, stream: int, **own: Any
    ) -> None:
        self._add(kind, name, start, end, stream, {"device": 0, "stream": stream, **own})

    def launch(
        self,
        operator: tuple[int, int],
        call: tuple[float, float],
        name: str,
        ran: tuple[float, float],
        stream: int = 7,
        *,
        kind: str = "kernel",
        by: str = "cudaLaunchKernel",
    ) -> None:
        number, thread = operator
        args = {"External id": number, "correlation": next(self._calls)}
        self._add("cuda_runtime", by, *call, thread, args)
        self.device(kind, name, *ran, stream, **args)

    def runtime(self, name: str, start: float, end: float) -> None:
        self._add("cuda_runtime", name, start, end, MAIN, {"correlation": next(self._calls)})

    def _add(self, kind: str, name: str, start: float, end: float, thread: int, args: Line) -> None:
        at = {"ts": self.began + start, "dur": end - start, "pid": 1, "tid": thread}
        self.lines.append({"ph": "X", "cat": kind, "name": name, **at, "args": args})


def eager_step(trace: Written, *, is_marked: bool) -> None:
    trace.host(STEP, 0, LENGTH_US)
    if is_marked:
        trace.host(MARKS.of("conv1"), 10, 60)
    shapes = {"Input type": ["float", "float"], "Input Dims": [[16, 3, 32, 32], [16, 3, 3, 3]]}
    trace.host("aten::conv2d", 12, 50, **{"Sequence number": 5})
    conv = trace.host("aten::cudnn_convolution", 15, 49, **shapes)
    trace.launch(conv, (20, 25), "sm80_xmma_fprop", (100, 300))
    trace.launch(conv, (30, 35), "nhwcToNchwKernel", (300, 340))
    copy = trace.host("aten::copy_", 52, 56, **shapes)
    trace.launch(copy, (53, 54), "Memcpy DtoD", (340, 400), kind="gpu_memcpy", by="cudaMemcpyAsync")
    if is_marked:
        trace.host(LOSS, 70, 100)
    loss = trace.host("aten::nll_loss", 72, 90)
    trace.launch(loss, (75, 80), "nll_loss_forward", (400, 420))
    trace.device("gpu_memcpy", "Memcpy HtoD", 420, 430, 7, correlation=1)
    back = {"thread": BACKWARD_THREAD, "Sequence number": 5}
    trace.host(f"{NODE}ConvolutionBackward0", 120, 200, **back)
    gradient = trace.host("aten::convolution_backward", 130, 190, BACKWARD_THREAD, **shapes)
    trace.launch(gradient, (135, 138), "Memset", (450, 460), 20, kind="gpu_memset", by="cudaMemset")
    trace.launch(gradient, (140, 145), "sm80_xmma_dgrad", (450, 650), 7)
    trace.launch(gradient, (150, 155), "sm80_xmma_wgrad", (550, 750), 20)
    trace.host(f"{NODE}torch::autograd::AccumulateGrad", 205, 215, BACKWARD_THREAD)
    added = trace.host("aten::add_", 207, 212, BACKWARD_THREAD)
    trace.launch(added, (208, 210), "vectorized_elementwise_kernel", (750, 760))
    trace.host("Optimizer.step#SGD.step", 220, 300)
    update = trace.host("aten::_fused_sgd_", 230, 290)
    trace.launch(update, (240, 245), "multi_tensor_apply_kernel", (740, 790), 20)
    for name in (STEP, "Optimizer.step#SGD.step"):
        trace.device("gpu_user_annotation", name, 100, 790, 7)
    trace.runtime("cudaDeviceSynchronize", 320, 990)


def written(step: Any) -> tuple[list[Line], list[Line]]:
    """Write a trace of one marked step, and one of several without marks."""
    marked, plain = Written(), Written()
    step(marked, is_marked=True)
    for number in range(STEPS):
        plain.began = number * 1.5 * LENGTH_US
        step(plain, is_marked=False)
        if number % 2:
            plain.runtime("cudaEventQuery", 400, 401)  # what the allocator asks now and then
    return marked.lines, plain.lines


def attributed(
    step: Any, kind: type[FromFile] = FromFile, graphs: tuple[Graph, ...] = ()
) -> Attribution:
    (one,), made = (read(from_json({"traceEvents": lines}, kind)) for lines in written(step))
    return divided(one, made, MARKS, graphs, [], is_gpu=True)


def shares(found: Attribution) -> dict[Place, float]:
    assert len(found.step_s) == STEPS
    for part in found.parts:
        assert part.shares == pytest.approx([part.shares[0]] * STEPS)
    return {part.place: pytest.approx(part.shares[0]) for part in found.parts}


@pytest.mark.parametrize("kind", [FromFile, Untold])
def test_a_kernel_s_time_belongs_to_the_operator_that_launched_it(kind: type[FromFile]) -> None:
    assert shares(attributed(eager_step, kind)) == {
        FORWARD: 0.24,
        Place("conv1", LAYOUT_COPY): 0.06,
        Place("", OF_LOSS): 0.02,
        BACKWARD: 0.30,  # what overlapped on two streams is counted once; 0.01 the update shared
        Place("", OF_UPDATE): 0.04,
        UNMARKED: 0.01,
        Place("", GAPS): 0.33,
    }


def test_messages_that_begin_when_they_can_leave_the_order_of_operators_alone() -> None:
    def stepped(message_us: float) -> list[str]:
        trace = Written()
        trace.host(STEP, 0, LENGTH_US)
        trace.host("aten::relu", 10, 20)
        trace.host("gloo:all_reduce", message_us, message_us + 5, 300)
        trace.host("aten::addmm", 30, 40)
        (step,) = read(from_json({"traceEvents": trace.lines}, FromFile))
        return [event.name for event in step.host]

    assert stepped(5) == stepped(25) == ["aten::relu", "aten::addmm"]


def test_kernels_are_named_with_the_types_and_shapes_of_their_operators() -> None:
    parts = {part.place: part.operations for part in attributed(eager_step).parts}
    first, second = parts[FORWARD]
    assert (first["name"], first["type"]) == ("sm80_xmma_fprop", "float")
    assert first["shapes"] == "16x3x32x32 16x3x3x3"
    assert (first["times"], second["name"]) == (1, "nhwcToNchwKernel")
    assert [one["name"] for one in parts[UNMARKED]] == ["Memcpy HtoD"]


def test_idle_time_is_told_by_what_the_device_waited_for() -> None:
    gaps = next(one for one in attributed(eager_step).parts if one.place == Place("", GAPS))
    found = {one["name"]: pytest.approx(one["share"]) for one in gaps.operations}
    assert found == {AFTER_THE_LAST: 210 / 330, NOT_BEGUN: 95 / 330, NOT_LAUNCHED: 25 / 330}


def compiled_step(trace: Written, *, is_marked: bool) -> None:
    trace.host(STEP, 0, LENGTH_US)
    trace.host(f"{CALL} None ##", 10, 90)
    conv = trace.host("aten::convolution", 12, 30)
    trace.launch(conv, (14, 16), "sm80_xmma_fprop", (100, 300))
    own = trace.host("triton_poi_fused_relu_0", 40, 50)
    trace.launch(own, (42, 44), "triton_poi_fused_relu_0", (300, 400), by="cuLaunchKernel")
    unknown = trace.host("triton_per_fused_sum_1", 60, 70)
    trace.launch(unknown, (62, 64), "triton_per_fused_sum_1", (400, 450), by="cuLaunchKernel")


def test_compiled_kernels_stand_where_their_provenance_says_and_others_are_named() -> None:
    kernels = [Kernel("convolution", FORWARD), Kernel("triton_poi_fused_relu_0", FORWARD)]
    found = attributed(compiled_step, graphs=(Graph(False, kernels),))
    assert shares(found) == {FORWARD: 0.3, UNMARKED: 0.05, Place("", GAPS): 0.65}
    rest = next(one for one in found.parts if one.place == UNMARKED)
    assert [one["name"] for one in rest.operations] == ["triton_per_fused_sum_1"]


def replayed_step(trace: Written, *, is_marked: bool) -> None:
    """A CUDA graph: one call launches all, outside of every operator."""
    trace.host(STEP, 0, LENGTH_US)
    for number in range(3):
        name = f"triton_poi_fused_{number}"
        trace.launch((0, MAIN), (20, 30), name, (100 * number + 100, 100 * number + 200))


def test_what_a_graph_replays_is_a_remainder_with_names() -> None:
    found = attributed(replayed_step)
    assert shares(found) == {UNMARKED: 0.3, Place("", GAPS): 0.7}
    assert {one["name"] for one in found.parts[1].operations} == {
        f"triton_poi_fused_{number}" for number in range(3)
    }


def only_the_host(trace: Written, *, is_marked: bool) -> None:
    eager_step(trace, is_marked=is_marked)
    trace.lines = [one for one in trace.lines if one["cat"] in ("cpu_op", "user_annotation")]


def test_a_trace_without_anything_of_the_device_is_refused() -> None:
    with pytest.raises(Unsupported, match="CUPTI"):
        attributed(only_the_host)


def different_steps(trace: Written, *, is_marked: bool) -> None:
    eager_step(trace, is_marked=is_marked)
    if not is_marked:
        trace.host("aten::empty", 500, 501)


def test_steps_of_other_operators_are_refused() -> None:
    with pytest.raises(Unsupported, match="other operators"):
        attributed(different_steps)
