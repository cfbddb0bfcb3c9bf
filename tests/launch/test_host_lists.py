"""Test how lists of hosts are read: as `scontrol show hostnames` prints them."""

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import plugins
from harness.errors import UsageError
from harness.launch.host_lists import folded, unfolded

LISTS = [
    ("h1", "h1"),
    ("h1,h2", "h1 h2"),
    ("h1, h2 h3", "h1 h2 h3"),
    ("cn[08-10,2]", "cn08 cn09 cn10 cn2"),
    ("cn[8-10]", "cn8 cn9 cn10"),
    ("cn[098-101]", "cn098 cn099 cn100 cn101"),
    ("c[0-1]n[0-3]", "c0n0 c0n1 c0n2 c0n3 c1n0 c1n1 c1n2 c1n3"),
    ("rack[1-2]-node[01-02]", "rack1-node01 rack1-node02 rack2-node01 rack2-node02"),
]
OURS = [  # Slurm refuses these
    ("a[1-2]-ib,b", "a1-ib a2-ib b"),
    ("r[1-2][3,5]x", "r13x r15x r23x r25x"),
    ("cn[ 1, 2 ]", "cn1 cn2"),
    ("ada@h1.lab,10.0.0.7,fe80::1%eth0", "ada@h1.lab 10.0.0.7 fe80::1%eth0"),
]


@pytest.mark.parametrize(("text", "hosts"), LISTS + OURS)
def test_a_list_names_every_host_in_its_order(text: str, hosts: str):
    assert unfolded(text) == tuple(hosts.split())


@pytest.mark.skipif(which("scontrol") is None, reason="there is no Slurm here")
@pytest.mark.parametrize("text", [text for text, _ in LISTS])
def test_slurm_names_the_same_hosts(text: str, tmp_path: Path):
    configuration = tmp_path / "slurm.conf"
    configuration.write_text("ClusterName=here\nSlurmctldHost=localhost\n")
    told = subprocess.run(
        ["scontrol", "show", "hostnames", text],
        env={**os.environ, "SLURM_CONF": str(configuration)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert unfolded(text) == tuple(told.stdout.split())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it names no host"),
        (" , ", "it names no host"),
        ("h1[", "a bracket lacks its other end"),
        ("h[1-2", "a bracket lacks its other end"),
        ("h1-2]", "a bracket lacks its other end"),
        ("h[[1-2]]", "a bracket lacks its other end"),
        ("h[]", "'' in brackets is neither a number nor a range"),
        ("h[a-c]", "'a-c' in brackets is neither a number nor a range"),
        ("h[1-2-3]", "'1-2-3' in brackets is neither a number nor a range"),
        ("h[1-9:2]", "'1-9:2' in brackets is neither a number nor a range"),
        ("h[3-1]", "the range '3-1' counts down"),
        ("h[1-3],h2", "it names h2 twice"),
        ("-oProxyCommand=x", "'-oProxyCommand=x' cannot be a host's name"),
        ("h1;h2", "'h1;h2' cannot be a host's name"),
        ("h[0-99999999999]", "it names more than 65,536 hosts"),
        ("h[0-999]-[0-999]", "it names more than 65,536 hosts"),
    ],
)
def test_a_bad_list_is_refused_with_its_reason(text: str, why: str):
    with pytest.raises(UsageError) as refused:
        unfolded(text)
    first, second = str(refused.value).splitlines()
    assert first == f"'{text}' is no list of hosts: {why}."
    assert second == "    Write h1,h2 or cn[01-04,7] or rack[1-2]-node[01-16]."


@given(st.text(alphabet="hc019-:,[] \n.@é", max_size=30))
def test_no_text_gives_a_traceback(text: str):
    try:
        hosts = unfolded(text)
    except UsageError:
        return
    assert hosts
    assert len(set(hosts)) == len(hosts)
    assert not any(set(host) & set("[], \n") for host in hosts)


@given(
    names=st.lists(st.sampled_from(["a", "b-", "c.d", "e_"]), min_size=1, max_size=3),
    ranges=st.data(),
)
def test_brackets_multiply_and_keep_their_width(names: list[str], ranges: st.DataObject):
    expected, text = [""], ""
    for name in names:
        low = ranges.draw(st.integers(0, 120))
        high = low + ranges.draw(st.integers(0, 3))
        width = ranges.draw(st.integers(len(str(low)), 5))
        text += f"{name}[{low:0{width}d}-{high:0{width}d}]"
        numbers = [str(number).zfill(width) for number in range(low, high + 1)]
        expected = [f"{host}{name}{number}" for host in expected for number in numbers]
    assert unfolded(text) == tuple(expected)


@pytest.mark.parametrize("launcher", ["ssh", "mpirun"])
def test_a_profile_names_its_hosts_as_slurm_would(launcher: str):
    settings = {"hosts": "rack[1-2]-node[01-02], login"}
    nodes = plugins.load("launchers", launcher).nodes(settings, {})
    assert nodes == ("rack1-node01", "rack1-node02", "rack2-node01", "rack2-node02", "login")


@pytest.mark.parametrize(
    "text", ["cn7", "cn[01-03,07],login", "rack1-node[08-11]", "a,b", "n[1,3]-ib", "cn[099-101]"]
)
def test_a_list_is_written_as_it_is_read(text: str) -> None:
    assert folded(unfolded(text)) in (text, ",".join(reversed(text.rsplit(",", 1))))
