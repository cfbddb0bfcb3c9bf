"""Count what a step computes in the text of XLA's optimised instructions."""

import re
from collections import Counter

# %name = f32[4,55,55,64]{3,2,1,0} convolution(...)
DEFINED = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = (\S+|\(.*?\)) ([a-z][\w-]*)\(", re.MULTILINE)
LAYOUT = re.compile(r"\{[^}]*\}")
# The rest is light work, which XLA fuses as it likes.
HEAVY = {
    "convolution",
    "custom-call",
    "dot",
    "reduce-window",
    "scatter",
    "select-and-scatter",
    "sort",
    "while",
}


def counted(text, kinds=HEAVY):
    """Count the instructions of these kinds, by kind and shape."""
    return Counter(
        "{} {}".format(kind, LAYOUT.sub("", shape))
        for shape, kind in DEFINED.findall(text)
        if kind in kinds
    )
