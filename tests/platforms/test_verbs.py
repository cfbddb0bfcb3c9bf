"""Describe machines as a user does: with the command, in a folder of their own."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness import plugins
from harness.cli.verbs.plan import command as plan
from harness.cli.verbs.platforms import command
from harness.errors import UsageError
from harness.platform.platform import load_platform
from tests.cli.command import bakeoff


def test_a_machine_is_added_with_one_file_in_a_users_folder(tmp_path: Path) -> None:
    folder = tmp_path / "configuration" / "bakeoff" / "platforms"
    folder.mkdir(parents=True)
    (folder / "ada.toml").write_text(
        'title = "Ada\'s workstation"\nnodes = 1\n[node]\ncores = 16\nthreads_per_core = 2\n'
        'memory = [{ kind = "DDR", size = "128 GiB" }]\n'
        '[sources]\nnode = { declared = "the invoice" }\n'
    )
    home = {"XDG_CONFIG_HOME": str(tmp_path / "configuration")}
    listed = bakeoff("list", "platforms", cwd=tmp_path, **home)
    assert "ada" in listed.stdout
    shown = bakeoff("platforms", "show", "ada", "--ranks", "2", cwd=tmp_path, **home)
    assert shown.returncode == 0, shown.stderr
    assert "the invoice" in shown.stdout
    assert "rank 1    7 cores, CPUs 7-13 + 23-29; 14 threads" in shown.stdout


def test_probing_writes_a_profile_that_the_check_agrees_with(tmp_path: Path) -> None:
    written = bakeoff("platforms", "probe", "--write", "minna", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert "Wrote platforms/minna.toml (" in written.stderr
    assert "bakeoff platforms calibrate minna" in written.stderr
    checked = bakeoff("platforms", "check", "minna", "--json", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    rows = json.loads(checked.stdout)["compared"]
    assert {row["state"] for row in rows} <= {"agrees", "not seen"}
    again = bakeoff("platforms", "probe", "--write", "minna", cwd=tmp_path)
    assert again.returncode == 2
    assert "is there already. Replace it with --force." in again.stderr


def test_a_scheduler_without_a_launcher_of_ours_is_named_only_in_a_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("harness.probe.probe.inside", lambda _environ: "beehive")
    written = CliRunner().invoke(command, ["probe", "--write", "el"])
    assert written.exit_code == 0, written.output
    text = (tmp_path / "platforms" / "el.toml").read_text()
    assert "[launcher]" not in text
    assert "# inside an allocation of beehive, for which Bakeoff has no launcher" in text
    assert bakeoff("plan", "quickstart", "--platform", "el", cwd=tmp_path).returncode == 0


def test_a_scheduler_with_a_launcher_of_ours_is_what_the_profile_starts_ranks_with(
    tmp_path: Path,
) -> None:
    written = bakeoff("platforms", "probe", "--write", "cn", cwd=tmp_path, SLURM_JOB_ID="7")
    assert written.returncode == 0, written.stderr
    text = (tmp_path / "platforms" / "cn.toml").read_text()
    assert '[launcher]\nname = "slurm"' in text
    assert "has no launcher" not in text


def test_a_claim_that_differs_is_shown_with_the_fact(tmp_path: Path) -> None:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "proud.toml").write_text(
        'title = "proud"\n[node]\ncores = 4096\n[sources]\nnode = { declared = "a dream" }\n'
    )
    checked = bakeoff("platforms", "check", "proud", cwd=tmp_path)
    assert checked.returncode == 1
    assert "node.cores  4096; here: " in checked.stdout
    assert "1 of 1 claims differ from this machine." in checked.stdout


@pytest.mark.parametrize(
    ("given", "more", "compared"),
    [
        (None, [], False),
        ("cn[01-02]", [], False),  # salloc's shell is on the login node still
        (socket.gethostname().partition(".")[0], [], True),
        (None, ["--here"], True),
    ],
)
def test_claims_about_compute_nodes_are_not_held_against_the_login_node(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: str | None,
    more: list[str],
    compared: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    if given is not None:
        monkeypatch.setenv("SLURM_JOB_NODELIST", given)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "ours.toml").write_text(
        'title = "x"\nextends = "slurm-cluster"\n[node]\ncores = 4096\n'
    )
    checked = CliRunner().invoke(command, ["check", "ours", *more])
    assert ("4096; here: " in checked.output) == compared
    assert (
        "On a node of an allocation: bakeoff platforms check ours" in checked.output
    ) != compared


def test_a_profile_starts_from_a_close_relative(tmp_path: Path, monkeypatch) -> None:
    made = bakeoff(
        *("platforms", "new", "ours", "--from", "summit", "--title", "Ours", "--nodes", "12"),
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    monkeypatch.chdir(tmp_path)
    ours = load_platform("ours")
    assert (ours.title, ours.extends, ours.nodes) == ("Ours", "summit", 12)
    assert ours.node.cores == 44
    assert ours.sources["node.cores"].tag == "declared"


def test_a_profile_starts_from_this_machine_where_nobody_can_be_asked(tmp_path: Path) -> None:
    made = bakeoff("platforms", "new", "ours", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "platforms" / "ours.toml").read_text(encoding="utf-8")
    assert 'title = "ours"' in text
    assert 'extends = "local"' in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("new", "Bad Name", "--from", "local", "--title", "x"), "cannot name a profile"),
        (("show", "sumit"), "no platform is called 'sumit'. Did you mean 'summit'?"),
        (("show", "dgx1-p100", "--ranks", "8"), "does not say how many cores its nodes have"),
        (("show", "knl-7250-flat", "--ranks", "999"), "need more than the"),
    ],
)
def test_a_mistake_is_told_with_its_cure(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    answer = bakeoff("platforms", *arguments, cwd=tmp_path)
    assert answer.returncode == 2
    assert message in answer.stderr


@pytest.mark.parametrize(
    ("name", "setting", "messages"),
    [
        (
            "slurm",
            'partitoin = "knl"',
            ["settings.partitoin: slurm has no such setting. Did you mean 'partition'?", "qos, "],
        ),
        ("local", 'hosts = "h1"', ["settings.hosts: local has no such setting.", "Known: none."]),
        (
            "slurm",
            'mpi = "pmix5"',
            ["settings.mpi: slurm knows no MPI called 'pmix5'. Did you mean 'pmix", "pmi2, pmix, "],
        ),
        (
            "mpirun",
            'mpi = "opnmpi"',
            ["settings.mpi: mpirun knows no MPI called 'opnmpi'. Did you mean 'openmpi'?", "mpich"],
        ),
        ("ssh", 'hosts = "h[1-"', ["settings.hosts: 'h[1-' is no list of hosts: a bracket lacks"]),
        ("ssh", "command = 'ssh \"'", ["settings.command: 'ssh \"' cannot be split into words as"]),
        ("simulated", 'overlap = "3"', ["settings.overlap: '3' "]),
    ],
)
def test_a_setting_that_the_launcher_could_not_heed_is_refused_with_its_line(
    name: str,
    setting: str,
    messages: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "ours.toml").write_text(
        f'title = "x"\n[launcher]\nname = "{name}"\nsettings = {{ {setting} }}\n'
    )
    for verb, words in ((command, ["check", "ours"]), (plan, ["wang2018", "--platform", "ours"])):
        refusal = str(CliRunner().invoke(verb, words).exception)
        assert refusal.startswith("platforms/ours.toml:4: launcher.settings.")
        for message in messages:
            assert message in refusal


def test_settings_of_the_launcher_that_a_profile_gives_up_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "platforms"
    folder.mkdir()
    (folder / "theirs.toml").write_text(
        'title = "x"\n[launcher]\nname = "slurm"\nsettings = { partition = "knl" }\n'
    )
    ours = 'title = "y"\nextends = "theirs"\n[launcher]\n'
    (folder / "ours.toml").write_text(ours + 'name = "ssh"\nsettings = { hosts = "h1" }\n')
    (folder / "more.toml").write_text(ours + 'settings = { account = "exa" }\n')
    with pytest.raises(
        UsageError, match=r":4: launcher.name: ssh has no setting 'partition', which"
    ):
        load_platform("ours", beside=tmp_path)
    settings = load_platform("more", beside=tmp_path).launcher.settings
    assert settings == {"partition": "knl", "account": "exa"}


@pytest.mark.parametrize("engine", ["slurm", "pbs", "lsf"])
def test_a_profile_to_fill_in_is_valid_as_written_and_with_all_of_it_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["new", "ours", "--from", f"{engine}-cluster", "--title", "Ours"]
    answer = CliRunner().invoke(command, words)
    assert answer.exit_code == 0, answer.output
    file = tmp_path / "platforms" / "ours.toml"
    assert load_platform("ours").launcher.name == engine
    assert re.findall(r'"#', file.read_text()) == [], "what a value is for stands apart from it"
    lines = [line.removeprefix("# ") for line in file.read_text().splitlines()]
    taken = [line for line in lines if re.match(r"\[|[a-z_]+ = ", line)]
    file.write_text("\n".join(taken))
    ours = load_platform("ours")
    assert {"partition", "queue"} & ours.launcher.settings.keys()
    assert set(ours.launcher.settings) <= {*plugins.load("launchers", engine).SETTINGS}
    torch = ours.frameworks["torch"]
    assert torch.modules
    assert torch.container is not None
    assert (ours.node.cores, ours.storage["scratch"].path) == (64, "/scratch")


def test_a_profile_that_refines_a_known_machine_says_nothing_of_its_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(command, ["new", "ours", "--from", "summit", "--title", "Ours"])
    text = (tmp_path / "platforms" / "ours.toml").read_text()
    assert "[node]" not in text
    assert "# [storage.scratch]" in text


def test_a_new_profile_asks_for_what_no_flag_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(command, ["new", "ours"], input="gh200\nOur superchip\n")
    assert answer.exit_code == 0, answer.output
    ours = load_platform("ours")
    assert (ours.title, ours.extends) == ("Our superchip", "gh200")


def test_a_memory_policy_without_numactl_is_told_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.toml").write_text(
        'title = "mine"\n[binding]\nmemory = "interleave"\n'
    )
    monkeypatch.setattr("shutil.which", lambda _program, **_: None)
    answer = CliRunner().invoke(command, ["check", "mine", "--here"])
    assert "needs numactl; it is not here" in answer.output
