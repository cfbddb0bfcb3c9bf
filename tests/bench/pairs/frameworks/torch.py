"""Say what the comparison needs to know of torch."""

import contextlib
import os
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

VIEW = "a view computes nothing; what is copied for it is counted by itself"
POSITIONS = "the first positions' rows are a view of their table; nanoGPT looks them up by number"
COUNTS = "batch norms count batches, which nobody reads"
LOOKED_UP = (
    r"prims\.iota\.default|aten\.(_unsafe_masked_index_put_accumulate|bitwise_and|embedding|full|ge"
    r"|lt|ne|unsqueeze)\.\w+"
)
"""What a table is read and its gradient written with, once Inductor has taken it apart."""
EXPLAINED = (
    (r"plain aten::add_ \[\[\], \[\], \[\]\]", COUNTS),
    (r"plain node aten\.(add\.Tensor|copy_\.default) \[\]", COUNTS),
)
EXPLAINED_OF_TEXTS = (
    (r"\w+ aten::(as_strided|detach|flatten|narrow|select|slice|split\w*|unflatten|view) ", VIEW),
    (r"ours aten::(slice_backward|copy_) \[\[\d+, (64|768)\], \[", POSITIONS),
    (r"plain aten::(arange|resize_|index_select|embedding\w*) ", POSITIONS),
    (r"plain aten::(to|_to_copy|copy_|empty\w*) \[(\[\](, )?)+\]", POSITIONS),
    (r"plain aten::add \[\[\], \[\], \[\]\]", "torch's clipping adds 1e-6 to the norm"),
    (r"\w+ node aten\.(reshape|split|split_with_sizes)\.", VIEW),
    (rf"plain node ({LOOKED_UP}) \[(\d+, )?(64|128|1)\]", POSITIONS),
)


def begin():
    torch.set_num_threads(len(os.sched_getaffinity(0)))


def wait(loss):
    """Wait for the device: a step on a CPU is done when it returns."""
    if loss.is_cuda:
        torch.cuda.synchronize()


def operations(make, factors):
    """Count the operators of one step by name and shapes, forward and backward.

    Where Inductor compiles: besides what it calls, the nodes of the graphs that it compiled.
    """
    step, _ = make()
    with compiling(bool(factors.get("compile"))) as nodes:
        step()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        step()
    called = (event for event in profiler.events() if event.name.startswith(("aten::", "mkldnn::")))
    return nodes + Counter(event.name + " " + str(event.input_shapes) for event in called)


@contextlib.contextmanager
def compiling(is_compiled):
    """Count the nodes of every graph that Inductor is given, by operator and output."""
    nodes = Counter()
    if not is_compiled:
        yield nodes
        return
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Seen(CustomGraphPass):
        def __call__(self, graph):
            for node in graph.nodes:
                if node.op == "call_function":
                    value = node.meta.get("val")
                    nodes[f"node {node.target} {list(getattr(value, 'shape', ()))}"] += 1

        def uuid(self):
            return None  # whatever went through it is not cached

    with config.patch(post_grad_custom_post_pass=Seen(), force_disable_caches=True):
        yield nodes
