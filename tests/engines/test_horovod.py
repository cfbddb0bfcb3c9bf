from __future__ import annotations

import json
import subprocess

import pytest

from tests.needs import compiled, program

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_horovodrun_starts_ranks_that_meet_where_it_says(site, name):
    runner = compiled(f"{name}@horovod").with_name("horovodrun")
    site.platform("mpirun", mpi="horovodrun", command=str(runner))
    site.study(name, "horovod", nodes=1, more="ranks_per_node = 2")
    site.hosts.run("h0", *site.command)
    (outcome,) = site.outcomes()
    assert outcome["outcome"] == "ok", outcome["reason"]
    assert [(rank["rank"], rank["host"]) for rank in outcome["ranks"]] == [(0, "h0"), (1, "h0")]
    events = next((site.folder / "run").glob("cells/*/trial-1/events.1.jsonl")).read_text()
    assert "horovod over gloo" in events
    divided = list((site.folder / "run").glob("cells/*/attribution/events.0.jsonl"))
    assert len(divided) == (1 if name == "torch" else 0)
    for file in divided:
        said = map(json.loads, file.read_text().splitlines())
        (exchange,) = [one for one in said if one.get("phase") == "exchange"]
        assert sum(exchange["shares"]) > 0


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_horovodrun_starts_ranks_on_several_hosts(site, name):
    runner = compiled(f"{name}@horovod").with_name("horovodrun")
    command = f"{runner} --network-interfaces eth0 --disable-cache"
    told = {"mpi": "horovodrun", "command": command, "ssh": site.hosts.ssh}
    site.platform("mpirun", hosts="h[1-2]", **told)
    site.study(name, "horovod", nodes=2)
    site.hosts.run("h0", *site.command, env=site.hosts.ssh_on_the_path)
    site.ended_well({"h1", "h2"})
    events = next((site.folder / "run").glob("cells/*/trial-1/events.1.jsonl")).read_text()
    assert "horovod over gloo" in events


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_horovod_trains_over_gloo_and_over_mpi(site, open_mpi, name):
    program("mpirun", package="openmpi-bin")
    compiled(f"{name}@horovod")
    carried = []
    for launcher in ("ssh", "mpirun"):
        environment = open_mpi() if launcher == "mpirun" else {"HOROVOD_GLOO_IFACE": "eth0"}
        more = {"command" if launcher == "ssh" else "ssh": site.hosts.ssh}
        site.platform(launcher, environment=environment, hosts="h[1-2]", **more)
        site.study(name, "horovod", nodes=2)
        site.hosts.run("h0", *site.command)
        site.ended_well({"h1", "h2"})
        events = next((site.folder / "run").glob("cells/*/trial-1/events.0.jsonl")).read_text()
        carried.append("horovod over mpi" if "horovod over mpi" in events else "horovod over gloo")
        subprocess.run(["rm", "-rf", str(site.folder / "run")], check=True)
    assert carried == ["horovod over gloo", "horovod over mpi"]
