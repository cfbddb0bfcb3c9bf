"""Tell of which layer and pass each kernel of a captured step is.

tinygrad keeps words about an operation beside it (``all_metadata``), and lends those of a forward
operation to its gradient; but its scheduler, which rewrites all into kernels, drops them. While a
step is captured here, what stands in the place of an operation inherits its words. No operation is
told apart by them, so that the kernels are the same.

A kernel belongs to its outermost reduction: what is computed once for each result is little beside
it. One that reduces nothing belongs to its last operation; one that only moves a tensor is a copy.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

from tinygrad import Context, Tensor, tensor
from tinygrad.helpers import Metadata
from tinygrad.uop import GroupOp, Ops
from tinygrad.uop.ops import RewriteContext, all_metadata

from harness.worker.attribution.marks import (
    BACKWARD,
    LAYOUT_COPY,
    PLAIN_COPY,
    UNMARKED,
    Mark,
    Marks,
    Place,
)


class Kernel(NamedTuple):
    """One kernel, as it was scheduled."""

    program: Any
    """What it is to compute, not compiled yet."""
    place: Place


Words = Tuple[Any, ...]
_Place = Callable[[Any], Place]


def marking(marks: Marks) -> Mark:
    """Give what marks the operations of layers, the loss and the update."""

    @contextmanager
    def mark(name: str) -> Iterator[None]:
        before = tensor._METADATA.get()
        tensor._METADATA.set(Metadata(marks.of(name)))
        try:
            yield
        finally:
            tensor._METADATA.set(before)

    return mark


@contextmanager
def kept_kernels(captured: Any, marks: Marks) -> Iterator[List[Kernel]]:
    """Keep the kernels that are scheduled for a capture, in order."""
    kernels: List[Kernel] = []
    scheduled: Dict[Any, Place] = {}

    def keeping(capture: Any) -> Any:
        def kept(linear: Any, *more: Any) -> None:
            found = [Kernel(one.src[0], scheduled.get(_key(one), UNMARKED)) for one in linear.src]
            kernels.extend(found)
            capture(linear, *more)

        return kept

    def place(words: Words) -> Place:
        found = marks.place(words[0].name)
        is_backward = words[0].backward and found.site
        return found._replace(phase=BACKWARD) if is_backward else found

    def inheriting(rewrite: Any) -> Any:
        return _inherited(rewrite, scheduled, place)

    with ExitStack() as patched:
        # A schedule from the cache would be one whose operations had no words.
        patched.enter_context(Context(SCACHE=0))
        patched.enter_context(_patched(captured, "add_linear", keeping))
        patched.enter_context(_patched(Tensor, "_apply_uop", _told_of_all))
        patched.enter_context(_patched(RewriteContext, "unified_rewrite", inheriting))
        patched.enter_context(_patched(RewriteContext, "walk_rewrite", inheriting))
        yield kernels


@contextmanager
def _patched(owner: Any, name: str, around: Callable[[Any], Any]) -> Iterator[None]:
    given = getattr(owner, name)
    setattr(owner, name, around(given))
    try:
        yield
    finally:
        setattr(owner, name, given)


def _told_of_all(apply: Any) -> Any:
    """Tell of all operations of which a tensor's is made: tinygrad tells of the last one."""

    def told(self: Any, *given: Any, **more: Any) -> Any:
        made = apply(self, *given, **more)
        words = tensor._METADATA.get()
        if words is not None:
            for operand in made.uop.src:
                _tell(operand, (words,))
        return made

    return told


def _tell(root: Any, words: Words) -> None:
    """Tell of an operation and all below it of which nothing is told yet."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one not in all_metadata:
            all_metadata[one] = words
            waiting += one.src


def _inherited(rewrite: Any, scheduled: Dict[Any, Place], place: _Place) -> Any:
    def inherited(self: Any, root: Any) -> Any:
        result = rewrite(self, root)
        for before, after in self.replace.items():
            if before is after:
                continue
            if _is_kernel(before) and _is_kernel(after):
                scheduled.setdefault(_key(after), scheduled.get(_key(before), UNMARKED))
            elif _is_kernel(after) and before.op in (Ops.STORE, Ops.END):
                scheduled[_key(after)] = _place_of(before, place)
            elif before in all_metadata:
                _tell(after, all_metadata[before])
        return result

    return inherited


def _is_kernel(one: Any) -> bool:
    return one.op is Ops.CALL and one.src[0].op is Ops.SINK


def _key(call: Any) -> Tuple[Any, ...]:
    """Tell kernels apart that compute the same, by the buffers that they do it with."""
    return (call.src[0], *(_buffer(one) for one in call.src[1:]))


def _buffer(argument: Any) -> Any:
    return (argument.src[0] if argument.op is Ops.RESHAPE else argument).buf_uop


def _place_of(store: Any, place: _Place) -> Place:
    """Give the place of what is stored."""
    target, value = (store.src[0] if store.op is Ops.END else store).src[:2]
    last = UNMARKED
    for one in _outermost_first(value):
        words = all_metadata.get(one)
        if words and one.op is Ops.REDUCE:
            return place(words)
        if words and last == UNMARKED and one.op in GroupOp.Elementwise:
            last = place(words)
    moved = value.src[0] if value.op is Ops.LOAD else value
    if moved.op is not Ops.INDEX:
        return last
    if moved.src[1:] == target.src[1:]:
        return Place("", PLAIN_COPY)
    return Place("", LAYOUT_COPY)


def _outermost_first(value: Any) -> Iterator[Any]:
    """Give what a value is computed from, without what other kernels compute, and without places.

    Of two operations that nearer the result comes first.
    """
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop(0)
        if one in seen or one.op is Ops.AFTER:
            continue
        seen.add(one)
        yield one
        waiting += one.src[:1] if one.op is Ops.INDEX else one.src
