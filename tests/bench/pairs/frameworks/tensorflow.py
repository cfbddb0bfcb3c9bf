"""Say what the comparison needs to know of TensorFlow, new and old, and Keras on it."""

from collections import Counter

from harness.worker.adapters.tensorflow import settings
from tests.bench.pairs import hlo

MOVED = "1.15's running statistics: ours assigns old + part, the script takes a part away in place"
PADS = "a pad stops at the last row that a window reads; the script pads one row more"
PARTS = "queries, keys and values of the sizes that heads have, which may differ; sizes are folded"
OPTIMISER = "numbers of Keras' optimiser, in the variables' type for the gate's sake"
EPSILON = "Adam's epsilon stands beside the corrected moment; Keras corrects it too"
SCALE = "Keras reckons attention's scale, which ours states"
EXPLAINED = (
    (r"\w+ (Pad|MaxPoolGrad|Slice|Conv2DBackpropInput) ", PADS),
    (r"\w+ PadV2 ", PADS + ", and pads a maximum with zeros, which a ReLU before it allows"),
    (r"ours (AddV2 \['\(\d+,\)'\]|AssignVariableOp )", MOVED),
    (r"plain AssignSubVariableOp ", MOVED),
    (r"plain Fill \['\(\)'\]", "a static graph starts backward from a one that it fills in"),
    (r"ours Cast \['\(\)'\]", OPTIMISER),
    (r"\w+ IdentityN ", "Keras passes all gradients through one, in the order of its variables"),
)
EXPLAINED_OF_TEXTS = (
    (r"ours Mul \['\(\)'\]", EPSILON),
    (r"ours (ConcatV2|StridedSlice|Sub) \['\([13],\)'\]", PARTS),
    (r"\w+ Split(V)? ", PARTS),
    (r"plain (RealDiv|Sqrt|StridedSlice) \['\(\)'\]", SCALE),
)
NO_WORK = {"Const", "Identity", "NoOp", "Placeholder", "ReadVariableOp", "VarHandleOp"}


def begin():
    settings.before_import({})


def wait(_):
    """Return at once: a step on a CPU is done when it returns."""


def operations(make, factors):
    """Count the operations of a traced step that its results need, by kind and output shapes.

    Where XLA compiles the step: the heavy instructions that it made of it.
    """
    _, made = make()
    traced = getattr(made, "traced", made)
    if factors.get("compile"):
        from tensorflow.python.eager.polymorphic_function import compiler_ir

        return hlo.counted(compiler_ir.from_concrete_function(traced)(stage="optimized_hlo"))
    return Counter(
        f"{one.type} {[str(output.shape) for output in one.outputs]}"
        for one in needed(traced)
        if one.type not in NO_WORK
    )


def needed(traced):
    """Give the operations that a traced step's results need."""
    roots = [*traced.outputs, *getattr(traced.graph, "control_outputs", ())]
    found, left = set(), [getattr(root, "op", root) for root in roots]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += [*(tensor.op for tensor in one.inputs), *one.control_inputs]
    return found
