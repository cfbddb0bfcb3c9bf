"""Calls of compiled kernels are found in a trace by their order, and none is found twice."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from harness.worker.adapters.torch.tracing.inductor import (
    BACKWARD_CALL,
    CALL,
    Graph,
    Kernel,
    places,
)
from harness.worker.attribution.marks import Place
from harness.worker.contracts import Unsupported

CONV1, CONV2 = Place("conv1", "forward"), Place("conv2", "forward")
BACK1, BACK2 = Place("conv1", "backward"), Place("conv2", "backward")
GRAPHS = (
    Graph(False, [Kernel("convolution", CONV1), Kernel("cpp_fused_relu_0", CONV1)]),
    Graph(False, [Kernel("convolution", CONV2)]),
    Graph(True, [Kernel("convolution_backward", BACK2), Kernel("convolution_backward", BACK1)]),
)


class Event(NamedTuple):
    name: str
    start: int
    end: int


FORWARD = [
    Event(f"{CALL} None ##", 0, 10),
    Event("aten::convolution", 1, 4),
    Event("aten::empty", 2, 3),
    Event("graph_0_cpp_fused_relu_0", 5, 9),
    Event("aten::convolution", 11, 12),  # of no compiled graph
    Event(f"{CALL} None ##", 13, 20),
    Event("aten::convolution", 14, 19),
]
BACKWARD = [
    Event(BACKWARD_CALL, 30, 60),
    Event(f"{CALL} None ##", 31, 60),
    Event("aten::convolution_backward", 32, 39),
    Event("aten::convolution_backward", 42, 50),
    Event("aten::convolution_backward", 51, 55),  # one more than was compiled
]


def test_calls_follow_in_the_order_in_which_graphs_and_their_kernels_were_compiled() -> None:
    assert places([*FORWARD, *BACKWARD], GRAPHS) == {
        1: CONV1,
        3: CONV1,
        6: CONV2,
        9: BACK2,
        10: BACK1,
    }


def test_a_kernel_that_was_not_called_leaves_the_next_one_its_own_place() -> None:
    left_out = [one for one in FORWARD if one.name != "aten::convolution" or one.start > 4]
    assert places(left_out, GRAPHS) == {2: CONV1, 5: CONV2}


def test_several_backward_passes_are_refused_as_they_are_compiled_in_another_order() -> None:
    with pytest.raises(Unsupported, match="compiled to 2 backward passes"):
        places([*FORWARD, *BACKWARD], (*GRAPHS, GRAPHS[-1]))


def test_a_step_that_calls_more_graphs_than_were_compiled_is_refused() -> None:
    with pytest.raises(Unsupported, match="was not compiled"):
        places(FORWARD, GRAPHS[:1])
