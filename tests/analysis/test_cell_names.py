"""A cell is named by what sets it apart, in as few words as tell it."""

from __future__ import annotations

import dataclasses

from harness.analysis.cell_names import factor_words
from tests.reports import samples


def named(*cells, framework="torch"):
    made = [
        dataclasses.replace(samples.demo().cells[0], key=str(i), framework=framework, factors=told)
        for i, told in enumerate(cells)
    ]
    varied = tuple(sorted({name for told in cells for name in told}))
    told = dataclasses.replace(samples.demo(), cells=tuple(made), varied=varied).names
    return list(told.values())


def read(reader, buffers, cache="cold"):
    return {"reader": reader, "buffers": buffers, "cache": cache, "prefetch": reader and 0}


def test_factors_that_others_tell_are_left_out():
    cells = (read(None, None, "as-found"), read("pread", 1), read("async", 1), read("async", 2))
    assert named(*cells) == [
        "torch no reader",
        "torch · 1 buffer · pread reader",
        "torch · 1 buffer · async reader",
        "torch · 2 buffers · async reader",
    ]


def test_every_factor_of_a_full_matrix_is_said():
    cells = [{"batch": b, "nodes": n, "threads": t} for b in (1, 2) for n in (1, 2) for t in (4, 8)]
    assert len(set(named(*cells))) == 8


def test_the_framework_that_is_none_is_not_named_beside_what_was_read():
    cells = ({"cache": "warm", "threads": 4}, {"cache": "cold", "threads": 4})
    assert named(*cells, framework="null") == ["warm cache", "cold cache"]


def test_of_many_factors_those_at_their_default_are_left_out():
    usual = {"batch": 16, "memory_policy": None, "nodes": 1, "peer": True, "threads": None}
    cells = [usual, *({**usual, **one} for one in ({"threads": 1}, {"nodes": 2}, {"batch": 64}))]
    cells += [{**usual, "memory_policy": "local"}, {**usual, "peer": False, "nodes": 2}]
    assert named(*cells) == [
        "torch batch 16",
        "torch · batch 16 · 1 thread",
        "torch · batch 16 · 2 nodes",
        "torch batch 64",
        "torch · batch 16 · memory policy local",
        "torch · batch 16 · 2 nodes · no peer",
    ]


def test_what_cannot_apply_is_not_called_a_default():
    assert factor_words("checkpoint_to", None) == ""
    assert factor_words("checkpoint_every", None) == "no checkpoints"
    assert factor_words("threads", None) == "threads default"


def test_a_cell_that_recomputes_says_so_and_the_other_nothing():
    assert named({"recompute": False}, {"recompute": True}) == ["torch", "torch recomputing"]
    assert factor_words("recompute", None) == ""


def test_cells_that_differ_in_options_only_go_by_their_labels():
    here = samples.demo()
    pair = [
        dataclasses.replace(here.cells[0], key=k, factors={}, label=f"alexnet · torch · graph {k}")
        for k in ("on", "off")
    ]
    told = dataclasses.replace(here, cells=tuple(pair), varied=()).names
    assert list(told.values()) == ["torch · graph on", "torch · graph off"]


def test_threads_go_with_their_reader_and_plain_files_are_not_called_undecoded():
    kinds = (("pread", 1, False), ("pread", 8, False), ("tf-data", 8, False), ("tf-data", 8, True))
    cells = [dict(zip(("reader", "reader_threads", "decode"), one, strict=True)) for one in kinds]
    assert named(*cells, framework="null") == [
        "pread × 1",
        "pread × 8",
        "tf-data × 8",
        "decoded tf-data × 8",
    ]
    assert factor_words("decode", True) == "decoded"
    assert factor_words("shuffle", "none") == "no shuffle"
