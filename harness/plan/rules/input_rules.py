"""Rules of input: a cell's content, files and memory, and why it cannot read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.data.catalogue import CONTENTS, FORMATS, usual_format
from harness.data.user_data import UserData
from harness.errors import nearest
from harness.plan.cell import Cell
from harness.plan.rules import text_rules
from harness.platform.platform import Platform
from harness.study.factors import FACTORS, OF_INPUT
from harness.study.framework import FrameworkInfo
from harness.toml.values import Value
from harness.units import size_text
from harness.worker.input.dataset import TOKEN_BYTES, UINT16
from harness.worker.network import shapes
from harness.worker.network.workload import Ceiling, Opening, Reading, Training
from harness.worker.scale import Scale

_ON_STORAGE = ("read", "write")
OPEN = "open"
"""The reader of metadata."""
_ASYNCHRONOUS = ("async-thread", "async-process")
_PICTURE, _COLOURS = 3, 3
"""Axes of a picture, and its channels."""


def content_of(workload: Any, factors: Mapping[str, Value]) -> str | None:
    """Name the content of a cell's files; None if it reads none."""
    if isinstance(workload, Opening | Reading):
        return workload.content
    if isinstance(workload, Training) and factors["input"] == "files":
        return workload.content
    return None


def complete(
    workload: Any, info: FrameworkInfo, factors: dict[str, Value], own: UserData | None = None
) -> None:
    """Give the factors of input that nobody stated the values that they have where files are read.

    Where none are, they stay absent, so that no key of such a cell says anything of input. A user's
    own files are as many as they are, and of their format where nobody wants another.
    """
    content = content_of(workload, factors)
    if content is None:
        return
    if own is not None:
        factors["samples"] = own.samples
        factors["format"] = factors["format"] or own.format
    if factors["samples"] is None:
        usual = workload.data if isinstance(workload, Training) else workload
        is_text = text_rules.length(workload) is not None
        factors["samples"] = text_rules.tokens(workload) if is_text else usual.samples
    if factors["format"] is None:
        factors["format"] = usual_format(content)
    if factors["reader"] is None:
        readers = info.factors.get("reader") or (None,)
        if factors["format"] == UINT16:  # no framework's own
            readers = tuple(one for one in readers if not info.reader(one).formats) or readers
        factors["reader"] = OPEN if isinstance(workload, Opening) else readers[0]
    prefetch = info.reader(factors["reader"]).prefetch
    for name, value in (("reader_threads", 1), ("prefetch", prefetch)):
        if factors[name] is None:
            factors[name] = value
    if factors["reader"] not in _ASYNCHRONOUS:
        factors["buffers"] = None  # others have none, whatever is said of their neighbours in a zip
    elif factors["buffers"] is None:
        factors["buffers"] = 2


def why_not(
    workload: Any,
    info: FrameworkInfo,
    factors: dict[str, Value],
    platform: Platform,
    own: UserData | None = None,
    *,
    scale: Scale,
) -> str | None:
    """Give the reason why a cell cannot read its input as asked; None if it can."""
    content = content_of(workload, factors)
    if isinstance(workload, Ceiling) and workload.kernel in _ON_STORAGE:
        return _no_tier(factors, platform)
    if content is None:
        stated = [name for name in OF_INPUT if factors[name] != FACTORS[name].default]
        if stated and workload.kind != "read":
            return f"{stated[0]} is about files, and this cell reads none: input = files"
        return None
    if isinstance(workload, Opening) or factors["reader"] == OPEN:
        why = _why_not_open(workload, factors)
        if why is not None:
            return why
    is_text = text_rules.length(workload) is not None if own is None else own.is_text
    if is_text:
        return _why_not_text(workload, info, factors, platform, own, scale=scale)
    if own is not None:
        return _why_not_own(own, workload, info, factors, platform, scale=scale)
    if content not in CONTENTS:
        return f"no made files hold what {workload.name} trains on"
    format_name = str(factors["format"])
    if format_name not in FORMATS:
        hint = nearest(format_name, FORMATS)
        return f"no format is called '{format_name}'.{hint}"
    if (unfit := CONTENTS[content].fits(format_name)) is not None:
        return unfit
    if factors["decode"] and CONTENTS[content].is_array:
        return f"{content} are stored as arrays: there is nothing to decode"
    if not CONTENTS[content].is_array and (
        unfit := _why_not_decoded(content, workload, info, factors)
    ):
        return unfit
    lacking = _lacks(info, factors) or _no_tier(factors, platform) or _not_read(info, factors)
    return lacking or _too_much_memory(CONTENTS[content].most_bytes, factors, platform, scale=scale)


def _why_not_text(
    workload: Any,
    info: FrameworkInfo,
    factors: dict[str, Value],
    platform: Platform,
    own: UserData | None,
    *,
    scale: Scale,
) -> str | None:
    """Give the reason why a cell cannot be fed tokens; None if it can."""
    if (unfit := text_rules.why_not(workload, factors, own, scale=scale)) is not None:
        return unfit
    if factors["decode"]:
        return "tokens are no pictures: there is nothing to decode"
    if own is not None and factors["tier"] is not None:
        return _in_place(own)
    lacking = _lacks(info, factors) or _no_tier(factors, platform) or _not_read(info, factors)
    each = text_rules.sample_bytes(TOKEN_BYTES, factors)
    return lacking or _too_much_memory(each, factors, platform, scale=scale)


def _in_place(own: UserData) -> str:
    return f"{own} are read where they lie: tier says nothing"


