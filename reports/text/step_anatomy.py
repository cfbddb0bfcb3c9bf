"""Print one cell's step: what holds it back, its phases, layers and kinds of operations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from harness.analysis import numbers
from harness.analysis.explain.words import operations_words
from harness.analysis.limits.anatomy import Anatomy
from harness.analysis.limits.holding_back import Limit
from harness.analysis.limits.words import by_cause, sentence
from reports.text.terminal import printable, text_bar

_LISTED = 8
_BAR = 24
_REST = "kinds that the trace did not list"
_Row = tuple[str, float, str]


def render(of: Limit, name: str, width: int = 100) -> str:
    """Print what is known of a cell's step."""
    body = of.anatomy
    lines: list[str] = [
        f"{name}: {numbers.seconds(body.step_s)} a step.",
        *textwrap.wrap(f"What holds it back: {sentence(of)}.", width, subsequent_indent="  "),
    ]
    lines += _table("By cause", [(cause, share, "") for cause, share in by_cause(of)], of)
    lines += _table("By phase", [(name, share, "") for name, share in body.phases.items()], of)
    lines += _table("When nothing ran", [(name, share, "") for name, share in body.idle], of)
    lines += _table("Layers", [_site(body, at) for at in range(len(body.sites))][:_LISTED], of)
    kinds = [
        (one.name or _REST, one.share, f"{numbers.number(one.times)} ×" if one.times else "")
        for one in body.kinds[:_LISTED]
    ]
    lines += _table("Kinds of operations", kinds, of)
    for note in filter(None, (body.traced, body.undivided, body.of_device)):
        lines += ["", *textwrap.wrap(f"{note[:1].upper()}{note[1:]}.", width)]
    return "\n".join(_cut(printable(line), width) for line in lines) + "\n"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _site(body: Anatomy, at: int) -> _Row:
    one = body.sites[at]
    layer, phase = one.key
    return f"{layer}, {phase}" if layer else phase, one.share, operations_words(one.operations)


def _table(title: str, rows: Sequence[_Row], of: Limit) -> Iterator[str]:
    if not rows:
        return
    wide = max(len(name) for name, _, _ in rows)
    yield ""
    yield f"{title}:"
    for name, share, more in rows:
        took = numbers.seconds(share * of.anatomy.step_s)
        bar, told = text_bar(share, _BAR), numbers.share(share)
        yield f"  {name:{wide}}  {told:>6}  {took:>8}  {bar:{_BAR}}  {more}".rstrip()


def as_json(of: Limit, name: str) -> dict[str, Any]:
    """Give the same as data; shares are of the step."""
    body = of.anatomy
    return {
        "cell": name,
        "key": of.cell.key,
        "step_s": body.step_s,
        "held_back": of.verdict,
        "words": sentence(of),
        "causes": dict(of.shares),
        "unknown": of.unknown,
        "why_unknown": list(of.why_unknown),
        "phases": dict(body.phases),
        "idle": dict(body.idle),
        "layers": [
            {
                "site": one.key[0],
                "phase": one.key[1],
                "share": one.share,
                "operations": operations_words(one.operations),
            }
            for one in body.sites
        ],
        "operations": [
            {"name": one.name or _REST, "share": one.share, "times": one.times}
            for one in body.kinds
        ],
        "traced": body.traced,
        "undivided": body.undivided,
    }
