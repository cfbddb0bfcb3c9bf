"""Secrets are hidden by name, by shape and by place; what explains a result stays."""

from __future__ import annotations

import json

import pytest

from harness.worker.redaction.places import HIDDEN
from harness.worker.redaction.redact import (
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
        "the access_token is missing; set api-key in the environment or WANDB_API_KEY here",
        "git+https://example.org/some/repo.git@v1.2.3#egg=x",
        "https://registry.example/@scope/pkg@1.2.3/x:8080",
        "http://localhost:8080/path/@x and http://[::1]:8080/a@b",
        "docker pull nvcr.io/nvidia/pytorch:24.05-py3@sha256:0123456789abcdef0123456789abcdef",
        "docker run -p 8080:80 -w /x image; mpirun -np 4 -x PATH; sort -u file; ssh -p 22 login",
        "Collecting nvidia-cublas-cu12==12.1.3.1 (from torch==2.3.0)",
        "  Downloading torch-2.3.0-cp311-cp311-manylinux_2_28_x86_64.whl (779.1 MB)",
        "Successfully installed MarkupSafe-2.1.5 filelock-3.13.1 typing-extensions-4.9.0",
        "-DCMAKE_BUILD_TYPE=Release -DUSE_NCCL=ON -gencode arch=compute_90,code=sm_90",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  file.tar.gz",
        "file.c:5432:7: error: expected ';' before '}' token",
        "module.py:10:20:E501:line too long",
        "NCCL INFO Channel 00/02 : 0[0] -> 1[1] via P2P/CUMEM/read",
        "GPU-8f1a2b3c-0123-4567-89ab-0123456789ab, NVIDIA H100 80GB HBM3, 535.104.05",
        "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>",
        "_ZN2at6native12_GLOBAL__N_114gemm_notrans_EllldPKdlS3_ldPdl+0x1a2",
        "$1$2$3 costs ${HOME}/bin $(pwd) $6.50",
        "token ids: 12 13 14; key-value cache; secret of success; author: me@example.org",
        "hf_hub_download_with_cache npm_config_user_agent r8_something_else_here fw_version_number",
        "1e-5 0x7f3c2a1b MIIMarch AQ SK 12:AA Q~ {SHA} sess-ion",
        "\x1b[32mstep 3\x1b[0m of 5%3d; AT&amp;T",
        "docker run -u 1000:1000 image",
        "srun -t 01:30:00 -n 2; tool -t resnet50 -t 8; du -t 1000000000000000",
        "keys:\n  - first\n  - second\nforce: |\n  a\n  b",
        "-----BEGIN CERTIFICATE----- and LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t",
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


@pytest.mark.parametrize(
    "text",
    [
        '{"token": ["hunter2"], "after": 1}',
        '{"token": ["a", "hunter2"], "after": 1}',
        '{"token": [{"value": "hunter2"}, ["]", "hunter2"]], "after": 1}',
        '{"password": {"of": {"me": "hunter2"}}, "after": 1}',
        "{'credentials': {'user': 'a}', 'x': ('hunter2',)}, 'after': 1}",
        'auth_token = [\n  "a",\n  "hunter2",\n]\nafter',
        "password:\n  - hunter2\nafter",
        "password: |\n  hunter2\nafter",
        "password: !vault hunter2\nafter",
        "api-key hunter2\nafter",
        "set auth_token hunter2 after",
        "--api-key hunter2 after",
        "{'password': b'hunter2', 'x': 'after'}",
        "password=u'hunter2' after",
        "token=SecretStr('hunter2') after",
        'token = Secret(value="hunter2 )", of=("x", 2)), after',
        '{"name": "HF_TOKEN", "value": "hunter2"}, after',
        '{\\"name\\": \\"HF_TOKEN\\", \\"value\\": \\"hunter2\\"}, after',
        "- name: HF_TOKEN\n  value: hunter2\nafter",
        '<add key="Password" value="hunter2"/> after',
        "Command '['tool', '--password', 'hunter2', 'after']' failed",
        '["tool", "--auth-token", "hunter2", "after"]',
        "DB_PASSWORD=a&b,c)hunter2 after",
        "password=a\\bhunter2 after",
        "--api-key=hunter2 after",
        "mysql -phunter2 after",
        "mysql -p hunter2 after",
        "/usr/bin/mysqldump --x -phunter2 after",
        "password: |\n  a\n\n    hunter2\n  hunter2\nafter",
        "a:\n  password: >-\n    a hunter2\n    hunter2\n  x: after",
        "passwords:\n- a\n- hunter2\nafter: 1",
        "a:\n  password:\n    - a\n    - hunter2\n  x: after",
        "password: &one hunter2\nafter",
        'password: "a\n  hunter2"\nafter',
        "otp_seed=hunter2 after",
        '{"totp_seed": "hunter2", "after": 1}',
        "mfa_code: hunter2\nafter",
        'psk="hunter2" after',
        "PresharedKey = hunter2\nafter",
        "munge_key=hunter2 after",
        "ALTER USER me WITH PASSWORD 'hunter2' -- after",
        'CREATE USER me IDENTIFIED BY "hunter2"; after',
        "no connection with password 'hunter2', after",
        "curl -ume:hunter2 after",
        "vault login hunter2 after",
        "smbclient //host/share -U me%hunter2 after",
        "ipmitool -U me -P hunter2 after",
        "wandb.login(relogin=True, key='hunter2') after",
        "tool -t x1hunter2Qm4Zt7Lp0Rk after",
    ],
)
@pytest.mark.parametrize("lines", [0, 20])
def test_values_of_several_words_are_hidden_as_a_whole(text: str, lines: int) -> None:
    around = "".join(f"step {number}\n" for number in range(lines))
    shown = redact_text(around + text + "\n" + around)
    assert "hunter2" not in shown
    assert "after" in shown


def test_nested_values_of_a_secret_key_are_hidden() -> None:
    value = {"password": {"of": [{"me": "hunter2"}], "n": 12345}, "token": 12345, "count": 12345}
    shown = redact_values(value)
    assert "hunter2" not in repr(shown)
    assert repr(shown).count("12345") == 1


def test_members_that_are_announced_as_secrets_are_hidden() -> None:
    value = {
        "env": [{"name": "HF_TOKEN", "value": "hunter2"}, {"name": "OMP", "value": "2"}],
        "args": ["tool", "--token", "hunter2", "--size", "smoke", "-x"],
        "headers": [["Authorization", "hunter2"], ("X-Api-Key", "hunter2"), ["a", "b"]],
        "more": [{"key": "password", "value": "hunter2"}, {"key": "size", "value": "smoke"}],
        "login": ["curl", "-u", "me:hunter2", "-o", "a:b"],
    }
    shown = redact_values(value)
    assert "hunter2" not in repr(shown)
    assert shown["env"][1] == value["env"][1]
    assert shown["args"][:2] + shown["args"][3:] == ["tool", "--token", "--size", "smoke", "-x"]
    assert shown["headers"][2] == ["a", "b"]
    assert shown["more"][1] == value["more"][1]
    assert shown["login"][3:] == ["-o", "a:b"]


def test_a_password_joined_to_its_option_is_hidden_in_a_command() -> None:
    argv = ["collect", "--", "/usr/bin/mysql", "-u", "me", "-phunter2", "-x"]
    assert redact_command(argv) == [*argv[:5], f"-p{HIDDEN}", "-x"]
    assert redact_command(["mpirun", "-np", "4"]) == ["mpirun", "-np", "4"]


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


@pytest.mark.parametrize(
    "word",
    [
        *(
            "y",
            "a:",
            "http://",
            "curl ",
            "eyJ",
            "y-",
            "x://a:b",
            "a_b ",
            "$1$",
            "MII",
            "a:b@",
            "[{(",
        ),
        *(
            "mysql ",
            "x_y.",
            "token=[",
            '"',
            "'",
            "----- ",
            "<password>",
            "password: ",
            "/t/a",
            "name: a value: ",
            'name="a" ',
            "--token', ",
            "TOKEN=a(",
            "token=b",
            "token=a.(",
            "~.",
        ),
        *(
            'password="""',
            "a.b:*:",
            "wandb login ",
            "Private-Lines: 1 ",
            "_a",
            "-A",
            "A",
            "@",
            "b3Bl",
        ),
    ],
)
def test_a_long_text_is_read_in_a_moment(word: str) -> None:
    """Each of these took minutes: a page is made of what others wrote."""
    text = word * (100_000 // len(word))
    assert "hunter2" not in redact_text(f"{text} password=hunter2hunter2")


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
@pytest.mark.parametrize("form", ["{name}={value}", "{name}:\n\n  {value}", '"{name}" =\n{value}'])
def test_every_kind_is_hidden_among_many_lines(kind: Kind, form: str) -> None:
    text = form.format(name=kind.name, value=kind.value)
    lines = [f"step {number}: loss=0.25 at 12.3 images/s" for number in range(20)]
    shown = redact_text("\n".join([*lines, text, *lines]))
    assert kind.secret not in shown
    assert [line for line in shown.split("\n") if line.startswith("step")][:20] == lines


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[33mpassword\x1b[0m=\x1b[35mplumtree\x1b[0m",
        "pass\x1b[0mword=plumtree",
        "\x1b]8;;https://x.example\x07token\x1b]8;;\x07: plumtree",
        "\x1b[1mpassword\x1b[0m:\n  \x1b[2mplumtree\x1b[0m",
        r"password\u003dplumtree",
        r"{\u0022password\u0022\u003A\u0022plumtree\u0022}",
        "GET /login?user%3Dme&password%3Dplumtree",
        "<td>&quot;token&quot;:&#34;plumtree&#34;</td>",
        *("OAUTH=plumtree", "oauth: plumtree", "bindpw=plumtree", "passcode: plumtree"),
        "CURL_OPTS=-u bob:plumtree",
    ],
)
@pytest.mark.parametrize("lines", [0, 20])
def test_a_secret_is_hidden_however_its_line_is_coloured_or_encoded(text: str, lines: int) -> None:
    assert "plumtree" not in redact_text(text + "\nstep 1 took 5 ms" * lines)


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_OAUTH", "OAUTH2", "PAM_AUTHTOK", "PASSCODE", "PINCODE", "OTP", "MYAUTH", "HMAC"),
        *("RSAPRIVATE", "SEED_PHRASE", "MNEMONIC", "SIGNING"),
    ],
)
def test_a_telling_variable_is_hidden_though_its_value_is_a_word(name: str) -> None:
    assert redact(name, "plumtree") == HIDDEN