def _why_not_own(
    own: UserData,
    workload: Any,
    info: FrameworkInfo,
    factors: dict[str, Value],
    platform: Platform,
    *,
    scale: Scale,
) -> str | None:
    """Give the reason why a cell cannot read a user's own files; None if it can."""
    if isinstance(workload, Training) and (unfit := _why_not_trained(own, workload)) is not None:
        return unfit
    if factors["format"] != own.format:
        return f"{own} are {own.format}, not {factors['format']}"
    if factors["tier"] is not None:
        return _in_place(own)
    if own.format != "raw" and factors["decode"]:
        return "records of one's own hold any message: nothing says where in it a picture lies"
    if (unfit := _why_not_decoded(str(own), workload, info, factors)) is not None:
        return unfit
    decodes = info.reader(factors["reader"]).decodes
    strange = set(own.endings).difference(decodes)
    if factors["decode"] and decodes and strange:
        known = ", ".join(decodes)
        return (
            f"{factors['reader']} decodes {known} here, and under {own.root} lie {min(strange)} too"
        )
    lacking = _not_read(info, factors) or _lacks(info, factors)
    return lacking or _too_much_memory(own.largest, factors, platform, scale=scale)


def _why_not_trained(own: UserData, workload: Training) -> str | None:
    """Give the reason why a network cannot be trained on a user's own files; None if it can."""
    if own.format != "raw":
        return (
            f"{own} come without classes that are read here, so {workload.name} cannot be trained "
            "on them: it can on pictures in folders, one for each class, or on made data"
        )
    shape, wanted = workload.network.input, f"{workload.name} cannot be trained on {own}"
    if workload.loss != "cross-entropy" or len(shape) != _PICTURE or shape[0] != _COLOURS:
        return f"{wanted}: it takes no pictures, or tells no classes apart"
    if not own.classes:
        return f"{wanted}: they lie in no folders by class (at least two, and none beside them)"
    _, (outputs,) = shapes.output_shapes(workload.network)[-1]
    if len(own.classes) > outputs:
        return f"{wanted}: they have {len(own.classes)} classes, and it tells {outputs} apart"
    return None


def _why_not_decoded(
    what: str, workload: Any, info: FrameworkInfo, factors: dict[str, Value]
) -> str | None:
    """Give the reason why encoded pictures cannot become a network's input; None if they can."""
    if not isinstance(workload, Training) or factors["decode"]:
        return None
    if (refusal := info.refuses("decode", True)) is not None:
        return f"{what} are encoded pictures, and {refusal}"
    return f"{what} are encoded pictures: {workload.name} trains on them with decode = true"


def _why_not_open(workload: Any, factors: dict[str, Value]) -> str | None:
    """Give the reason why a cell cannot time opening files alone; None if it can."""
    if not isinstance(workload, Opening) or factors["reader"] != OPEN:
        return f"reader = {OPEN} reads nothing: it belongs to the workload open-files"
    if factors["format"] != "raw":
        return f"{workload.name} opens a file for each sample: format = raw"
    if factors["cache"] != FACTORS["cache"].default:
        return "cache is about what files hold; what is kept of their names only root can drop"
    return None


def _not_read(info: FrameworkInfo, factors: dict[str, Value]) -> str | None:
    """Give the reason why a framework's own reader does not read a format; None if it does."""
    reader = factors["reader"]
    formats = info.reader(reader).formats
    if not formats or factors["format"] in formats:
        return None
    return f"{reader} reads {' and '.join(formats)} only, not {factors['format']}"


def _lacks(info: FrameworkInfo, factors: dict[str, Value]) -> str | None:
    """Give the factor that is missing where files are read; None if none is."""
    if factors["reader"] is None:
        return f"{info.name} has no reader of files"
    if factors["shuffle"] == "file" and factors["buffer_samples"] is None:
        return "shuffle = file permutes within a buffer: buffer_samples says how large"
    if factors["compute"] != "none" and factors["compute_ms"] is None:
        return "compute stands for a model: compute_ms says how long a batch takes"
    if factors["reader"] in _ASYNCHRONOUS and factors["buffer_samples"] is None:
        return "the asynchronous reader fills buffers: buffer_samples says how large"
    return None


def _no_tier(factors: dict[str, Value], platform: Platform) -> str | None:
    tier = factors["tier"]
    if tier is None or tier in platform.storage:
        return None
    has = ", ".join(platform.storage) or "none"
    return f"{platform.name} has no storage tier '{tier}' (it has: {has})"


def buffer_bytes(sample_bytes: int, factors: Mapping[str, Any], scale: Scale) -> int | None:
    """Give the most bytes that the asynchronous reader buffers on a node; None for others."""
    if factors["reader"] not in _ASYNCHRONOUS:
        return None
    samples: int = factors["buffers"] * factors["buffer_samples"]
    return scale.ranks_per_node * samples * sample_bytes


def held_in_buffers(made: Iterable[Cell], own: UserData | None) -> list[str]:
    """Note how much memory asynchronous readers take at most."""
    most = 0
    for cell in made:
        if cell.content is not None:
            held = CONTENTS[cell.content].most_bytes if own is None else own.largest
            each = text_rules.sample_bytes(held, cell.factors)
            most = max(most, buffer_bytes(each, cell.factors, cell.scale) or 0)
    if not most:
        return []
    return [f"Buffers of asynchronous readers take up to {most / 1e6:,.0f} MB of a node."]


def _too_much_memory(
    sample_bytes: int, factors: dict[str, Value], platform: Platform, *, scale: Scale
) -> str | None:
    buffers_bytes = buffer_bytes(sample_bytes, factors, scale)
    memory = platform.offers()["memory"]
    if buffers_bytes is None or memory is None or buffers_bytes <= memory // 2:
        return None
    return (
        f"its buffers would hold {size_text(buffers_bytes)} of a node's {size_text(memory)}; "
        "more than half would leave no room for training"
    )
