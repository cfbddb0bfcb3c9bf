"""Find the layer and pass of each kernel that torch.compile made, by Inductor's own provenance.

While a step is compiled, Inductor keeps for each call of a kernel the operations that it was made
of, and these the module that they stand in. The calls of a trace follow in the same order. A kernel
of several layers belongs to its last operation's; one that is made of a graph's inputs alone brings
them into another layout.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from harness.worker.attribution.marks import (
    BACKWARD,
    FORWARD,
    LAYOUT_COPY,
    OF_LOSS,
    UNMARKED,
    Place,
)
from harness.worker.contracts import Unsupported

CALL = "## Call CompiledFxGraph"
BACKWARD_CALL = "CompiledFunctionBackward"
KERNEL = "cpp_"
"""How the names of kernels begin that Inductor writes for CPUs."""
_MODULE = re.compile(r"^L\['self'\]\.network\.")
_OF_GRAPH = re.compile(r"^graph_\d+_")


class Kernel(NamedTuple):
    """One call of a kernel, by the name that a trace gives it."""

    name: str
    place: Place


class Graph(NamedTuple):
    """The calls of one compiled graph, in order."""

    is_backward: bool
    kernels: List[Kernel]


@contextmanager
def kept_graphs(network: Any, found: List[Graph]) -> Iterator[None]:
    """Divide anew what is compiled meanwhile into kernels; append what each of them is made of.

    The kernels' own code comes from the cell's cache: they are those that are timed, each within a
    range of its own.
    """
    try:
        from torch._functorch import config as of_gradients
        from torch._inductor import async_compile, config, debug, graph

        compiled, loaded = graph.GraphLowering.codegen, async_compile.AsyncCompile.wait
        config.trace.provenance_tracking_level  # noqa: B018 - what older ones lack
    except (ImportError, AttributeError) as error:
        message = "this torch keeps no provenance of its kernels: {}".format(error)
        raise Unsupported(message) from error
    layers = _layers(network)

    def keep(lowering: Any, *given: Any) -> Any:
        made = compiled(lowering, *given)
        of_kernels = debug._inductor_triton_kernel_to_post_grad_node_info
        found.append(_graph(lowering, of_kernels, layers))
        return made

    def in_ranges(own: Any, scope: Dict[str, Any]) -> None:
        loaded(own, scope)
        kernels = [name for name in scope if name.startswith(KERNEL) and callable(scope[name])]
        scope.update((name, _in_a_range(name, scope[name])) for name in kernels)

    settings = {"trace.provenance_tracking_level": 1, "fx_graph_cache": False}
    graph.GraphLowering.codegen = keep
    async_compile.AsyncCompile.wait = in_ranges
    try:
        with config.patch(settings), of_gradients.patch(enable_autograd_cache=False):
            yield
    finally:
        graph.GraphLowering.codegen = compiled
        async_compile.AsyncCompile.wait = loaded


def _in_a_range(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    from torch._C._profiler import _RecordFunctionFast

    def called(*given: Any) -> Any:
        with _RecordFunctionFast(name):
            return kernel(*given)

    return called


def _layers(network: Any) -> Dict[str, str]:
    """Give the layer's path of each module by torch's name of it."""
    paths = {id(module): path for path, module in network.at.items()}
    return {
        name: paths[id(module)] for name, module in network.named_modules() if id(module) in paths
    }


def _graph(lowering: Any, of_kernels: Mapping[str, Sequence[str]], layers: Any) -> Graph:
    phase = BACKWARD if lowering.is_backward else FORWARD
    by_libraries = {
        name for called, names in of_kernels.items() if _is_library(called) for name in names
    }
    kernels = []
    for called, names in of_kernels.items():  # NAME:NUMBER, in the order of the calls
        # A generated kernel that prepares what a library then computes names that, too.
        own = set(names) if _is_library(called) else set(names) - by_libraries
        made_of = [node for node in lowering.graph.nodes if node.name in (own or names)]
        name = _as_traced(called.rpartition(":")[0])
        kernels.append(Kernel(name, _place(made_of, phase, layers)))
    return Graph(bool(lowering.is_backward), kernels)


def _is_library(called: str) -> bool:
    """Tell the call of an operator (``extern_kernels.mm``) from that of a generated kernel."""
    return "." in called


def _place(made_of: Sequence[Any], phase: str, layers: Mapping[str, str]) -> Place:
    if made_of and all(node.op == "placeholder" for node in made_of):
        return Place("", LAYOUT_COPY)
    read = [given for node in made_of for given in node.all_input_nodes]
    for node in (*reversed(made_of), *reversed(read)):  # what replaced others may stand in none
        modules = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
        if not modules and node.meta.get("stack_trace"):
            return Place("", OF_LOSS)  # written where no network is, and compiled with one
        site = _site(modules, layers)
        if site:
            return Place(site, phase)
    return UNMARKED


def _site(modules: Mapping[str, Any], layers: Mapping[str, str]) -> str:
    """Give the innermost layer that an operation stands in; "" for none."""
    for name, _ in reversed(list(modules.values())):
        path = layers.get(_MODULE.sub("", name))
        if path is not None:
            return path
    return ""


def _as_traced(called: str) -> str:
    """Give the name in a trace: of ``extern_kernels.mm`` or ``torch.ops.aten.mm.default``, mm."""
    parts = called.split(".")
    if parts[:2] == ["torch", "ops"]:
        return parts[3]
    return parts[-1]


def places(step: Sequence[Any], graphs: Sequence[Graph]) -> Dict[int, Place]:
    """Give the place of each call in a step's events, which lie in order, by its number there."""
    waiting = {
        way: [one for one in graphs if one.is_backward == way and one.kernels]
        for way in (False, True)
    }
    if len(waiting[True]) > 1:
        # Each may have been compiled with its forward pass, or when it was first called.
        message = "it was compiled to {} backward passes, whose order no trace tells"
        raise Unsupported(message.format(len(waiting[True])))
    found: Dict[int, Place] = {}
    backward_until = until = 0
    left: List[Kernel] = []
    for number, event in enumerate(step):
        if event.name == BACKWARD_CALL:
            backward_until = event.end
        elif event.name.startswith(CALL):
            of_pass = waiting[event.start < backward_until]
            if not of_pass:
                raise Unsupported("its step runs a graph that was not compiled with it")
            left, until = list(of_pass.pop(0).kernels), event.end
        elif event.start < until:
            name = _OF_GRAPH.sub("", event.name.rpartition("::")[2])
            at = next((at for at, one in enumerate(left) if one.name == name), None)
            if at is not None:
                found[number] = left[at].place
                del left[: at + 1]
    return found
