"""Secrets are hidden by name, by shape and by place; what explains a result stays."""

from __future__ import annotations

import json

import pytest

from harness.worker.redaction.redact import (
    HIDDEN,
    redact,
    redact_command,
    redact_text,
    redact_values,
    secrets_of,
)
from tests.planted_secrets import KINDS, Kind


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_every_kind_is_hidden_as_a_variable(kind: Kind) -> None:
    assert kind.secret not in redact(kind.name, kind.value)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize(
    "line",
    [
        "{name}={value}",
        "export {name}='{value}'",
        "RuntimeError: could not start with {name}={value} (rank 0)",
        "the server said: {name}: {value}",
    ],
)
def test_every_kind_is_hidden_in_a_text(kind: Kind, line: str) -> None:
    assert kind.secret not in redact_text(line.format(name=kind.name, value=kind.value))


@pytest.mark.parametrize(
    "kind", [one for one in KINDS if one.name.startswith("SETTING")], ids=lambda one: one.name
)
@pytest.mark.parametrize("before", ["", "it is ", "\\n", '["'])
def test_what_is_a_secret_by_its_shape_is_hidden_without_a_name(kind: Kind, before: str) -> None:
    assert kind.secret not in redact_text(before + kind.value)


@pytest.mark.parametrize(
    "secret",
    [
        *("AROA", "AIDA", "AGPA", "AIPA", "ANPA", "ANVA", "ASIA"),
        *("ghs_", "glrt-", "xapp-", "rk_test_", "whsec_", "GOCSPX-", "dop_v1_", "shpss_"),
        *("dapi", "nvapi-", "glsa_", "hvb.", "s.", "Negotiate "),
    ],
)
def test_shapes_that_begin_alike_are_hidden_without_a_name(secret: str) -> None:
    assert redact_text(
        f"got {secret}{'0123456789ABCDEF' if 'A' in secret[:1] else 'a0' * 16}"
    ).endswith(HIDDEN)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_every_kind_is_hidden_in_lines_that_json_holds(kind: Kind) -> None:
    lines = json.dumps(f"one\n{kind.name}={kind.value}\nthree 3")
    shown = redact_text(lines)
    assert json.dumps(kind.secret)[1:-1] not in shown


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_every_kind_is_hidden_in_quoted_values(kind: Kind) -> None:
    once = json.dumps({"worker": 1, kind.name: kind.value, "after": "x"})
    shown = redact_text(f"TF_CONFIG={once}")
    assert json.dumps(kind.secret)[1:-1] not in shown
    assert '"after": "x"' in shown
    twice = json.dumps({"config": once})
    assert kind.secret not in redact_text(twice)
    assert kind.secret not in redact_text(repr({kind.name: kind.value, "after": 1}))


@pytest.mark.parametrize(
    "text",
    [
        "OMP_NUM_THREADS=2",
        "epoch 3: loss=0.25 tokens=4096 max_tokens: 512 tokens_per_second=1.5e6",
        "KeyError: 'batch'",
        'Traceback (most recent call last):\n  File "/a/b.py", line 3, in step',
        "key: 5, session: 3, license: MIT",
        "commit 8843d7f92416211de9ebb963ff4ce28125932878",
        "mkdir -p /scratch/me && cp -p a b",
        "Basic training of the network",
        "https://example.org/path?x=1#y",
        "mpirun --map-by slot -x PATH --mca btl ^openib",
        "someone@example.org wrote: see docs",
        "cell_key=alexnet-torch-4f2a block=3",
        "platform.toml:7: environment: 'x' is not a text",
        "XLA_FLAGS=--xla_cpu_multi_thread_eigen=false",
        "Rank 0 failed: boom. Log: /runs/mine/cells/abc/trial-1/rank.0.err",
        "skipped 3 of 10; dsk-layout; risk-averse-computation-of-everything",
        "the password is wrong",
    ],
)
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert redact_text(text) == text


def test_a_secret_that_follows_its_option_is_hidden() -> None:
    argv = ["tool", "--password", "hunter2", "-p", "hunter3", "--size", "smoke", "--token=abc"]
    assert redact_command(argv) == [
        *("tool", "--password", HIDDEN, "-p", HIDDEN, "--size", "smoke", f"--token={HIDDEN}")
    ]


def test_values_are_hidden_by_their_keys_and_environments_by_their_names() -> None:
    value = {
        "environment": {"MY_KEY": "x", "OMP_NUM_THREADS": "2"},
        "cell_key": "k",
        "n": [1, None],
    }
    shown = redact_values(value | {"password": "x", "title": "with token=abcdefgh"})
    assert shown["environment"] == {"MY_KEY": HIDDEN, "OMP_NUM_THREADS": "2"}
    assert shown["cell_key"] == "k"
    assert shown["n"] == [1, None]
    assert shown["password"] == HIDDEN
    assert shown["title"] == f"with token={HIDDEN}"


def test_each_of_several_secrets_under_one_key_is_hidden() -> None:
    assert redact_values({"password": ["hunter2", "hunter3"]}) == {"password": [HIDDEN, HIDDEN]}


def test_a_quoted_secret_that_is_cut_short_is_hidden() -> None:
    for text in ('password=\\"hunter2', "password='hunter2", '{\\"password\\": \\"hunter2 and'):
        assert "hunter2" not in redact_text(text)


def test_hiding_twice_changes_nothing() -> None:
    for kind in KINDS:
        once = redact_text(f"{kind.name}={kind.value}")
        assert redact_text(once) == once


def test_what_variables_hide_is_hidden_wherever_it_is_repeated() -> None:
    known = secrets_of(
        {"DB_PASSWORD": "correct horse", "N_KEY": "1", "OMP_NUM_THREADS": "12345678"}
    )
    assert known == ("correct horse",)
    assert redact_text("it said: correct horse 12345678", known) == f"it said: {HIDDEN} 12345678"


@pytest.mark.parametrize("word", ["y", "a:", "http://", "curl ", "eyJ", "y-"])
def test_a_long_text_is_read_in_a_moment(word: str) -> None:
    """Each of these took minutes: a page is made of what others wrote."""
    text = word * (100_000 // len(word))
    assert redact_text(f"{text} password=hunter2hunter2").endswith("password=(redacted)")


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("form", ["{name}={value}", "{name}:\n\n  {value}", '"{name}" =\n{value}'])
def test_every_kind_is_hidden_among_many_lines(kind: Kind, form: str) -> None:
    text = form.format(name=kind.name, value=kind.value)
    lines = [f"step {number}: loss=0.25 at 12.3 images/s" for number in range(20)]
    shown = redact_text("\n".join([*lines, text, *lines]))
    assert kind.secret not in shown
    assert [line for line in shown.split("\n") if line.startswith("step")][:20] == lines
